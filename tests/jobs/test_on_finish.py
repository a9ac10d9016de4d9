"""Telling others: a real command, a real server, and trouble that stays a sentence."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pydantic import ValidationError

from jobs.on_finish import Ended, notify
from manifests.job_finish import OnFinish

ENDED = Ended(job="0123456789abcdef", uri="/out", outcome="drained", exit_code=3)


@dataclass(slots=True)
class Heard:
    """What was said, and for how long was waited."""

    said: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)


def tell(settings: OnFinish, environment: dict[str, str] | None = None) -> Heard:
    heard = Heard()
    notify(
        settings, ENDED, say=heard.said.append, environment=environment, sleep=heard.slept.append
    )
    return heard


@contextmanager
def server(*answers: int) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A server that answers with these codes in turn and remembers what it got."""
    bodies: list[dict[str, object]] = []
    codes = iter(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            bodies.append(json.loads(self.rfile.read(length)))
            self.send_response(next(codes))
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/secret", bodies
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def test_a_command_gets_the_facts_in_its_environment_and_on_stdin(tmp_path: Path) -> None:
    code = (
        "import json, os, sys; "
        f"json.dump([json.load(sys.stdin), os.environ['SPOTBATCH_OUTCOME'], "
        f"os.environ['SPOTBATCH_EXIT_CODE']], open({str(tmp_path / 'told')!r}, 'w'))"
    )
    assert tell(OnFinish(command=(sys.executable, "-c", code))).said == []
    facts, outcome, exit_code = json.loads((tmp_path / "told").read_text())
    assert (facts["job"], facts["exit_code"]) == (ENDED.job, 3)
    assert (outcome, exit_code) == ("drained", "3")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((sys.executable, "-c", "raise SystemExit(7)"), "ended with exit code 7"),
        (("/nonexistent/command",), "cannot be started"),
        (
            (sys.executable, "-c", "import threading; threading.Event().wait()"),
            "took more than 0.5 s",
        ),
    ],
)
def test_a_command_in_trouble_is_one_sentence(command: tuple[str, ...], words: str) -> None:
    (sentence,) = tell(OnFinish(command=command, timeout_s=0.5)).said
    assert words in sentence
    assert sentence.endswith("the run's own result stands")


def test_a_webhook_gets_the_facts() -> None:
    with server(200) as (url, bodies):
        assert tell(OnFinish(webhook=url)).said == []
    assert bodies == [{"job": ENDED.job, "uri": "/out", "outcome": "drained", "exit_code": 3}]


def test_a_server_in_trouble_is_tried_again_with_growing_pauses() -> None:
    with server(500, 503, 204) as (url, bodies):
        heard = tell(OnFinish(webhook=url))
    assert (len(bodies), heard.said, heard.slept) == (3, [], [1.0, 2.0])


def test_tries_end_and_the_address_is_not_printed() -> None:
    with server(500, 500) as (url, bodies):
        heard = tell(OnFinish(webhook=url, attempts=2))
    (sentence,) = heard.said
    assert len(bodies) == 2
    assert "was answered by 127.0.0.1 with 500" in sentence
    assert "secret" not in sentence


def test_a_refusal_is_final() -> None:
    with server(404) as (url, bodies):
        assert "with 404" in tell(OnFinish(webhook=url)).said[0]
    assert len(bodies) == 1


def test_nobody_there_is_tried_again_and_told() -> None:
    heard = tell(OnFinish(webhook="http://127.0.0.1:1/secret"))
    assert "cannot be reached at 127.0.0.1 (URLError)" in heard.said[0]
    assert len(heard.slept) == 2


def test_the_address_may_be_in_a_variable() -> None:
    with server(200) as (url, bodies):
        assert tell(OnFinish(webhook="env:HOOK"), {"HOOK": url}).said == []
    assert len(bodies) == 1
    assert "variable env:HOOK, which is not set" in tell(OnFinish(webhook="env:HOOK"), {}).said[0]
    assert "is not an http" in tell(OnFinish(webhook="env:HOOK"), {"HOOK": "file:///x"}).said[0]


def test_nothing_is_told_where_nobody_is_named() -> None:
    assert tell(OnFinish()) == Heard()


@pytest.mark.parametrize(
    ("webhook", "words"),
    [
        ("ftp://h/x", "is an http"),
        ("h/x", "is an http"),
        ("https://user:pass@h/x", "has a password in it"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_the_job_file(
    webhook: str, words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        OnFinish(webhook=webhook)
