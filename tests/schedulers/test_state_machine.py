"""Any order of events, zombies included, keeps every invariant and comes to an end.

The machine below is the world around the scheduler: it knows which actors really live, what is
really committed, and carries out instructions. Workers that were reported lost may live on.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

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
from schedulers.machine import Scheduler

ATTEMPTS = 2
INFRASTRUCTURE_ATTEMPTS = 4


class World(RuleBasedStateMachine):
    """Everything that a driver could report."""

    @initialize(
        costs=st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=1, max_size=8),
        num_workers=st.integers(1, 3),
        capacity=st.integers(1, 3),
        data=st.data(),
    )
    def start(
        self, costs: list[float], num_workers: int, capacity: int, data: st.DataObject
    ) -> None:
        self.committed = data.draw(st.sets(st.sampled_from(range(len(costs)))))
        self.num_shards = len(costs)
        self.settings = {
            "committed": sorted(self.committed),
            "attempts": ATTEMPTS,
            "capacity": capacity,
            "num_workers": num_workers,
            "infrastructure_attempts": INFRASTRUCTURE_ATTEMPTS,
            "drain_s": 10.0,
        }
        self.costs = costs
        self.scheduler = self.make()
        self.starting = num_workers
        self.num_names = 0
        self.capacity = capacity
        self.running: dict[str, set[int]] = {}  # workers that joined, by what they work on
        self.zombies: dict[str, set[int]] = {}  # reported lost, and yet working
        self.given_up: set[int] = set()
        self.is_over = False
        self.now = 0.0

    def make(self) -> Scheduler:
        return Scheduler(enumerate(self.costs), **self.settings)  # type: ignore[arg-type]

    def tell(self, event: Event) -> None:
        was_over = self.is_over
        for instruction in self.scheduler.handle(event):
            assert not was_over or isinstance(instruction, Release)
            self.execute(instruction)

    def execute(self, instruction: Instruction) -> None:
        match instruction:
            case Assign(worker=worker, shard=shard):
                assert shard not in self.committed | self.given_up
                assert not any(shard in held for held in self.running.values())
                self.running[worker].add(shard)
                assert len(self.running[worker]) <= self.capacity
            case ReplaceWorker():
                assert self.scheduler.num_pending > 0
                self.starting += 1
            case Release(worker=worker):
                assert not self.running.pop(worker, set())
            case GiveUp(shard=shard):
                assert shard not in self.committed | self.given_up
                self.given_up.add(shard)
            case Seal():
                assert self.committed == set(range(self.num_shards))
            case Finished():
                assert self.committed | self.given_up == set(range(self.num_shards))
                self.is_over = True
            case Drained():
                self.is_over = True

    def work(self, data: st.DataObject, *, zombie: bool = False) -> tuple[str, int]:
        """One worker and one of its shards."""
        workers = self.zombies if zombie else self.running
        pairs = sorted((worker, shard) for worker in workers for shard in workers[worker])
        worker, shard = data.draw(st.sampled_from(pairs))
        workers[worker].remove(shard)
        return worker, shard

    def has_work(self) -> bool:
        return any(self.running.values())

    def has_zombie_work(self) -> bool:
        return any(self.zombies.values())

    @precondition(lambda self: self.starting > 0)
    @rule()
    def a_worker_joins(self) -> None:
        self.starting -= 1
        self.num_names += 1
        worker = f"w{self.num_names}"
        self.running[worker] = set()
        self.tell(WorkerJoined(worker=worker, now=self.now))

    @precondition(lambda self: self.starting > 0)
    @rule()
    def a_worker_never_comes_up(self) -> None:
        self.starting -= 1
        self.num_names += 1
        self.tell(WorkerLost(worker=f"w{self.num_names}", reason="death", now=self.now))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), reason=st.sampled_from(["death", "infrastructure"]), lives=st.booleans())
    def a_worker_is_lost(self, data: st.DataObject, reason: str, lives: bool) -> None:
        worker = data.draw(st.sampled_from(sorted(self.running)))
        held = self.running.pop(worker)
        breath = data.draw(st.sets(st.sampled_from(sorted(held)))) if held else set()
        self.committed |= breath
        if lives:
            self.zombies[worker] = held - breath
        self.tell(
            WorkerLost(
                worker=worker,
                reason=reason,  # type: ignore[arg-type]
                committed=frozenset(breath),
                now=self.now,
            )
        )

    def end_attempt(self, worker: str, shard: int) -> None:
        if shard in self.committed:
            self.tell(ShardLost(worker=worker, shard=shard, attempt="other", now=self.now))
        else:
            self.committed.add(shard)
            self.given_up.discard(shard)
            self.tell(ShardCommitted(worker=worker, shard=shard, attempt="own", now=self.now))

    @precondition(has_work)
    @rule(data=st.data())
    def an_attempt_ends(self, data: st.DataObject) -> None:
        self.end_attempt(*self.work(data))

    @precondition(has_zombie_work)
    @rule(data=st.data())
    def an_attempt_of_a_zombie_ends(self, data: st.DataObject) -> None:
        self.end_attempt(*self.work(data, zombie=True))

    @precondition(has_work)
    @rule(data=st.data(), infrastructure=st.booleans())
    def an_attempt_fails(self, data: st.DataObject, infrastructure: bool) -> None:
        self.fail(*self.work(data), infrastructure=infrastructure)

    @precondition(has_zombie_work)
    @rule(data=st.data())
    def an_attempt_of_a_zombie_fails(self, data: st.DataObject) -> None:
        self.fail(*self.work(data, zombie=True), infrastructure=False)

    def fail(self, worker: str, shard: int, *, infrastructure: bool) -> None:
        self.tell(
            ShardFailed(
                worker=worker, shard=shard, error="E", infrastructure=infrastructure, now=self.now
            )
        )

    @rule(seconds=st.sampled_from([0.0, 6.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.tell(Tick(now=self.now))

    @precondition(lambda self: self.num_names > 2)
    @rule()
    def somebody_asks_for_a_drain(self) -> None:
        self.tell(DrainRequested(now=self.now))

    @invariant()
    def all_invariants_hold(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        self.scheduler.check()
        assert self.scheduler.is_over == self.is_over
        if not self.is_over:
            assert self.scheduler.num_committed == len(self.committed)
            assert self.scheduler.num_failed == len(self.given_up)

    def teardown(self) -> None:
        """From any state the job comes to its end once no more goes wrong; its history replays."""
        if not hasattr(self, "scheduler"):
            return
        self.finish()
        assert self.is_over
        self.scheduler.check()
        replayed = self.make()
        for event, instructions in self.scheduler.history:
            assert tuple(replayed.handle(event)) == instructions

    def finish(self) -> None:
        self.tell(Tick(now=self.now))
        for _ in range(100):
            if self.is_over:
                return
            if self.starting:
                self.a_worker_joins()
                continue
            for worker in sorted(self.running):
                for shard in sorted(self.running.get(worker, ())):
                    self.running[worker].remove(shard)
                    self.end_attempt(worker, shard)


World.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestWorld = World.TestCase
