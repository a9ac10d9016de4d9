"""Which revision of a repository a model directory holds, as the download tools leave it."""

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}")


def revision_of(directory: Path) -> str | None:
    """The commit that was downloaded: a snapshot's folder name, or the download's own notes.

    None if the directory was made in another way, or if its files are of different commits.
    """
    folder = directory.resolve()
    if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name):
        return folder.name
    notes = sorted((folder / ".cache" / "huggingface" / "download").glob("*.metadata"))
    lines = [note.read_text(encoding="utf-8").partition("\n")[0].strip() for note in notes]
    commits = {line for line in lines if _COMMIT.fullmatch(line)}
    return commits.pop() if len(commits) == 1 else None
