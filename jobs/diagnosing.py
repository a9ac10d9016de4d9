"""Diagnosing a job's drafter: where its drafts are accepted, and why they are not."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.errors import JobError
from jobs.in_process import InProcess
from manifests.drafting import require_fit
from manifests.job import JobSpec
from manifests.rules import require_own
from spot.drafters.checkpoint import read_config
from spot.drafters.order_model import load_order_model
from spot.drafters.registry import Method, resolve_method
from spot.drafters.set_model import load_set_model
from spot.drafters.sets import SetCalibration
from spot.training.diagnostics import Diagnostics
from spot.training.first_choice import (
    FirstChoice,
    Positions,
    by_order_model,
    by_set_model,
    by_stale_confidence,
    first_choice,
)
from workers.runtime import drafter_of, rule_of

DEFAULT_BUDGET = 20  # of a job whose budget is `auto`


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What to diagnose, on what."""

    job: JobSpec
    samples: int = 50
    held_out: bool = False  # only every tenth row, which training on the job's collection leaves
    report: Callable[[str], None]


def diagnose(request: Diagnosis) -> dict[str, Any]:
    """Decode rows with the job's drafter and give the diagnostics.

    Raises:
        JobError: the job names no drafter, or one that cannot be used.
    """
    job = request.job
    if not job.drafts:
        raise JobError(
            "nothing is drafted in this job: name a drafter by --drafter or drafter.path, and a "
            "decode.draft_budget above 0"
        )
    try:
        require_own(job.decode.rule, what="drafter diagnose")
        method = resolve_method(job.drafter.method, job.drafter.path)
        require_fit(method, rule=job.decode.rule, gamma=job.decode.gamma)
        decoder = InProcess(job, samples=request.samples, held_out=request.held_out)
        drafter = drafter_of(job, mask_id=decoder.mask_id)
        choose = _first_choice(job, method, mask_id=decoder.mask_id)
    except ValueError as error:
        raise JobError(str(error)) from error
    budget = job.decode.draft_budget
    budget = DEFAULT_BUDGET if budget == "auto" else budget
    looking = Diagnostics(choose, decoder.mask_id)
    found = decoder.decode(
        job,
        decoder.requests,
        drafter=drafter,
        budget=budget,
        observer=looking,
        report=request.report,
    ).results
    for result in found:
        looking.finished(transitions=result.transitions, tied=result.tied)
    forwards = sum(result.nfe for result in found)
    return {
        "method": method,
        "drafter": job.drafter.path,
        "draft_budget": budget,
        "samples": len(found),
        "forwards_per_sample": forwards / len(found),
        "draft_free_forwards_per_sample": looking.transitions / len(found),
        **looking.report(),
    }


def _first_choice(job: JobSpec, method: Method, *, mask_id: int) -> FirstChoice:
    """The yardstick that fits a method."""
    rule = rule_of(job.decode)
    positions: Positions
    if method in ("spot", "spot_chain"):
        positions = by_order_model(load_order_model(_path(job))[0])
    elif method == "spot_sets":
        config = read_config(_path(job))
        calibration = SetCalibration(temperature=config.temperature, bias=config.bias)
        assert rule.tau is not None, "sets are drafted for the threshold rule"
        model = load_set_model(_path(job))[0]
        positions = by_set_model(model, tau=rule.tau, calibration=calibration)
    else:
        positions = by_stale_confidence(rule)
    coupled = job.decode.verifier == "coupled"
    return first_choice(positions, rule=rule, mask_id=mask_id, coupled=coupled)


def _path(job: JobSpec) -> Path:
    assert job.drafter.path is not None, "the method has a directory"
    return Path(job.drafter.path)
