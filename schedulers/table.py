"""The shards of a run by state, with a queue for each state in which they wait."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import get_args

from schedulers.limits import Limits
from schedulers.states import Rank, Shard, ShardState


class Table:
    """All shards; `move` is the only place where one changes its state."""

    def __init__(
        self, shards: Iterable[tuple[int, float]], *, committed: Iterable[int], limits: Limits
    ) -> None:
        self._shards = {index: Shard(index=index, expected_cost=cost) for index, cost in shards}
        self._limits = limits
        for index in committed:
            self._shards[index].state = "committed"
        self._num = Counter(shard.state for shard in self)
        # Those that wait and no others, the next one last.
        self._waiting: dict[ShardState, list[Rank]] = {
            "pending": sorted(shard.rank for shard in self if shard.state == "pending"),
            "suspect": [],
        }
        self._rests: list[tuple[float, int]] = []  # a heap; stale where the shard rests no more

    def __iter__(self) -> Iterator[Shard]:
        return iter(self._shards.values())

    def __len__(self) -> int:
        return len(self._shards)

    def __contains__(self, index: int) -> bool:
        return index in self._shards

    def __getitem__(self, index: int) -> Shard:
        return self._shards[index]

    def num(self, *states: ShardState) -> int:
        """Shards in any of these states."""
        return sum(self._num[state] for state in states)

    @property
    def num_waiting(self) -> int:
        """Shards that nobody works on and somebody has to."""
        return self.num("pending", "suspect", "resting")

    def next(self, state: ShardState) -> Shard | None:
        """The dearest that waits in this state."""
        queue = self._waiting[state]
        return self._shards[queue[-1].shard] if queue else None

    def in_order(self) -> list[Shard]:
        """All that wait, the dearest first."""
        waiting = [s for s in self if s.state in ("pending", "suspect", "resting")]
        return sorted(waiting, key=lambda shard: shard.rank, reverse=True)

    def move(self, shard: Shard, *, state: ShardState) -> None:
        """Bring a shard into another state."""
        queue = self._waiting.get(shard.state)
        if queue is not None:
            del queue[bisect_left(queue, shard.rank)]
        self._num[shard.state] -= 1
        shard.state = state
        self._num[state] += 1
        if state in self._waiting:
            insort(self._waiting[state], shard.rank)

    def requeue(self, shard: Shard) -> None:
        """Let the shard wait for a worker."""
        suspect = shard.suspicion.is_suspect(self._limits)
        self.move(shard, state="suspect" if suspect else "pending")

    def rest(self, shard: Shard, *, until: float) -> None:
        """Let the shard wait for a time first."""
        self.move(shard, state="resting")
        heappush(self._rests, (until, shard.index))

    def wake(self, now: float) -> None:
        """Let those wait for a worker whose rest is over."""
        while self._rests and self._rests[0][0] <= now:
            shard = self._shards[heappop(self._rests)[1]]
            if shard.state == "resting":
                self.requeue(shard)

    def check(self) -> None:
        """Assert every invariant."""
        by_state = {state: [s for s in self if s.state == state] for state in get_args(ShardState)}
        assert all(self._num[state] == len(shards) for state, shards in by_state.items())
        for state, queue in self._waiting.items():
            assert queue == sorted(shard.rank for shard in by_state[state])
        resting = {shard.index for shard in by_state["resting"]}
        assert resting <= {index for _, index in self._rests}
        for shard in self:
            waits_or_runs = shard.state not in ("committed", "failed")
            assert not (waits_or_runs and not shard.num_holders and shard.is_spent(self._limits))
            assert (shard.state == "leased") <= (shard.num_holders in (1, 2))
            assert shard.num_holders == 0 or shard.state in ("leased", "committed")
