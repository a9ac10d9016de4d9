"""Choosing a drafter's mass floor by measuring throughput (paper, appendix C)."""

from itertools import product
from pathlib import Path

from jobs.in_process import InProcess
from jobs.measuring import CalibrationRequest, Row, coupled, open_decoder, partial_results
from manifests.drafting import require_fit
from manifests.job import JobSpec
from spot.drafters.checkpoint import CONFIG, WEIGHTS, read_config, write_config
from spot.drafters.registry import make_drafter, resolve_method
from spot.training.calibrate import GAMMA_BUDGETS, GAMMAS, choose_gamma
from workers.runtime import rule_of


def calibrate_gamma(request: CalibrationRequest) -> list[Row]:
    """The mass floor with the best throughput, one sequence at a time, at temperature 0."""
    config = read_config(request.drafter)
    require_fit(resolve_method(None, request.drafter), rule=request.job.decode.rule, gamma=0.0)
    rows = _grid(request)
    ratios = {gamma: _mean_ratio(rows, gamma) for gamma in GAMMAS}
    chosen = choose_gamma(ratios)
    write_config(config.model_copy(update={"gamma": chosen}), request.drafter)
    return [
        row | {"mean_ratio": ratios[row["gamma"]], "chosen": row["gamma"] == chosen} for row in rows
    ]


def _grid(request: CalibrationRequest) -> list[Row]:
    """Throughput at every floor and budget.

    The draft-free control is measured anew in each process: both sides of a ratio must share a
    machine and its state.
    """
    job = coupled(request.job, temperature=0.0, padded=False)
    job = job.model_copy(update={"cluster": job.cluster.model_copy(update={"batch": 1})})
    decoder = open_decoder(request)
    partial = partial_results("gamma", request, WEIGHTS, CONFIG)
    control: float | None = None
    rows = []
    for gamma, budget in product(GAMMAS, GAMMA_BUDGETS):
        name = f"gamma {gamma}, budget {budget}"
        if partial.get(name) is None:
            if control is None:
                decoder.decode(job, decoder.requests[:1])  # first forwards are slower
                control = decoder.decode(job, decoder.requests).seconds
            partial.put(name, _run(decoder, job, request.drafter, gamma, budget, control))
        rows.append({"gamma": gamma, "budget": budget} | partial.get(name))
        request.report(f"{name}: {rows[-1]['throughput_ratio']:.2f} times draft-free")
    partial.remove()
    return rows


def _mean_ratio(rows: list[Row], gamma: float) -> float:
    """Over the budgets."""
    ratios = [float(row["throughput_ratio"]) for row in rows if row["gamma"] == gamma]
    return sum(ratios) / len(ratios)


def _run(
    decoder: InProcess, job: JobSpec, path: Path, gamma: float, budget: int, control: float
) -> Row:
    drafter = make_drafter(
        None, path, rule=rule_of(job.decode), mask_id=decoder.mask_id, gamma=gamma
    )
    found = decoder.decode(job, decoder.requests, drafter=drafter, budget=budget)
    return {
        "forwards_per_sample": sum(r.nfe for r in found.results) / len(found.results),
        "drafted_per_sample": sum(r.drafted for r in found.results) / len(found.results),
        "throughput_ratio": control / found.seconds,
    }
