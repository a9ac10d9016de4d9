"""Which settings can change an output, and the fingerprint over them.

Every leaf of the job specification says its kind where it is declared; semantic leaves count,
together with the contents of the input and of the target. Where drafts can change outputs
(`Decode.lets_drafts_matter`), drafting leaves and the contents of the drafter count too. File names
do not count beyond what the settings say themselves: contents decide.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, Field

from manifests.documents import Document
from manifests.errors import FingerprintError
from manifests.hashing import canonical_json, sha256_hex
from manifests.job import JobSpec
from manifests.settings import Kind

INPUT = "input (contents)"


class FileIdentity(Document):
    """A file as it was when the job was planned."""

    path: str
    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Planned(Protocol):
    """The part of a plan that decides whether a run belongs to it."""

    @property
    def job(self) -> JobSpec: ...

    @property
    def input(self) -> tuple[FileIdentity, ...]: ...

    @property
    def target_files(self) -> tuple[FileIdentity, ...]: ...

    @property
    def drafter_files(self) -> tuple[FileIdentity, ...]: ...


def semantic_fields(job: JobSpec) -> dict[str, Any]:
    """All settings that can change an output, by dotted name, as plain JSON values."""
    drafts_matter = job.decode.lets_drafts_matter is not None
    return settings(job, kinds={"semantic", "drafting"} if drafts_matter else {"semantic"})


def settings(job: JobSpec, *, kinds: Set[Kind]) -> dict[str, Any]:
    """The settings of some kinds, by dotted name, as plain JSON values."""
    return dict(_leaves(job, prefix="", kinds=kinds))


def _leaves(group: BaseModel, *, prefix: str, kinds: Set[Kind]) -> Iterator[tuple[str, Any]]:
    plain = group.model_dump(mode="json")
    for name, field in type(group).model_fields.items():
        value = getattr(group, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, prefix=f"{prefix}{name}.", kinds=kinds)
        elif _kind(field.json_schema_extra) in kinds:
            yield f"{prefix}{name}", plain[name]


def _kind(extra: object) -> str:
    assert isinstance(extra, dict), "every setting says what kind it is"
    return str(extra["kind"])


def fingerprint_fields(
    job: JobSpec,
    *,
    input_files: Iterable[FileIdentity],
    target_files: Iterable[FileIdentity],
    drafter_files: Iterable[FileIdentity] = (),
) -> dict[str, Any]:
    """The semantic settings and the contents that a fingerprint covers."""
    contents = {
        INPUT: _contents_digest(input_files),
        "target (contents)": _contents_digest(target_files),
    }
    if job.decode.lets_drafts_matter is not None:
        contents["drafter (contents)"] = _contents_digest(drafter_files)
    return semantic_fields(job) | contents


def _contents_digest(files: Iterable[FileIdentity]) -> str:
    return sha256_hex(canonical_json([[file.bytes, file.sha256] for file in files]))


def fingerprint(
    job: JobSpec,
    *,
    input_files: Iterable[FileIdentity],
    target_files: Iterable[FileIdentity],
    drafter_files: Iterable[FileIdentity] = (),
) -> str:
    """SHA-256 over everything that can change an output."""
    fields = fingerprint_fields(
        job, input_files=input_files, target_files=target_files, drafter_files=drafter_files
    )
    return sha256_hex(canonical_json(fields))


def changed_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Sorted names whose values differ, or that only one side has."""
    absent = object()
    names = sorted(old.keys() | new.keys())
    return [name for name in names if old.get(name, absent) != new.get(name, absent)]


def require_same_fields(
    plan: Planned,
    *,
    job: JobSpec,
    input_files: Iterable[FileIdentity],
    target_files: Iterable[FileIdentity],
    drafter_files: Iterable[FileIdentity] = (),
) -> None:
    """Raise `FingerprintError`, with old and new values, unless a run belongs to the plan."""
    old = fingerprint_fields(
        plan.job,
        input_files=plan.input,
        target_files=plan.target_files,
        drafter_files=plan.drafter_files,
    )
    new = fingerprint_fields(
        job, input_files=input_files, target_files=target_files, drafter_files=drafter_files
    )
    names = changed_fields(old, new)
    if names:
        # A field that only one side has follows from a verifier or numerics that changed.
        told = [name for name in names if name in old and name in new] or names
        changes = "; ".join(f"{name} was {old.get(name)!r}, is {new.get(name)!r}" for name in told)
        appended = "; `spotbatch extend` adds rows that were appended" if names == [INPUT] else ""
        raise FingerprintError(
            f"output.uri holds a job planned with other settings ({changes}); restore them, or "
            f"choose another output.uri{appended}"
        )
