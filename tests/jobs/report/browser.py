"""A headless Chromium for tests, where there is one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

VARIABLE = "SPOTBATCH_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
REMEDY = (
    f"no Chromium found: set {VARIABLE} to one, install the system's package `chromium`, or run "
    "`.venv/bin/python -m playwright install chromium`"
)


def find_chromium(playwright: Playwright) -> str | None:
    """What the variable names, else one on the path, else playwright's own."""
    if asked := os.environ.get(VARIABLE):
        return asked
    on_path = next((path for name in NAMES if (path := shutil.which(name))), None)
    own = playwright.chromium.executable_path
    return on_path or (own if Path(own).is_file() else None)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser without a window; the test is skipped where there is none."""
    with sync_playwright() as playwright:
        path = find_chromium(playwright)
        if path is None:
            pytest.skip(REMEDY)
        # Its sandbox does not start for root, and it only ever sees our own page.
        browser = playwright.chromium.launch(executable_path=path, chromium_sandbox=False)
        try:
            yield browser
        finally:
            browser.close()
