"""Random drafters, and rows that nobody measured."""

from pathlib import Path
from typing import Any

import torch

from benchmarks.document import Document, Machine, Row
from spot.drafters.checkpoint import DrafterConfig, OrderModelShape, save_drafter
from spot.drafters.order_model import OrderModel
from spot.drafters.set_model import SetModel
from spot.drafters.spiffy_graph import SpiffyGraph, SpiffyNode, write_graph

SMALL = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
MACHINE = Machine(
    processor="abacus", cores=2, memory_gib=8.0, torch="2.0", threads=1, date="2020-02-20"
)


def write_drafters(folder: Path) -> None:
    """An order model, a set model and a Spiffy graph, all random."""
    torch.manual_seed(0)
    config = DrafterConfig(shape=SMALL, block_length=32, target="t", data="d")
    save_drafter(OrderModel(SMALL), config, folder / "drafter")
    sets = config.model_copy(update={"kind": "sets"})
    save_drafter(SetModel(SMALL), sets, folder / "sets")
    nodes = (
        SpiffyNode(pairs=((0, 0),), parents=(-1,), count=5),
        SpiffyNode(pairs=((0, 0), (1, 0)), parents=(0,), count=3),
    )
    graph = SpiffyGraph(
        lookahead=2, size=4, block_length=32, target="t", data="d", num_roots=9, nodes=nodes
    )
    write_graph(graph, folder / "spiffy")


def row(method: str, budget: int, nfe: list[int], **values: Any) -> Row:
    """A row whose samples take 12 transitions each."""
    mean = sum(nfe) / len(nfe)
    given: dict[str, Any] = {
        "protocol": "early_stop",
        "rule": "strict",
        "tau": None,
        "temperature": 0.0,
        "method": method,
        "budget": budget,
        "options": {},
        "samples": len(nfe),
        "nfe": mean,
        "transitions": 12.0,
        "reduction": 12.0 / mean,
        "accepted_per_round": 1.0,
        "positions": 100.0,
        "identical": True,
        "gamma": 0.0,
        "store_forwards": 0.0,
        "sample_nfe": nfe,
        "sample_transitions": [12] * len(nfe),
    }
    return Row.model_validate(given | values)


def document(*rows: Row) -> Document:
    """A result of these rows."""
    return Document(machine=MACHINE, rows=rows)
