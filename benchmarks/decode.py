"""Decodes a setting's samples with the batched engine."""

from benchmarks.recipes import engine_settings
from benchmarks.settings import Setting
from benchmarks.workload import Loaded
from spot.drafters.base import Drafter
from spot.limits import Limits
from workers.budget import FixedBudget
from workers.engine import Engine, Observer
from workers.samples import SampleRequest, SampleResult

BATCH = 16


def decode(
    loaded: Loaded,
    setting: Setting,
    *,
    drafter: Drafter | None,
    num_samples: int,
    batch: int = BATCH,
    observer: Observer | None = None,
) -> list[SampleResult]:
    """The first samples, in order."""
    requests = loaded.requests[:num_samples]
    engine = _engine(
        loaded, setting, drafter=drafter, requests=requests, batch=batch, observer=observer
    )
    for request in requests:
        engine.add(request)
    results: list[SampleResult] = []
    while engine.has_work():
        results += engine.step()
    return sorted(results, key=lambda result: result.request.row)


def _engine(
    loaded: Loaded,
    setting: Setting,
    *,
    drafter: Drafter | None,
    requests: list[SampleRequest],
    batch: int,
    observer: Observer | None,
) -> Engine:
    spec = loaded.target.spec
    stops = frozenset(spec.stop_ids) if setting.protocol == "early_stop" else frozenset()

    def limits(request: SampleRequest) -> Limits:
        return Limits(
            prompt_tokens=len(request.prompt_ids), max_tokens=request.max_tokens, stop_ids=stops
        )

    longest = max(-(-limits(request).end // spec.block_length) for request in requests)
    # every draft may be a full block that looks through, so that pages never limit drafts
    num_pages = batch * (longest + setting.budget)
    return Engine(
        loaded.target,
        settings=engine_settings(setting, batch=batch, num_pages=num_pages),
        limits=limits,
        drafter=drafter,
        budget=FixedBudget(setting.budget),
        observer=observer,
    )
