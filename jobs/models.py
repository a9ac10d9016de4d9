"""Looking at the target and drafter directories before anything is started; no torch.

What is wrong here is wrong for every worker, so it is one sentence now, not a failed actor later.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jobs.chat_template import check_chat_template
from manifests.canvas import require_context
from manifests.drafting import require_fit
from manifests.errors import JobFileError
from manifests.fingerprints import FileIdentity
from manifests.hashing import sha256_file
from manifests.job import JobSpec
from manifests.rules import require_schedule
from manifests.store.base import is_s3
from workers.errors import ModelFilesError
from workers.model_files import fetched_models


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """The files that define target and drafter, and what is odd about them."""

    target: tuple[FileIdentity, ...]
    drafter: tuple[FileIdentity, ...]
    warnings: tuple[str, ...]
    target_revision: str | None
    """Commit of the checkpoint's repository, where it is known."""


def inspect_models(job: JobSpec) -> ModelFiles:
    """Check both directories and hash their files; `JobFileError` if one cannot be used."""
    from spot.targets.checkpoint import inspect_directory, spec_of

    try:
        local = fetched_models(job)
        path, block_length = local.target.path, job.target.block_length
        target_paths = inspect_directory(path, block_length=block_length)
        target = spec_of(path, block_length=block_length)
        revision = _revision(job, Path(path))
        require_context(
            job.decode.cache_context,
            target=job.target.path,
            family=target.family,
            exact_prefix=target.exact_prefix,
        )
        require_schedule(job.decode.denoising_steps, block_length=target.block_length)
        check_chat_template(local)
        drafter_paths, warnings = _inspect_drafter(local, target.block_length)
    except (ValueError, ModelFilesError) as error:
        raise JobFileError(str(error)) from error
    return ModelFiles(
        target=_planned(target_paths, where=job.target.path),
        drafter=_planned(drafter_paths, where=job.drafter.path),
        warnings=warnings,
        target_revision=revision,
    )


def _revision(job: JobSpec, directory: Path) -> str | None:
    from spot.targets.revision import revision_of

    found, asked = revision_of(directory), job.target.revision
    if found is not None and asked not in (None, found):
        raise JobFileError(
            f"target.revision is {asked} but {directory} holds revision {found}: download the one "
            "that you mean, or remove the setting"
        )
    return found or asked


def _planned(paths: Iterable[Path], *, where: str | None) -> tuple[FileIdentity, ...]:
    """The identities of local files under the names that they have where the job found them."""
    found = identities(paths)
    if where is None or not is_s3(where):
        return found
    return tuple(
        file.model_copy(update={"path": f"{where.rstrip('/')}/{Path(file.path).name}"})
        for file in found
    )


def _inspect_drafter(job: JobSpec, block_length: int) -> tuple[list[Path], tuple[str, ...]]:
    path = job.drafter.path
    if path is None:
        return [], ()
    from spot.drafters.checkpoint import CONFIG, WEIGHTS, check_drafter
    from spot.drafters.registry import resolve_method
    from spot.drafters.spiffy_graph import GRAPH, check_graph

    method = resolve_method(job.drafter.method, path)
    require_fit(method, rule=job.decode.drafts_as, gamma=job.decode.gamma)
    if method == "spiffy":
        return [Path(path) / GRAPH], tuple(check_graph(path, block_length))
    return [Path(path) / CONFIG, Path(path) / WEIGHTS], tuple(check_drafter(path, block_length))


def identities(paths: Iterable[Path]) -> tuple[FileIdentity, ...]:
    """Path, length and SHA-256 of each file; reads them whole."""
    return tuple(
        FileIdentity(path=str(path), bytes=path.stat().st_size, sha256=sha256_file(path))
        for path in paths
    )
