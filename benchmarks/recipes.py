"""From a setting to its drafter and engine settings."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, cast

from benchmarks.document import Options
from benchmarks.settings import DRAFT_FREE, ORACLES, Setting
from benchmarks.workload import Workload
from spot.drafters.base import Drafter
from spot.drafters.chain import ChainDrafter
from spot.drafters.checkpoint import read_config
from spot.drafters.confidence_tree import ConfidenceTreeDrafter
from spot.drafters.oracle import OracleDrafter, OracleKind
from spot.drafters.sets import SetsDrafter, StaleSetsDrafter
from spot.drafters.spiffy import SpiffyDrafter
from spot.drafters.spot import SpotDrafter, SpotOptions
from spot.trajectory import Move
from spot.transition import Rule
from spot.verification import VerifierName
from workers.engine import EngineSettings

UNCALIBRATED_GAMMA = 0.1
# The greedy verifier accepts the best tokens, so those are what is drafted for it.
RECIPES = {
    "spot": SpotOptions(),
    "spot_gamma": SpotOptions(),
    "spot_chain": SpotOptions(chain=True),
    "uncoupled": SpotOptions(coupled=False),
    "greedy": SpotOptions(coupled=False),
}
VERIFIERS: dict[str, VerifierName] = {"greedy": "greedy", "rejection_chain": "rejection"}
SPOT_FIELDS = frozenset(f.name for f in fields(SpotOptions))


def resolved(setting: Setting, workload: Workload) -> Setting:
    """Name the floor of ``spot_gamma`` among the options where the drafter has none of its own."""
    if setting.method != "spot_gamma" or read_config(workload.drafter).gamma is not None:
        return setting
    return replace(setting, options=setting.options | {"gamma": UNCALIBRATED_GAMMA})


def spot_options(setting: Setting, workload: Workload) -> SpotOptions:
    """The order model's recipe under a setting."""
    chosen = RECIPES[setting.method]
    if setting.method == "spot_gamma":
        chosen = replace(chosen, gamma=read_config(workload.drafter).gamma or 0.0)
    return replace(chosen, **_part(setting.options, spot=True))


def gamma_of(setting: Setting, workload: Workload) -> float:
    """The mass floor in force."""
    return spot_options(setting, workload).gamma if setting.method in RECIPES else 0.0


def drafter_of(
    setting: Setting, workload: Workload, *, mask_id: int, moves: Mapping[int, list[Move]]
) -> Drafter | None:
    """The drafter; None when draft-free.

    Args:
        setting: what is measured.
        workload: where drafters lie.
        mask_id: the target's mask.
        moves: draft-free transitions by sample key, for oracles.
    """
    if setting.method == DRAFT_FREE:
        return None
    if setting.method in ORACLES:
        kind = cast(OracleKind, setting.method.removeprefix("oracle_"))
        return OracleDrafter(kind, moves, rule=setting.rule, mask_id=mask_id)
    if setting.method in RECIPES:
        options = spot_options(setting, workload)
        return SpotDrafter.load(
            workload.drafter, rule=setting.rule, mask_id=mask_id, options=options
        )
    return _other(setting.method, workload, rule=setting.rule, mask_id=mask_id)


def _other(method: str, workload: Workload, *, rule: Rule, mask_id: int) -> Drafter:
    match method:
        case "chain" | "rejection_chain":
            sampled = method == "rejection_chain"
            return ChainDrafter(rule=rule, mask_id=mask_id, sampled=sampled)
        case "confidence_tree":
            return ConfidenceTreeDrafter(rule=rule, mask_id=mask_id)
        case "spiffy":
            return SpiffyDrafter.load(workload.spiffy, rule=rule, mask_id=mask_id)
        case "spot_sets":
            return SetsDrafter.load(workload.sets, rule=rule, mask_id=mask_id)
        case "sets_stale":
            return StaleSetsDrafter(rule=rule, mask_id=mask_id)
    raise AssertionError(f"no recipe for {method}")


def engine_settings(setting: Setting, *, batch: int, num_pages: int) -> EngineSettings:
    """What the engine is told."""
    return EngineSettings(
        rule=setting.rule,
        batch=batch,
        num_pages=num_pages,
        traced=True,
        verifier=VERIFIERS.get(setting.method, "coupled"),
        **_part(setting.options, spot=False),
    )


def _part(options: Options, *, spot: bool) -> dict[str, Any]:
    """The options that belong to the order model's recipe, or those that belong to the engine."""
    return {name: value for name, value in options.items() if (name in SPOT_FIELDS) == spot}
