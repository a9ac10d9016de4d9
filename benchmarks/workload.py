"""The bundled models and the held-out prompts that everything is measured on."""

from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from examples.tiny.splits import problems
from manifests.hashing import hash64
from manifests.staged import StagedRow
from spot.drafters.checkpoint import read_config
from spot.drafters.spiffy_graph import read_graph
from spot.numerics import set_threads
from spot.targets.paged import PagedTarget
from workers.samples import SampleRequest
from workers.tokenization import Tokenization

TINY = Path(__file__).parents[1] / "examples" / "tiny"
SEED = 77
MAX_TOKENS = 256
THREADS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Directories of the target and its drafters, and what is decoded."""

    target: Path = TINY / "target"
    drafter: Path = TINY / "drafter"
    sets: Path = TINY / "sets"
    spiffy: Path = TINY / "spiffy"
    num_prompts: int
    max_tokens: int = MAX_TOKENS

    def check(self) -> None:
        """Raises DrafterError if a drafter cannot be used."""
        read_config(self.drafter, kind="order")
        read_config(self.sets, kind="sets")
        read_graph(self.spiffy)


class Loaded(NamedTuple):
    """What a process needs to decode."""

    target: PagedTarget
    requests: list[SampleRequest]


@cache
def load(workload: Workload) -> Loaded:
    """Load once per process; threads are set first, since they belong to the numerics."""
    set_threads(THREADS)
    target = PagedTarget.load(workload.target)
    chosen = islice(problems("held_out", seed=SEED), workload.num_prompts)
    rows = [StagedRow(row=i, id=str(i), prompt=p.prompt) for i, p in enumerate(chosen)]
    requests = [request_of(row, target, max_tokens=workload.max_tokens) for row in rows]
    return Loaded(target, requests)


def request_of(
    row: StagedRow, target: PagedTarget, *, max_tokens: int = MAX_TOKENS
) -> SampleRequest:
    """What the engine is asked for a row."""
    tokenization = Tokenization(
        target.tokenizer,
        max_positions=target.spec.max_positions,
        max_tokens=max_tokens,
        length=target.spec.block_length,
    )
    return SampleRequest(
        shard=0,
        row=row.row,
        sample=0,
        prompt_ids=tokenization.encode(row),
        key=hash64("benchmark", row.row),
        max_tokens=max_tokens,
    )
