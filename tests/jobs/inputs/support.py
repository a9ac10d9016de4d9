"""Jobs over input files, and their rows, without planning anything."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.inputs.reading import InputReader
from manifests.job import JobSpec
from manifests.staged import StagedRow


def job_over(uri: Path | str | Sequence[str], **groups: Any) -> JobSpec:
    """A job with this input; `columns` and the like go into the input group."""
    names = ("columns", "delimiter", "format", "filter", "limit")
    source = {name: groups.pop(name) for name in names if name in groups}
    uris = [str(uri)] if isinstance(uri, Path | str) else list(uri)
    groups = {"target": {"path": "/m"}, "output": {"uri": "/o"}} | groups
    return JobSpec.model_validate({"input": {"uri": uris, **source}, **groups})


def rows_over(uri: Path | str | Sequence[str], **groups: Any) -> list[StagedRow]:
    """The staged rows of such a job."""
    return list(InputReader(job_over(uri, **groups)).rows())
