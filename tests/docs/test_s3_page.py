"""The page about S3, command by command, on a server of its own."""

import urllib.request
from pathlib import Path

import pytest

from manifests.store import open_store
from tests.docs.documents import page, run_commands
from tests.docs.terminal import Terminal
from tests.s3_server import running_server

pytestmark = [pytest.mark.s3, pytest.mark.cli, pytest.mark.ray, pytest.mark.timeout(600)]
BUCKET = "my-bucket"
SMALLER = ("input.limit=2", "cluster.workers=1", "decode.max_tokens=16")


def test_a_job_lives_in_s3_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        request = urllib.request.Request(f"{server.endpoint}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            pass
        terminal = Terminal(place=tmp_path, smaller=SMALLER)
        plan, run, status, listing, verify, export, *check = run_commands("s3.md")
        terminal.run(plan)
        assert "state                complete" in terminal.run(run)
        assert "state            complete" in terminal.run(status)
        assert f"s3://{BUCKET}/jobs/answers" in terminal.run(listing)
        assert "no finding" in terminal.run(verify)
        terminal.run(export)
        assert "_SUCCESS.json" in open_store(f"s3://{BUCKET}/clean/answers").list("")
        for command in check:
            terminal.run(command)
        assert not (tmp_path / "out").exists()


def test_the_page_names_no_secret() -> None:
    assert "AKIA" not in page("s3.md")
