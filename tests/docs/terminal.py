"""Types the commands of a page, in a directory of its own that has the repository's examples."""

import os
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.documents import ROOT

SCRIPTS = Path(sysconfig.get_path("scripts"))
LIMIT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Where commands are typed, and how the page's jobs are made smaller."""

    place: Path
    smaller: Sequence[str] = ()
    """Settings that every command with a job file gets."""
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.place / "examples").symlink_to(ROOT / "examples")

    def words(self, command: Sequence[str]) -> list[str]:
        """A command as it is typed: the smaller job, the environment's own programs."""
        settings = [word for setting in self.smaller for word in ("--set", setting)]
        has_job_file = any(word.endswith(".yaml") for word in command)
        return [
            str(SCRIPTS / command[0]),
            *command[1:],
            *(settings if command[0] == "spotbatch" and has_job_file else []),
        ]

    def run(self, command: Sequence[str], *, exit_code: int = 0) -> str:
        """What a command prints on stdout; it has to end with the exit code."""
        done = subprocess.run(
            self.words(command),
            cwd=self.place,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert done.returncode == exit_code, (command, done.stdout, done.stderr)
        return done.stdout
