"""Scoring committed rows in a child process with CPU and memory limits.

A scorer is `package.module:function`, found on the installation or from the current directory. It
gets a committed row (`SCORED_COLUMNS`, `carried` as JSON text) and returns
`{"correct": bool, "family": str}`. It may run model output, so it lives in a process of its own,
without this one's environment: a row that breaks the limits, or kills the process, is not correct,
and the next row has a new process. Error rows are scored too (their `text` is null).
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jobs import scoring_child
from jobs.errors import ScoringError

ROW_CPU_S = 10
ROW_WALL_S = 30.0
START_WALL_S = 120.0
MEMORY_BYTES = 2 << 30
SCORED_COLUMNS = (
    "id",
    "sample",
    "text",
    "finish_reason",
    "tokens",
    "error_class",
    "error_message",
    "carried",
)
# What a Python child needs to start and to find modules; credentials stay here.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The judgement of one row; `error` says why the scorer gave none."""

    correct: bool
    family: str | None = None
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts over scored rows."""

    correct: dict[str, int] = field(default_factory=dict)
    scored: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    """Why the scorer gave no score, one entry a row."""

    def add(self, score: Score) -> None:
        """Count one score, under `all` and under its family."""
        if score.error is not None:
            self.errors.append(score.error)
        for name in ("all", score.family):
            if name is not None:
                self.scored[name] = self.scored.get(name, 0) + 1
                self.correct[name] = self.correct.get(name, 0) + score.correct

    def accuracy(self) -> dict[str, float]:
        """Share of correct rows, over all and by family in alphabetical order."""
        names = sorted(self.scored, key=lambda name: (name != "all", name))
        return {name: self.correct[name] / self.scored[name] for name in names}


class ScoringProcess:
    """A scorer in its child process; a context manager."""

    def __init__(
        self,
        name: str,
        *,
        cpu_s: int = ROW_CPU_S,
        wall_s: float = ROW_WALL_S,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._name = name
        self._wall_s = wall_s
        self._arguments = (name, str(cpu_s), str(memory_bytes))
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def score(self, row: dict[str, Any]) -> Score:
        """Judge one row; a new process is started if the last row ended the old one."""
        if self._process is None:
            self._start()
        answer = self._ask(json.dumps(row).encode() + b"\n")
        if answer is None:
            self._stop()
            return Score(correct=False, error="the scorer's process ended or did not answer")
        if "error" in answer:
            return Score(correct=False, error=answer["error"])
        return Score(correct=answer["correct"], family=answer["family"])

    def _start(self) -> None:
        environment = {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}
        script = str(Path(scoring_child.__file__))
        self._unread = b""
        self._process = subprocess.Popen(  # noqa: S603 - our own script, no shell
            [sys.executable, "-P", script, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
        answer = self._read_line(START_WALL_S) or {"error": "its process ended"}
        if "error" in answer:
            self._stop()
            raise ScoringError(
                f"stats.scorer `{self._name}` cannot be loaded ({answer['error']}); it is "
                "`package.module:function`, looked up from the current directory"
            )

    def _ask(self, line: bytes) -> dict[str, Any] | None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            while line:
                line = line[self._process.stdin.write(line) :]
        except BrokenPipeError:
            return None
        return self._read_line(self._wall_s)

    def _read_line(self, wall_s: float) -> dict[str, Any] | None:
        """One answer, or None if the process ends or is silent for `wall_s` seconds."""
        assert self._process is not None
        assert self._process.stdout is not None
        stdout = self._process.stdout
        while b"\n" not in self._unread:
            ready, _, _ = select.select([stdout], [], [], wall_s)
            chunk = stdout.read(1 << 16) if ready else b""
            if not chunk:
                return None
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # The whole session: a scorer may have left processes behind.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait()


def check_scorer(name: str) -> None:
    """Raise `ScoringError` unless the scorer can be loaded; takes one process start."""
    with ScoringProcess(name):
        pass


def score_rows(name: str, rows: Iterable[dict[str, Any]]) -> Tally:
    """Judge `rows` one after the other; raises `ScoringError` if the scorer cannot be loaded."""
    tally = Tally()
    with ScoringProcess(name) as process:
        for row in rows:
            tally.add(process.score(row))
    return tally
