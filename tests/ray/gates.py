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

    def wait_until_reached(self, shard: int, row: int) -> int:
        """The process id of the worker that is held there."""
        reached = self.folder / f"reached-{shard}-{row}"
        wait_for(
            lambda: reached.exists() and reached.read_text() != "",
            what=f"a worker at row {row} of shard {shard}",
        )
        return int(reached.read_text())
