"""Telling others that a run has ended: a command, a webhook or both.

Nothing here changes how the run ended: trouble is told in a sentence, tries and their time are
limited, and a webhook's address, which often is a secret, is never printed.
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from manifests.job_finish import OnFinish

_PAUSE_S = 1.0  # before the second try; doubled before each one after it
_RETRIED_BELOW = 500  # a server that answers with less has understood, and means it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What is told."""

    job: str
    uri: str
    outcome: str
    exit_code: int


def notify(
    settings: OnFinish,
    ended: Ended,
    *,
    say: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Run the command and call the webhook; complaints go to `say`."""
    variables = os.environ if environment is None else environment
    if settings.command:
        _report(_run(settings, ended, environment=variables), what="command", say=say)
    if settings.webhook is not None:
        trouble = _call(settings, ended, environment=variables, sleep=sleep)
        _report(trouble, what="webhook", say=say)


def _report(trouble: str | None, *, what: str, say: Callable[[str], None]) -> None:
    if trouble is not None:
        say(f"on_finish.{what} {trouble}; the run's own result stands")


def _run(settings: OnFinish, ended: Ended, *, environment: Mapping[str, str]) -> str | None:
    told = {f"SPOTBATCH_{name.upper()}": str(value) for name, value in asdict(ended).items()}
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command, without a shell
            settings.command,
            env={**environment, **told},
            input=json.dumps(asdict(ended)).encode(),
            stdout=2,  # stdout is data
            timeout=settings.timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {settings.timeout_s:g} s (on_finish.timeout_s)"
    except OSError as error:
        return f"cannot be started ({error})"
    return f"ended with exit code {done.returncode}" if done.returncode else None


def _call(
    settings: OnFinish,
    ended: Ended,
    *,
    environment: Mapping[str, str],
    sleep: Callable[[float], None],
) -> str | None:
    url = webhook_url(settings, environment=environment)
    if url is None:
        return f"names the variable {settings.webhook}, which is not set"
    trouble, pause_s = None, _PAUSE_S
    for attempt in range(settings.attempts):
        if attempt:
            sleep(pause_s)
            pause_s *= 2
        trouble, is_final = _post(url, ended, timeout_s=settings.timeout_s)
        if trouble is None or is_final:
            break
    return trouble


def webhook_url(settings: OnFinish, *, environment: Mapping[str, str]) -> str | None:
    """The address, from the variable if one is named; None if that is not set."""
    assert settings.webhook is not None, "asked without a webhook"
    name = settings.webhook.removeprefix("env:")
    return settings.webhook if name == settings.webhook else environment.get(name)


def _post(url: str, ended: Ended, *, timeout_s: float) -> tuple[str | None, bool]:
    """What went wrong, and whether another try is of no use."""
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in ("http", "https"):
        return "is not an http:// or https:// address", True
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        url, data=json.dumps(asdict(ended)).encode(), headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_s):  # noqa: S310
            return None, True
    except urllib.error.HTTPError as error:
        with error:
            return f"was answered by {host} with {error.code}", error.code < _RETRIED_BELOW
    except (OSError, ValueError) as error:
        return f"cannot be reached at {host} ({type(error).__name__})", False
