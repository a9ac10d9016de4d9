"""Drafters by the name of their method; importing this needs no torch.

A method without a directory is a baseline without parameters. Where no method is named, the
directory says which one it is made for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from spot.drafters.checkpoint import DrafterError, Kind, read_config

if TYPE_CHECKING:
    from spot.drafters.base import Drafter
    from spot.transition import Rule

Method = Literal[
    "spot",
    "spot_chain",
    "spot_sets",
    "sets_stale",
    "chain",
    "confidence_tree",
    "spiffy",
    "stale_rule",
]

_METHOD_FOR: dict[Kind, Method] = {"order": "spot", "sets": "spot_sets"}
_KIND_FOR: dict[Method, Kind] = {"spot": "order", "spot_chain": "order", "spot_sets": "sets"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    rule: "Rule"
    mask_id: int
    gamma: float
    coupled: bool
    sampled: bool


def resolve_method(method: Method | None, path: str | Path | None) -> Method:
    """The method that is meant.

    Raises:
        DrafterError: there is neither method nor directory, or they do not go together.
    """
    if method is None:
        return _METHOD_FOR[read_config(_directory(path)).kind]
    if method in _KIND_FOR:
        read_config(_directory(path), kind=_KIND_FOR[method])
    return method


def make_drafter(
    method: Method | None,
    path: str | Path | None,
    *,
    rule: "Rule",
    mask_id: int,
    gamma: float = 0.0,
    coupled: bool = True,
    sampled: bool = False,
) -> "Drafter":
    """A loaded drafter.

    Args:
        method: how states are proposed; None for what the directory is made for.
        path: the drafter directory, for methods that have one.
        rule: the target's rule; where one of ours makes the same transitions, that is drafted for.
        mask_id: the mask.
        gamma: mass floor, for methods that have one.
        coupled: whether token hypotheses share the target's noise.
        sampled: whether drafts are drawn, with their laws; chains only.

    Raises:
        DrafterError: the directory is missing, unusable or of another method.
        ValueError: method and options do not go together.
    """
    meant = resolve_method(method, path)
    if sampled and meant != "chain":
        raise ValueError(f"only chains can be drawn, and drafter.method is {meant}")
    from spot.released import own_twin

    rule = own_twin(rule)
    options = _Options(rule=rule, mask_id=mask_id, gamma=gamma, coupled=coupled, sampled=sampled)
    return _MAKERS[meant](path, options)


def _directory(path: str | Path | None) -> str | Path:
    if path is None:
        raise DrafterError("drafter.path is missing: name a drafter directory")
    return path


def _spot(path: str | Path | None, options: _Options, *, chain: bool = False) -> "Drafter":
    from spot.drafters.spot import SpotDrafter, SpotOptions

    recipe = SpotOptions(gamma=options.gamma, chain=chain, coupled=options.coupled)
    return SpotDrafter.load(
        _directory(path), rule=options.rule, mask_id=options.mask_id, options=recipe
    )


def _spot_chain(path: str | Path | None, options: _Options) -> "Drafter":
    return _spot(path, options, chain=True)


def _spot_sets(path: str | Path | None, options: _Options) -> "Drafter":
    from spot.drafters.sets import SetsDrafter

    return SetsDrafter.load(
        _directory(path),
        rule=options.rule,
        mask_id=options.mask_id,
        gamma=options.gamma,
        coupled=options.coupled,
    )


def _sets_stale(path: str | Path | None, options: _Options) -> "Drafter":
    from spot.drafters.sets import StaleSetsDrafter

    return StaleSetsDrafter(rule=options.rule, mask_id=options.mask_id, coupled=options.coupled)


def _chain(path: str | Path | None, options: _Options) -> "Drafter":
    from spot.drafters.chain import ChainDrafter

    return ChainDrafter(
        rule=options.rule,
        mask_id=options.mask_id,
        coupled=options.coupled,
        sampled=options.sampled,
    )


def _confidence_tree(path: str | Path | None, options: _Options) -> "Drafter":
    from spot.drafters.confidence_tree import ConfidenceTreeDrafter

    return ConfidenceTreeDrafter(
        rule=options.rule, mask_id=options.mask_id, coupled=options.coupled
    )


def _spiffy(path: str | Path | None, options: _Options) -> "Drafter":
    from spot.drafters.spiffy import SpiffyDrafter

    return SpiffyDrafter.load(
        _directory(path), rule=options.rule, mask_id=options.mask_id, coupled=options.coupled
    )


def _stale_rule(path: str | Path | None, options: _Options) -> "Drafter":
    from spot.drafters.stale_rule import StaleRuleDrafter

    return StaleRuleDrafter(rule=options.rule, mask_id=options.mask_id, coupled=options.coupled)


_MAKERS: dict[Method, Callable[[str | Path | None, _Options], "Drafter"]] = {
    "spot": _spot,
    "spot_chain": _spot_chain,
    "spot_sets": _spot_sets,
    "sets_stale": _sets_stale,
    "chain": _chain,
    "confidence_tree": _confidence_tree,
    "spiffy": _spiffy,
    "stale_rule": _stale_rule,
}
