"""Whether slots stay filled across shards: a stream of many small shards against one large one.

A worker holds up to two shards; the next one's rows enter as the last one's leave. Draft-free, by
the threshold rule, since nothing but the feeding differs; and short, as rows then come and go.
"""

from collections import Counter, deque
from dataclasses import replace

from benchmarks.batching.cells import Cell
from benchmarks.batching.runs import Bench, fixed
from workers.samples import SampleRequest

NUM_SHARDS, ROWS = 20, 64
HELD = 2
MAX_TOKENS = 16
CELL = Cell(rule="threshold", temperature=0.0, concurrency=32)


def stream_over_single_shard(
    bench: Bench, *, num_shards: int = NUM_SHARDS, rows: int = ROWS, cell: Cell = CELL
) -> float:
    """Tokens per second of the stream over those of one shard with all rows."""
    given = [bench.requests[i % len(bench.requests)] for i in range(num_shards * rows)]
    every = [
        replace(request, row=i, key=i, max_tokens=min(MAX_TOKENS, request.max_tokens))
        for i, request in enumerate(given)
    ]
    shards = [every[first : first + rows] for first in range(0, len(every), rows)]
    streamed = tokens_per_s(bench, shards, cell=cell)
    return streamed / tokens_per_s(bench, [every], cell=cell)


def tokens_per_s(bench: Bench, shards: list[list[SampleRequest]], *, cell: Cell) -> float:
    """Feed shards as a worker does: the next one when less than two are held."""
    every = [request for shard in shards for request in shard]
    engine = bench.engine(cell, drafter=None, budget=fixed("draft_free"), requests=every)
    waiting, open_rows, tokens = deque(enumerate(shards)), Counter[int](), 0
    began = bench.clock()
    while waiting or engine.has_work():
        while waiting and len(open_rows) < HELD:
            number, shard = waiting.popleft()
            open_rows[number] = len(shard)
            for request in shard:
                engine.add(replace(request, shard=number))
        for result in engine.step():
            tokens += result.tokens_with_stop
            open_rows[result.request.shard] -= 1
        open_rows = +open_rows  # shards without open rows are no longer held
    return tokens / (bench.clock() - began)
