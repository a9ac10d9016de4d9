"""A calibrated draft graph on disk: which (position rank, token rank) formulas to draft (Spiffy).

A node is a set of pairs: fill the i-th most confident masked position with its j-th token, both
ranked by the stale conditionals at the root. Nodes stand in the order in which calibration took
them, so that every prefix of a graph is the calibrated graph of that size. Read without torch.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from spot.drafters.checkpoint import DrafterError

GRAPH = "spiffy.json"
ROOT = -1
LOOKAHEAD = 6
GRAPH_SIZE = 24
TOKEN_RANKS = 32  # ranks that stale conditionals can tell apart

Pair = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0, lt=TOKEN_RANKS)]]


class SpiffyNode(BaseModel):
    """One formula."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    pairs: tuple[Pair, ...] = Field(min_length=1, description="(position rank, token rank), sorted")
    parents: tuple[int, ...] = Field(
        min_length=1, description="earlier nodes one transition before it; -1 is the root"
    )
    count: int = Field(ge=1, description="roots at which it was reached")


class SpiffyGraph(BaseModel):
    """What ``spiffy.json`` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["spotbatch-spiffy"] = "spotbatch-spiffy"
    version: Literal[1] = 1
    lookahead: int = Field(ge=1, description="transitions counted behind a root")
    size: int = Field(ge=1, description="most nodes that calibration was to take")
    block_length: int = Field(ge=1, description="block length it was calibrated at (positions)")
    target: str = Field(description="target it was calibrated on")
    data: str = Field(description="prompts it was calibrated on")
    num_roots: int = Field(ge=1, description="roots observed")
    nodes: tuple[SpiffyNode, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _is_a_connected_graph(self) -> "SpiffyGraph":
        if len(self.nodes) > self.size:
            raise ValueError(f"{len(self.nodes)} nodes exceed size {self.size}")
        for index in range(len(self.nodes)):
            self._check_pairs(index)
            self._check_parents(index)
        if len({node.pairs for node in self.nodes}) < len(self.nodes):
            raise ValueError("a formula is there twice")
        return self

    def _check_pairs(self, index: int) -> None:
        node = self.nodes[index]
        positions = [position for position, _ in node.pairs]
        if positions != sorted(set(positions)):
            raise ValueError(f"node {index}: position ranks must be distinct and ascending")
        if positions[-1] >= self.block_length:
            raise ValueError(f"node {index}: a block has {self.block_length} position ranks")
        if node.count > self.num_roots:
            raise ValueError(f"node {index}: counted more often than the {self.num_roots} roots")

    def _check_parents(self, index: int) -> None:
        pairs = set(self.nodes[index].pairs)
        for parent in self.nodes[index].parents:
            if not ROOT <= parent < index:
                raise ValueError(f"node {index}: its parents must be earlier nodes")
            if parent != ROOT and not pairs > set(self.nodes[parent].pairs):
                raise ValueError(f"node {index}: parent {parent} is no part of it")

    def depths(self) -> list[int]:
        """Transitions from the root to each node, by the shortest way."""
        depths: list[int] = []
        for node in self.nodes:
            depths.append(1 + min(0 if p == ROOT else depths[p] for p in node.parents))
        return depths

    def masses(self) -> list[float]:
        """Share of roots at which each node was reached, at most that of its heaviest parent.

        A node of several parents may be reached more often than each of them; drafted behind one,
        it cannot be accepted more often than that one.
        """
        masses: list[float] = []
        for node in self.nodes:
            heaviest = max(1.0 if p == ROOT else masses[p] for p in node.parents)
            masses.append(min(node.count / self.num_roots, heaviest))
        return masses


def write_graph(graph: SpiffyGraph, path: str | Path) -> None:
    """Write ``spiffy.json`` into a drafter directory; it appears whole or not at all."""
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / f".{GRAPH}.partial"
    partial.write_text(graph.model_dump_json(indent=1) + "\n")
    partial.replace(directory / GRAPH)


def read_graph(path: str | Path) -> SpiffyGraph:
    """Read and check ``spiffy.json``.

    Raises:
        DrafterError: missing, of another format, or no connected graph.
    """
    file = Path(path) / GRAPH
    if not file.is_file():
        raise DrafterError(f"{file} is missing: drafter.path must hold a calibrated Spiffy graph")
    try:
        return SpiffyGraph.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "nodes"
        raise DrafterError(
            f"{file} is not a Spiffy graph of this format ({where}: {first['msg']}): "
            "calibrate it again"
        ) from None


def check_graph(path: str | Path, block_length: int) -> list[str]:
    """Check a drafter directory against a target's block length; returns warnings.

    Raises:
        DrafterError: the graph cannot be used at all.
    """
    graph = read_graph(path)
    if graph.block_length == block_length:
        return []
    return [
        f"drafter.path {path} was calibrated at block length {graph.block_length}, the target has "
        f"{block_length}: outputs stay exact, drafts may be worse"
    ]
