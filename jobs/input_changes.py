"""Saying what happened to an input whose planned rows are not what they were."""

from collections.abc import Iterable, Iterator, Sequence

from jobs.inputs.reading import InputReader
from jobs.reading import OpenJob
from manifests.errors import InputError
from manifests.fingerprints import FileIdentity
from manifests.job import JobSpec
from manifests.staged import ShardReader, StagedRow

# What of a row is decoded or carried; the text of an error quotes places of files, and may change.
_COMPARED = (
    *("prompt", "messages", "error_class", "carried", "max_tokens", "temperature", "seed"),
)


def changed_input(job: OpenJob, spec: JobSpec, *, files: Sequence[FileIdentity]) -> InputError:
    """The error that names the first planned row, and the first file, that is another one now.

    Reads the input once more, beside the staged rows, as far as they agree.
    """
    row = first_difference(_planned_rows(job), InputReader(spec).rows())
    file = changed_file(job.plan.input, files)
    told = f"{row}; {file}" if file else row
    return InputError(
        f"input.uri: {told}; rows can only be appended, behind the last row of the last file or in "
        "files that come after it: restore the input, or plan another job with its own output.uri"
    )


def _planned_rows(job: OpenJob) -> Iterator[StagedRow]:
    reader = ShardReader(job.store)
    for shard in job.plan.shards:
        yield from reader.read(shard)


def first_difference(planned: Iterable[StagedRow], now: Iterator[StagedRow]) -> str:
    """In words, about the first planned row that is not there as it was."""
    for was in planned:
        found = next(now, None)
        if found is None:
            return f"row {was.row} (counted from 0), `{was.id}`, is planned, and is gone"
        if found.id != was.id:
            return f"row {was.row} (counted from 0) was planned as `{was.id}`, and is `{found.id}`"
        names = [name for name in _COMPARED if getattr(found, name) != getattr(was, name)]
        if names:
            return (
                f"row {was.row} (counted from 0), `{was.id}`, is planned, and its "
                f"{' and '.join(names)} changed since"
            )
    return "the planned rows changed while they were read"


def changed_file(planned: Sequence[FileIdentity], now: Sequence[FileIdentity]) -> str | None:
    """In words, about the first file that is not in its place with its bytes."""
    paths = [file.path for file in now]
    for index, was in enumerate(planned):
        found = now[index] if index < len(now) else None
        if found is None or (found.path != was.path and was.path not in paths):
            return f"the file {was.path} is gone"
        if found.path != was.path:
            return f"the file {found.path} comes before {was.path}, whose rows are planned"
        if found.sha256 != was.sha256:
            is_last = index == len(planned) - 1
            follow = "" if is_last else ", and rows of later files are planned behind it"
            return f"the file {was.path} was changed{follow}"
    return None
