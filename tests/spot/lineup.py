"""Every drafter by name, and both decoders as functions with comparable outcomes."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch

from spot.decoder import ReferenceDecoder, Sample
from spot.drafters.base import Drafter
from spot.drafters.chain import ChainDrafter
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.confidence_tree import ConfidenceTreeDrafter
from spot.drafters.oracle import OracleDrafter, OracleKind
from spot.drafters.order_model import OrderModel
from spot.drafters.spot import SpotDrafter, SpotOptions
from spot.limits import Limits
from spot.targets.base import Target
from spot.trajectory import Move
from spot.transition import Rule
from spot.verification import VerifierName
from tests.spot.hostile import Hostile
from tests.spot.toy import MASK_ID, NUM_TOKENS, TABLES
from workers.budget import FixedBudget
from workers.engine import Engine, EngineSettings
from workers.rounds import FullDrafts
from workers.samples import CommitTrace, FinishReason, SampleRequest
from workers.sequence import commit_trace

Moves = Mapping[int, list[Move]]

SPOTS = {
    "spot": SpotOptions(),
    "paths": SpotOptions(merged=False),
    "spine": SpotOptions(chain=True),
    "no_hedge": SpotOptions(hedge_below=0.0),
    "gamma": SpotOptions(gamma=0.1),
    "uncoupled": SpotOptions(coupled=False),
}
ORACLES: tuple[OracleKind, ...] = ("position", "token", "joint")
NAMES = (*SPOTS, "chain", "uncoupled_chain", "confidence", *ORACLES, "hostile")


class Outcome(NamedTuple):
    """A finished sample down to the last bit; costs left out."""

    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    trace: CommitTrace


class Mode(NamedTuple):
    """What an engine does with full drafts, stores and padding."""

    full_drafts: FullDrafts
    fused_store: bool = True
    padded: bool = False


MODES = (
    Mode("look_through"),
    Mode("reuse"),
    Mode("drop"),
    Mode("look_through", padded=True),
    Mode("reuse", fused_store=False),
    Mode("drop", fused_store=False, padded=True),
)


def order_model() -> OrderModel:
    """A random one, as small as they get."""
    torch.manual_seed(0)
    return OrderModel(OrderModelShape(width=8, layers=1, heads=2, feedforward=8)).eval()


def make_drafter(name: str, *, rule: Rule, moves: Moves) -> Drafter:
    """A drafter for toy targets; ``moves`` are for the oracles."""
    if name in SPOTS:
        return SpotDrafter(order_model(), rule=rule, mask_id=MASK_ID, options=SPOTS[name])
    if name == "hostile":
        return Hostile(7, mask_id=MASK_ID, num_tokens=NUM_TOKENS)
    if name == "confidence":
        return ConfidenceTreeDrafter(rule=rule, mask_id=MASK_ID)
    if name.endswith("chain"):
        return ChainDrafter(rule=rule, mask_id=MASK_ID, coupled=name == "chain")
    return OracleDrafter(
        next(kind for kind in ORACLES if kind == name), moves, rule=rule, mask_id=MASK_ID
    )


def prompts(num_prompt: int, *, keys: int, limits: Limits) -> list[Sample]:
    """Samples with several keys for each table of ``toy.mixed_table``; keys have 64 bits."""
    rng, found = np.random.default_rng(num_prompt), []
    for kind in range(len(TABLES)):
        prompt = (kind, *(int(t) for t in rng.integers(0, NUM_TOKENS, num_prompt - 1)))
        for number in range(keys):
            key = (number * len(TABLES) + kind + 1) * 0x9E3779B97F4A7C15 % 2**64
            found.append(Sample(prompt_ids=prompt, key=key, limits=limits))
    return found


def decode_one(
    target: Target,
    sample: Sample,
    *,
    rule: Rule,
    drafter: Drafter | None = None,
    budget: int = 0,
    verifier: VerifierName = "coupled",
) -> Outcome:
    """By the reference decoder; without a drafter, the definition of the output."""
    decoder = ReferenceDecoder(target, rule=rule, drafter=drafter, budget=budget, verifier=verifier)
    ids, reason, trajectory = decoder.decode(sample)
    return Outcome(ids, reason, commit_trace(trajectory))


def decode_all(
    target: Target,
    samples: list[Sample],
    *,
    rule: Rule,
    drafter: Drafter | None = None,
    budget: int = 0,
    verifier: VerifierName = "coupled",
    mode: Mode = MODES[0],
    batch: int = 8,
    num_pages: int = 100,
) -> list[Outcome]:
    """By the engine, checking its books after every round."""
    engine = Engine(
        target,
        settings=EngineSettings(
            rule=rule,
            batch=batch,
            num_pages=num_pages,
            traced=True,
            verifier=verifier,
            full_drafts=mode.full_drafts,
            fused_store=mode.fused_store,
            padded=mode.padded,
        ),
        limits=limits_of(samples),
        drafter=drafter,
        budget=FixedBudget(budget),
    )
    for row, sample in enumerate(samples):
        engine.add(_request(row, sample))
    return _finish(engine)


def limits_of(samples: list[Sample]) -> Callable[[SampleRequest], Limits]:
    """Limits by row."""
    return lambda request: samples[request.row].limits


def _request(row: int, sample: Sample) -> SampleRequest:
    return SampleRequest(
        shard=0,
        row=row,
        sample=0,
        prompt_ids=sample.prompt_ids,
        key=sample.key,
        max_tokens=sample.limits.max_tokens,
    )


def _finish(engine: Engine) -> list[Outcome]:
    found: dict[int, Outcome] = {}
    while engine.has_work():
        for result in engine.step():
            assert result.trace is not None, "traced"
            outcome = Outcome(result.token_ids, result.finish_reason, result.trace)
            found[result.request.row] = outcome
        engine.check()
    return [found[row] for row in sorted(found)]
