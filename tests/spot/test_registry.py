"""Drafters by name: what each name makes, and what is refused."""

from pathlib import Path
from typing import get_args

import pytest
import torch

from manifests.drafting import TRAITS
from manifests.drafting import Method as JobMethod
from spot.drafters.chain import ChainDrafter
from spot.drafters.checkpoint import (
    DrafterConfig,
    DrafterError,
    Kind,
    OrderModelShape,
    save_drafter,
)
from spot.drafters.confidence_tree import ConfidenceTreeDrafter
from spot.drafters.order_model import OrderModel
from spot.drafters.registry import Method, make_drafter, resolve_method
from spot.drafters.set_model import SetModel
from spot.drafters.sets import SetsDrafter, StaleSetsDrafter
from spot.drafters.spiffy import SpiffyDrafter
from spot.drafters.spiffy_graph import SpiffyGraph, SpiffyNode, write_graph
from spot.drafters.spot import SpotDrafter
from spot.transition import Rule

STRICT, THRESHOLD = Rule(), Rule(name="threshold", tau=0.9)
SHAPE = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)


def directory(folder: Path, kind: Kind) -> Path:
    """A drafter that knows nothing."""
    config = DrafterConfig(kind=kind, shape=SHAPE, block_length=8, target="t", data="d")
    torch.manual_seed(0)
    save_drafter(OrderModel(SHAPE) if kind == "order" else SetModel(SHAPE), config, folder)
    return folder


def test_jobs_and_the_registry_know_the_same_methods() -> None:
    assert set(get_args(Method)) == set(get_args(JobMethod)) == set(TRAITS)


@pytest.mark.parametrize(
    ("method", "kind", "made"),
    [
        (None, "order", SpotDrafter),
        (None, "sets", SetsDrafter),
        ("spot", "order", SpotDrafter),
        ("spot_chain", "order", SpotDrafter),
        ("spot_sets", "sets", SetsDrafter),
    ],
)
def test_a_learned_drafter_is_loaded_from_its_directory(
    tmp_path: Path, method: Method | None, kind: Kind, made: type[object]
) -> None:
    rule = STRICT if kind == "order" else THRESHOLD
    drafter = make_drafter(method, directory(tmp_path, kind), rule=rule, mask_id=3)
    assert type(drafter) is made


@pytest.mark.parametrize(
    ("method", "rule", "made"),
    [
        ("chain", STRICT, ChainDrafter),
        ("confidence_tree", STRICT, ConfidenceTreeDrafter),
        ("sets_stale", THRESHOLD, StaleSetsDrafter),
    ],
)
def test_a_baseline_needs_no_directory(method: Method, rule: Rule, made: type[object]) -> None:
    assert type(make_drafter(method, None, rule=rule, mask_id=3)) is made


def test_a_calibrated_graph_is_loaded_from_its_directory(tmp_path: Path) -> None:
    node = SpiffyNode(pairs=((0, 0),), parents=(-1,), count=1)
    graph = SpiffyGraph(
        lookahead=1, size=1, block_length=8, target="t", data="d", num_roots=1, nodes=(node,)
    )
    write_graph(graph, tmp_path)
    assert isinstance(make_drafter("spiffy", tmp_path, rule=STRICT, mask_id=3), SpiffyDrafter)


@pytest.mark.parametrize("method", [None, "spot", "spot_chain", "spot_sets", "spiffy"])
def test_a_method_with_a_directory_is_refused_without_one(method: Method | None) -> None:
    with pytest.raises(DrafterError, match=r"drafter\.path is missing"):
        make_drafter(method, None, rule=STRICT, mask_id=3)


@pytest.mark.parametrize(("method", "kind"), [("spot_sets", "order"), ("spot_chain", "sets")])
def test_a_directory_of_another_kind_is_refused(tmp_path: Path, method: Method, kind: Kind) -> None:
    with pytest.raises(DrafterError, match=f"is a drafter of kind '{kind}'"):
        resolve_method(method, directory(tmp_path, kind))


def test_only_chains_are_drawn(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"drafter\.method is confidence_tree"):
        make_drafter("confidence_tree", None, rule=STRICT, mask_id=3, sampled=True)
