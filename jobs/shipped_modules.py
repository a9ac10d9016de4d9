"""`cluster.py_modules` in this process, where it does what otherwise a worker does.

Ray ships the directories to its workers, where each can be imported by its own name. A wheel would
have to be installed, so here only directories count.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def shipped_modules(paths: Iterable[str]) -> Iterator[None]:
    """Directories of `paths` can be imported inside, behind whatever is installed."""
    folders = [str(Path(path).resolve().parent) for path in paths if Path(path).is_dir()]
    sys.path.extend(folders)
    try:
        yield
    finally:
        for folder in folders:
            sys.path.remove(folder)
