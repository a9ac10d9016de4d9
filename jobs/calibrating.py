"""Calibrating a drafter on rows of a job that it was not trained on.

Each method decodes rows in this process, and writes constants into the drafter's directory: into
``drafter.json``, or a Spiffy graph beside it. Measurements are kept part by part under
``calibration/``, so that a repeated command goes on where it stopped; a complete one leaves its
figures there.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from jobs.errors import JobError
from jobs.inputs.files import input_name
from jobs.mass_floor import calibrate_gamma
from jobs.measuring import (
    CalibrationRequest,
    Row,
    coupled,
    in_groups,
    open_decoder,
    partial_results,
)
from jobs.partial import write_json
from manifests.errors import ManifestError
from manifests.job import JobSpec
from manifests.rules import require_own
from spot.drafters.checkpoint import WEIGHTS, read_config, write_config
from spot.drafters.set_model import load_set_model
from spot.drafters.spiffy_graph import write_graph
from spot.training.calibrate import Logistic, Tally
from spot.training.membership import fit_calibration, membership_tally
from spot.training.spiffy import calibrate_spiffy
from spot.training.spiffy_ranks import RankPath, RankRecorder
from spot.training.survival import SurvivalRecorder
from spot.training.trajectories import Trajectories
from spot.transition import Rule
from workers.collection import Name, Recorder
from workers.runtime import rule_of
from workers.samples import SampleRequest

CalibrationMethod = Literal["survival", "gamma", "sets", "spiffy"]
METHODS: tuple[CalibrationMethod, ...] = get_args(CalibrationMethod)
SURVIVAL_TEMPERATURES = {"greedy_survival": 0.0, "survival": 1.0}


def calibrate(method: CalibrationMethod, request: CalibrationRequest) -> list[Row]:
    """Measure, write the constants, and return the figures as rows of a table.

    Raises:
        JobError: drafter, job and method do not go together, or nothing could be observed.
    """
    try:
        require_own(request.job.decode.rule, what="drafter calibrate")
        rows = _METHODS[method](request)
    except ValueError as error:
        if isinstance(error, JobError | ManifestError):
            raise
        raise JobError(f"{method} of {request.drafter} cannot be calibrated: {error}") from error
    write_json(request.drafter / "calibration" / f"{method}.json", rows)
    return rows


def _survival(request: CalibrationRequest) -> list[Row]:
    """How likely the first token hypothesis is right, by its margin; at temperatures 0 and 1."""
    config = read_config(request.drafter)
    decoder = open_decoder(request)
    partial = partial_results("survival", request)
    rows = []
    for name, temperature in SURVIVAL_TEMPERATURES.items():
        job = coupled(request.job, temperature=temperature)
        rule = rule_of(job.decode)

        def measure(requests: list[SampleRequest], job: JobSpec = job, rule: Rule = rule) -> Any:
            recorder = SurvivalRecorder(rule=rule, mask_id=decoder.mask_id)
            decoder.decode(job, requests, observer=recorder)
            return recorder.finish().to_json()

        tally = _tally(in_groups(decoder, partial, name, measure, request.report))
        law = tally.fit()
        rows.append(_fit_row(name, tally, before=Logistic(*getattr(config, name)), after=law))
        config = config.model_copy(update={name: tuple(law)})
    write_config(config, request.drafter)
    partial.remove()
    return rows


def _sets(request: CalibrationRequest) -> list[Row]:
    """Temperature and bias of membership logits at the job's tau."""
    job = coupled(request.job)
    tau = job.decode.tau
    if tau is None:
        raise JobError("sets are calibrated under decode.rule threshold; set it, with decode.tau")
    model, config = load_set_model(request.drafter)
    decoder = open_decoder(request)
    partial = partial_results("sets", request, WEIGHTS)

    def measure(requests: list[SampleRequest]) -> Any:
        recorder = Recorder()
        decoder.decode(job, requests, observer=recorder)
        parts = [recorder.take(Name(0, r.row, 0)).numbered(r.row) for r in requests]
        return membership_tally(model, Trajectories.concatenate(parts), tau=tau).to_json()

    tally = _tally(in_groups(decoder, partial, "sets", measure, request.report))
    found = fit_calibration(tally)
    row = _fit_row(
        f"membership at tau {tau}",
        tally,
        before=Logistic(config.bias, 1.0 / config.temperature),
        after=Logistic(found.bias, 1.0 / found.temperature),
    )
    update = {"temperature": found.temperature, "bias": found.bias}
    write_config(config.model_copy(update=update), request.drafter)
    partial.remove()
    return [row | update]


def _spiffy(request: CalibrationRequest) -> list[Row]:
    """The draft graph of what draft-free decoding does behind its roots."""
    job = coupled(request.job)
    decoder = open_decoder(request)
    partial = partial_results("spiffy", request, lookahead=request.lookahead)

    def measure(requests: list[SampleRequest]) -> Any:
        recorder = RankRecorder(
            rule=rule_of(job.decode), mask_id=decoder.mask_id, lookahead=request.lookahead
        )
        decoder.decode(job, requests, observer=recorder)
        return [[sorted(formula) for formula in path] for path in recorder.finish()]

    groups = in_groups(decoder, partial, "spiffy", measure, request.report)
    graph = calibrate_spiffy(
        [_path(stored) for group in groups for stored in group],
        block_length=decoder.target.spec.block_length,
        target=Path(job.target.path).name,
        data=input_name(job.input),
        size=request.size,
        lookahead=request.lookahead,
        score=request.score,
    )
    write_graph(graph, request.drafter)
    partial.remove()
    nodes = zip(graph.nodes, graph.depths(), graph.masses(), strict=True)
    return [
        {"pairs": " ".join(f"{p}:{t}" for p, t in node.pairs), "depth": depth, "mass": mass}
        for node, depth, mass in nodes
    ]


def _tally(groups: list[Any]) -> Tally:
    whole = Tally()
    for group in groups:
        whole.merge(Tally.from_json(group))
    return whole


def _fit_row(name: str, tally: Tally, *, before: Logistic, after: Logistic) -> Row:
    return {
        "constants": name,
        "observations": tally.total,
        "came_true": tally.share,
        "offset": after.offset,
        "slope": after.slope,
        "error_before": tally.reliability(before).error(),
        "error_after": tally.reliability(after).error(),
    }


def _path(stored: list[list[list[int]]]) -> RankPath:
    return tuple(frozenset((p, t) for p, t in formula) for formula in stored)


_METHODS: dict[CalibrationMethod, Callable[[CalibrationRequest], list[Row]]] = {
    "survival": _survival,
    "gamma": calibrate_gamma,
    "sets": _sets,
    "spiffy": _spiffy,
}
