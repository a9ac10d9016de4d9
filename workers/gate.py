"""A test hook: holds a worker at a named sample, so that crashes are placed and not timed.

`SPOTBATCH_TEST_GATE` names a folder; the driver reads the variable and hands the folder to its
workers. When the results of row R of shard S arrive and the folder has a file `hold-S-R`, the
worker writes its process id to `reached-S-R` and waits until the hold file is gone. Nothing else
in the product knows of tests.
"""

import os
import time
from pathlib import Path

VARIABLE = "SPOTBATCH_TEST_GATE"
POLL_S = 0.02


class Gate:
    """Passes every sample at once unless a folder is given and holds it."""

    def __init__(self, folder: str | None) -> None:
        self._folder = Path(folder) if folder else None

    def wait(self, *, shard: int, row: int) -> None:
        """Return when this row may go on."""
        if self._folder is None:
            return
        hold = self._folder / f"hold-{shard}-{row}"
        if hold.exists():
            (self._folder / f"reached-{shard}-{row}").write_text(str(os.getpid()))
        while hold.exists():
            time.sleep(POLL_S)


def folder_from_environment() -> str | None:
    """The folder that the driver's environment names, if any."""
    return os.environ.get(VARIABLE)
