"""Temporary files that a killed process left in a local store.

They have hidden names that no listing shows, so they harm nobody and cost only room. One that was
written to a moment ago may belong to a living process; a put whose file was swept away all the same
fails, publishes nothing and is tried again.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp|\.probe-[0-9a-f]{16}")


def sweep_temporaries(root: Path, *, before: float) -> list[str]:
    """Delete temporary files last written before a moment (seconds since the epoch); their names.

    Symbolic links are neither followed nor deleted.
    """
    swept = []
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory) / name
            if _TEMPORARY.fullmatch(name) and _is_stale(path, before=before):
                path.unlink(missing_ok=True)
                swept.append(path.relative_to(root).as_posix())
    return sorted(swept)


def _is_stale(path: Path, *, before: float) -> bool:
    with suppress(FileNotFoundError):  # its owner was faster
        return not path.is_symlink() and path.stat().st_mtime < before
    return False
