"""Who works next: events go in, instructions come out.

No clock, no input or output, no randomness: the same events give the same instructions, so a
history can be replayed. Everything here is about cost. Whether a shard is committed is decided in
storage; the scheduler is told.

Order: the dearest pending shard goes first, to the worker that has least. A worker holds up to
`capacity` shards, so that rows of the next one can enter as rows of the last one leave; but a shard
that would only wait behind another is kept back for a worker that is expected and not here yet.

Workers: `num_workers` are expected at the start; for each, the driver reports that it joined or, if
it never came up, that it was lost. A lost worker is replaced while there is work for it. Workers
that keep dying with empty hands are a fault of the place, not of a shard: after some in a row they
are not replaced, and when none is left the remaining shards are given up.

The driver sends one `Tick` first (a job may be complete already) and stops after `Finished` or
`Drained`; whatever it sends later changes nothing, and late workers are released.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from functools import singledispatchmethod
from typing import get_args

from schedulers.errors import SchedulerError
from schedulers.events import (
    DrainRequested,
    Event,
    ShardCommitted,
    ShardFailed,
    ShardLost,
    Tick,
    WorkerJoined,
    WorkerLost,
)
from schedulers.history import Step
from schedulers.instructions import (
    Assign,
    Drained,
    Finished,
    GiveUp,
    Instruction,
    Release,
    ReplaceWorker,
    Seal,
)
from schedulers.states import Budget, Shard, ShardState


class Scheduler:
    """The state machine of a run.

    `shards` are pairs of index and expected cost; those in `committed` are done. `num_workers` is
    the number of workers asked for. `attempts` bounds the failures of a shard that may be its own
    fault, `infrastructure_attempts` those that are not. A drain ends `drain_s` seconds after it
    was asked for, whatever is still running.
    """

    def __init__(
        self,
        shards: Iterable[tuple[int, float]],
        *,
        committed: Iterable[int] = (),
        attempts: int,
        capacity: int = 2,
        num_workers: int = 1,
        infrastructure_attempts: int = 32,
        drain_s: float = float("inf"),
    ) -> None:
        self._shards = {index: Shard(index=index, expected_cost=cost) for index, cost in shards}
        for index in committed:
            self._shards[index].state = "committed"
        self._num_in_state = Counter(shard.state for shard in self._shards.values())
        self._budget = Budget(attempts=attempts, infrastructure_attempts=infrastructure_attempts)
        self._capacity = capacity
        self._drain_s = drain_s
        self._drain_end: float | None = None
        # All pending shards and no others, the next one last.
        self._queue = sorted(
            shard.rank for shard in self._shards.values() if shard.state == "pending"
        )
        self._held: dict[str, set[int]] = {}  # by worker, in order of joining
        self._gone: set[str] = set()  # lost or released: never heard again
        self._num_expected = num_workers  # asked for, and neither joined nor lost yet
        self._num_barren_losses = 0  # lost with empty hands, in a row
        self._max_barren_losses = attempts * num_workers
        self._is_over = False
        self.history: list[Step] = []

    @property
    def num_pending(self) -> int:
        """Shards that nobody works on."""
        return self._num_in_state["pending"]

    @property
    def num_leased(self) -> int:
        """Shards that somebody works on."""
        return self._num_in_state["leased"]

    @property
    def num_committed(self) -> int:
        """Shards with a commit record."""
        return self._num_in_state["committed"]

    @property
    def num_failed(self) -> int:
        """Shards that were given up."""
        return self._num_in_state["failed"]

    @property
    def num_workers(self) -> int:
        """Workers that joined and are neither lost nor released."""
        return len(self._held)

    @property
    def is_draining(self) -> bool:
        """Whether no more work is given out because somebody asked for that."""
        return self._drain_end is not None

    @property
    def is_over(self) -> bool:
        """Whether `Finished` or `Drained` was said."""
        return self._is_over

    def shards_of(self, worker: str) -> frozenset[int]:
        """What a worker holds; nothing if it is not known."""
        return frozenset(self._held.get(worker, ()))

    def state_of(self, shard: int) -> ShardState:
        """The state of a shard."""
        return self._shards[shard].state

    def handle(self, event: Event) -> list[Instruction]:
        """Take one event and say what follows from it."""
        instructions = self._after_end(event) if self._is_over else self._handle(event)
        if instructions or not isinstance(event, Tick):  # an idle tick changes nothing
            self.history.append(Step(event, tuple(instructions)))
        return instructions

    def _handle(self, event: Event) -> list[Instruction]:
        instructions = self._take(event)
        if not self.is_draining:
            instructions += self._assign()
        instructions += self._release_idle()
        return instructions + self._conclude(event.now)

    def _after_end(self, event: Event) -> list[Instruction]:
        return [Release(worker=event.worker)] if isinstance(event, WorkerJoined) else []

    @singledispatchmethod
    def _take(self, event: Event) -> list[Instruction]:
        """Note what happened; `Tick` needs nothing but the decisions that follow every event."""
        assert isinstance(event, Tick), f"{event!r} is not an event"
        return []

    @_take.register
    def _take_joined(self, event: WorkerJoined) -> list[Instruction]:
        if event.worker in self._held:
            raise SchedulerError(f"{event}: it is here already", history=self.history)
        if event.worker in self._gone:
            return [Release(worker=event.worker)]
        self._num_expected = max(0, self._num_expected - 1)
        self._held[event.worker] = set()
        return []

    @_take.register
    def _take_lost(self, event: WorkerLost) -> list[Instruction]:
        if event.worker in self._gone:
            return []
        self._gone.add(event.worker)
        if event.worker not in self._held:
            self._num_expected = max(0, self._num_expected - 1)
        held = sorted(self._held.pop(event.worker, ()))
        for index in event.committed:
            self._move(self._known(index, event=event), state="committed")
        self._num_barren_losses = 0 if held else self._num_barren_losses + 1
        reason = f"worker {event.worker} was lost ({event.reason})"
        infrastructure = event.reason == "infrastructure"
        instructions: list[Instruction] = []
        for index in held:
            instructions += self._charge(index, reason=reason, infrastructure=infrastructure)
        return instructions + self._replace(event.worker)

    @_take.register
    def _take_committed(self, event: ShardCommitted | ShardLost) -> list[Instruction]:
        shard = self._known(event.shard, event=event)
        self._held.get(event.worker, set()).discard(event.shard)
        self._move(shard, state="committed")
        self._num_barren_losses = 0
        return []

    @_take.register
    def _take_failed(self, event: ShardFailed) -> list[Instruction]:
        self._known(event.shard, event=event)
        held = self._held.get(event.worker, set())
        if event.shard not in held:  # from a worker taken for lost: it was charged for that
            return []
        held.remove(event.shard)
        self._num_barren_losses = 0
        return self._charge(event.shard, reason=event.error, infrastructure=event.infrastructure)

    @_take.register
    def _take_drain(self, event: DrainRequested) -> list[Instruction]:
        if self._drain_end is None:
            self._drain_end = event.now + self._drain_s
        return []

    def _known(self, index: int, *, event: Event) -> Shard:
        if index not in self._shards:
            raise SchedulerError(f"{event}: there is no such shard", history=self.history)
        return self._shards[index]

    def _move(self, shard: Shard, *, state: ShardState) -> None:
        """The only place where a shard changes its state."""
        if shard.state == "pending":
            del self._queue[bisect_left(self._queue, shard.rank)]
        self._num_in_state[shard.state] -= 1
        shard.state = state
        self._num_in_state[state] += 1
        if state == "pending":
            insort(self._queue, shard.rank)

    def _charge(self, index: int, *, reason: str, infrastructure: bool) -> list[Instruction]:
        """An attempt ended without a commit, and its lease with it."""
        shard = self._shards[index]
        if shard.state == "committed":
            return []
        if infrastructure:
            shard.num_infrastructure_failures += 1
        else:
            shard.num_failures += 1
        if not self._budget.is_spent(shard):
            self._move(shard, state="pending")
            return []
        self._move(shard, state="failed")
        return [GiveUp(shard=index, reason=reason)]

    def _replace(self, worker: str) -> list[Instruction]:
        has_work = self.num_pending > self._num_expected
        is_hopeless = self._num_barren_losses >= self._max_barren_losses
        if self.is_draining or not has_work or is_hopeless:
            return []
        self._num_expected += 1
        return [ReplaceWorker(worker=worker)]

    def _assign(self) -> list[Instruction]:
        instructions: list[Instruction] = []
        while self._queue and self._held:
            worker = min(self._held, key=lambda name: len(self._held[name]))
            num_held = len(self._held[worker])
            is_kept_back = num_held > 0 and self.num_pending <= self._num_expected
            if num_held >= self._capacity or is_kept_back:
                break
            shard = self._shards[self._queue[-1].shard]
            self._move(shard, state="leased")
            self._held[worker].add(shard.index)
            instructions.append(Assign(worker=worker, shard=shard.index))
        return instructions

    def _release_idle(self) -> list[Instruction]:
        """Whoever holds nothing now will not be needed: a shard that comes back frees its place."""
        idle = [worker for worker, held in self._held.items() if not held]
        for worker in idle:
            del self._held[worker]
            self._gone.add(worker)
        return [Release(worker=worker) for worker in idle]

    def _conclude(self, now: float) -> list[Instruction]:
        instructions = self._give_up_hopeless()
        if self.num_committed == len(self._shards):
            instructions += [Seal(), Finished()]
        elif not self.num_pending and not self.num_leased:
            instructions += [Finished()]
        elif self._drain_end is not None and (not self.num_leased or now >= self._drain_end):
            instructions += [Drained()]
        self._is_over = bool(instructions)
        return instructions

    def _give_up_hopeless(self) -> list[Instruction]:
        if self._held or self._num_expected or self.is_draining:
            return []
        pending = [self._shards[rank.shard] for rank in reversed(self._queue)]
        for shard in pending:
            self._move(shard, state="failed")
        reason = f"{self._num_barren_losses} workers in a row were lost before they took a shard"
        return [GiveUp(shard=shard.index, reason=reason) for shard in pending]

    def check(self) -> None:
        """Assert every invariant; cheap enough for tests, not for every event of a big job."""
        by_state = {state: self._in_state(state) for state in get_args(ShardState)}
        assert self._num_in_state.total() == len(self._shards)
        for state, shards in by_state.items():
            assert self._num_in_state[state] == len(shards)
        assert self._queue == sorted(shard.rank for shard in by_state["pending"])
        held = [index for held in self._held.values() for index in held]
        assert len(held) == len(set(held)), "a shard has at most one holder"
        leased = {shard.index for shard in by_state["leased"]}
        assert {index for index in held if self.state_of(index) != "committed"} == leased
        self._check_workers()
        self._check_budgets(by_state)

    def _check_workers(self) -> None:
        assert not self._gone & self._held.keys()
        assert self._num_expected >= 0
        for held in self._held.values():
            assert 0 < len(held) <= self._capacity, "idle workers are released"

    def _check_budgets(self, by_state: dict[ShardState, list[Shard]]) -> None:
        for state in ("pending", "leased"):
            assert not any(self._budget.is_spent(shard) for shard in by_state[state])

    def _in_state(self, state: ShardState) -> list[Shard]:
        return [shard for shard in self._shards.values() if shard.state == state]
