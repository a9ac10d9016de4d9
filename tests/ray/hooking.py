"""A test's side of `hooks/sitecustomize.py`: workers that misbehave on request."""

from dataclasses import dataclass
from pathlib import Path

from tests.workers.conditions import wait_for

HOOKS = Path(__file__).parent / "hooks"


@dataclass(frozen=True, slots=True)
class Hooks:
    """The folder that the workers look into."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        """For `cluster.env`."""
        return {"PYTHONPATH": str(HOOKS), "HOOKS_FOLDER": str(self.folder)}

    def poison(self, row_id: str, kind: str) -> None:
        """What happens to whoever decodes the row: raise, exit, hang or memory."""
        (self.folder / f"poison-{row_id}").write_text(kind)

    def slow(self, seconds: float) -> None:
        """How long every row takes."""
        (self.folder / "slow").write_text(str(seconds))

    def hold_commits(self) -> None:
        """Whoever is about to create a commit record waits."""
        (self.folder / "hold-commits").touch()

    def release_commits(self) -> None:
        """They go on."""
        (self.folder / "hold-commits").unlink()

    def wait_until_commits_are_held(self) -> int:
        """The process id of a worker that waits."""
        held = self.folder / "held-commits"
        wait_for(lambda: held.exists() and held.read_text() != "", what="a held commit")
        return int(held.read_text())
