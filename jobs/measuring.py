"""What the calibrations share: the request, the settings they decode under, partial results."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.in_process import InProcess, with_decode
from jobs.inputs.files import find_files
from jobs.inputs.opening import identify
from jobs.partial import PartialResults
from manifests.hashing import sha256_file
from manifests.job import JobSpec
from spot.drafters.spiffy_graph import GRAPH_SIZE, LOOKAHEAD
from spot.training.spiffy import Score
from workers.samples import SampleRequest

GROUP = 16  # samples that are measured, and kept, together

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRequest:
    """What to calibrate, on what."""

    job: JobSpec
    drafter: Path
    samples: int = 50
    held_out: bool = False  # only every tenth row, which training on the job's collection leaves
    lookahead: int = LOOKAHEAD  # of a Spiffy graph
    size: int = GRAPH_SIZE  # likewise
    score: Score = "degree1"  # likewise
    report: Callable[[str], None]


def open_decoder(request: CalibrationRequest) -> InProcess:
    """Target and rows."""
    return InProcess(request.job, samples=request.samples, held_out=request.held_out)


def coupled(job: JobSpec, **settings: Any) -> JobSpec:
    """The job under the exact verifier; what has no meaning at temperature 0 is left out."""
    if settings.get("temperature") == 0.0:
        settings |= {"top_p": 1.0, "top_k": 0}
    return with_decode(job, verifier="coupled", **settings)


def partial_results(
    method: str, request: CalibrationRequest, *files: str, **settings: Any
) -> PartialResults:
    """Partial results that count for these rows, these settings and these files of the drafter."""
    job = request.job
    identity = settings | {
        "input": job.input.model_dump(mode="json"),
        "input_sha256": [
            identify(file.uri, job.storage).sha256 for file in find_files(job.input, job.storage)
        ],
        "target": job.target.model_dump(mode="json"),
        "target_files": _stamps(Path(job.target.path)),
        "decode": job.decode.model_dump(mode="json"),
        "seed": job.seed.value,
        "samples": request.samples,
        "held_out": request.held_out,
        "drafter": {name: sha256_file(request.drafter / name) for name in files},
    }
    path = request.drafter / "calibration" / f"{method}.partial.json"
    return PartialResults(path, identity=identity)


def _stamps(directory: Path) -> list[tuple[str, int, int]]:
    """Name, length and time of each file: weights are too large to hash for this."""
    files = sorted(path for path in directory.iterdir() if path.is_file())
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]


def in_groups(
    decoder: InProcess,
    partial: PartialResults,
    name: str,
    measure: Callable[[list[SampleRequest]], Any],
    report: Callable[[str], None],
) -> list[Any]:
    """What ``measure`` gives for each group of samples that was not measured before."""
    total = len(decoder.requests)
    groups = []
    for first in range(0, total, GROUP):
        part = f"{name} from {first}"
        if partial.get(part) is None:
            partial.put(part, measure(decoder.requests[first : first + GROUP]))
        groups.append(partial.get(part))
        report(f"{name}: {min(first + GROUP, total)} of {total} samples")
    return groups
