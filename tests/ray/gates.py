"""Both sides of a held worker: who holds it, and who waits until it is there."""

from dataclasses import dataclass
from pathlib import Path

from tests.workers.conditions import wait_for


@dataclass(frozen=True, slots=True)
class GateFolder:
    """The folder of `workers.gate`."""

    folder: Path

    def hold(self, shard: int, row: int) -> None:
        """Hold whoever comes to this row."""
        (self.folder / f"hold-{shard}-{row}").touch()

    def open(self, shard: int, row: int) -> None:
        """Let them go on."""
        (self.folder / f"hold-{shard}-{row}").unlink()

    def is_reached(self, shard: int, row: int) -> bool:
        """Whether a worker is held there."""
        reached = self.folder / f"reached-{shard}-{row}"
        return reached.exists() and reached.read_text() != ""

    def wait_until_reached(self, shard: int, row: int) -> int:
        """The process id of the worker that is held there."""
        what = f"a worker at row {row} of shard {shard}"
        wait_for(lambda: self.is_reached(shard, row), what=what)
        return int((self.folder / f"reached-{shard}-{row}").read_text())
