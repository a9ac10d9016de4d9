"""Any order of events, zombies included, keeps every invariant and comes to an end.

The machine below is the world around the scheduler: it knows which actors really live, what is
really committed, and carries out instructions. Workers that were reported lost may live on.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from schedulers import events
from schedulers.instructions import (
    Assign,
    Convict,
    EndWorker,
    Finished,
    GiveUp,
    Instruction,
    Park,
    Release,
    Seal,
    StartWorker,
    StopForErrors,
)
from schedulers.limits import Limits
from schedulers.machine import Scheduler

LIMITS = Limits(
    attempts=2,
    infrastructure_attempts=4,
    drain_s=10.0,
    rest_s=2.0,
    lease_s=20.0,
    decoding_s=30.0,
    starting_s=40.0,
    sick_after=2,
    judged_from_samples=30,
    max_error_fraction=0.5,
)
NODES = ("left", "right")


class World(RuleBasedStateMachine):
    """Everything that a driver could report."""

    @initialize(
        costs=st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=1, max_size=8),
        num_workers=st.integers(1, 3),
        capacity=st.integers(1, 3),
        data=st.data(),
    )
    def begin(
        self, costs: list[float], num_workers: int, capacity: int, data: st.DataObject
    ) -> None:
        self.committed = data.draw(st.sets(st.sampled_from(range(len(costs)))))
        self.before = frozenset(self.committed)
        self.costs = costs
        self.num_workers = num_workers
        self.limits = replace(LIMITS, capacity=capacity)
        self.scheduler = self.make()
        self.coming: list[str] = []  # asked for, and not here yet
        self.running: dict[str, dict[int, bool]] = {}  # shards of those here; alone or not
        self.ended: dict[str, dict[int, bool]] = {}  # gone, and storage is still being asked
        self.zombies: dict[str, dict[int, bool]] = {}  # reported lost, and yet working
        self.convicted: set[tuple[int, int]] = set()
        self.given_up: set[int] = set()
        self.is_over = False
        self.now = 0.0
        self.tell(events.Tick(now=self.now))

    def make(self) -> Scheduler:
        return Scheduler(
            enumerate(self.costs),
            committed=sorted(self.before),
            num_workers=self.num_workers,
            limits=self.limits,
        )

    def tell(self, event: events.Event) -> None:
        was_over = self.is_over
        for instruction in self.scheduler.handle(event):
            assert not was_over or isinstance(instruction, Release)
            self.execute(instruction)

    def execute(self, instruction: Instruction) -> None:
        match instruction:
            case StartWorker(worker=worker):
                self.coming.append(worker)
                assert len(self.coming) <= self.num_workers
            case Assign():
                self.execute_assignment(instruction)
            case EndWorker(worker=worker):
                if worker in self.running:
                    self.ended[worker] = self.running.pop(worker)
                else:
                    self.coming.remove(worker)
                    self.ended[worker] = {}
            case Release(worker=worker):
                assert not self.running.pop(worker, {})
            case Convict(shard=shard, row=row):
                assert (shard, row) not in self.convicted
                self.convicted.add((shard, row))
            case GiveUp(shard=shard):
                assert shard not in self.committed | self.given_up
                self.given_up.add(shard)
            case Seal():
                assert self.committed == set(range(len(self.costs)))
            case Finished():
                assert self.committed | self.given_up == set(range(len(self.costs)))
                self.is_over = True
            case Park() | StopForErrors():
                pass
            case _:
                self.is_over = True

    def execute_assignment(self, given: Assign) -> None:
        assert given.shard not in self.committed | self.given_up
        holders = [worker for worker, held in self.running.items() if given.shard in held]
        assert len(holders) <= 1
        assert given.worker not in holders
        held = self.running[given.worker]
        assert not any(held.values()), "who decodes row by row is left alone"
        assert not (given.row_by_row and (held or holders))
        assert {(given.shard, row) for row in given.convicted} <= self.convicted
        held[given.shard] = given.row_by_row
        assert len(held) <= self.limits.capacity

    def work(self, data: st.DataObject, *, zombie: bool = False) -> tuple[str, int]:
        """One worker and one of its shards."""
        workers = self.zombies if zombie else self.running
        pairs = sorted((worker, shard) for worker in workers for shard in workers[worker])
        worker, shard = data.draw(st.sampled_from(pairs))
        del workers[worker][shard]
        return worker, shard

    def has_work(self) -> bool:
        return any(self.running.values())

    def has_zombie_work(self) -> bool:
        return any(self.zombies.values())

    @precondition(lambda self: self.coming)
    @rule(node=st.sampled_from(NODES), is_placed=st.booleans())
    def a_worker_joins(self, node: str, is_placed: bool) -> None:
        worker = self.coming.pop(0)
        if is_placed:
            self.tell(events.WorkerPlaced(worker=worker, node=node, now=self.now))
        self.running[worker] = {}
        self.tell(events.WorkerJoined(worker=worker, now=self.now))

    @precondition(lambda self: self.coming)
    @rule()
    def a_worker_never_comes_up(self) -> None:
        self.tell(events.WorkerLost(worker=self.coming.pop(0), cause="death", now=self.now))

    @precondition(lambda self: self.coming)
    @rule(node=st.sampled_from(NODES))
    def a_worker_is_placed(self, node: str) -> None:
        self.tell(events.WorkerPlaced(worker=self.coming[0], node=node, now=self.now))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_worker_ends(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.running)))
        self.ended[worker] = self.running.pop(worker)
        self.tell(events.WorkerEnded(worker=worker, now=self.now))

    @precondition(lambda self: self.ended)
    @rule(
        data=st.data(),
        cause=st.sampled_from(["death", "stuck", "infrastructure"]),
        lives=st.booleans(),
        row=st.sampled_from([None, 0, 1]),
    )
    def a_worker_is_lost(
        self, data: st.DataObject, cause: events.Cause, lives: bool, row: int | None
    ) -> None:
        worker = data.draw(st.sampled_from(sorted(self.ended)))
        held = self.ended.pop(worker)
        breath = data.draw(st.sets(st.sampled_from(sorted(held)))) if held else set()
        self.committed |= breath
        if lives:
            self.zombies[worker] = {shard: held[shard] for shard in held if shard not in breath}
        self.tell(
            events.WorkerLost(
                worker=worker,
                cause=cause,
                committed=frozenset(breath),
                announced=row if any(held.values()) else None,
                now=self.now,
            )
        )

    def end_attempt(self, worker: str, shard: int, *, errors: int = 0) -> None:
        kind = events.ShardLost if shard in self.committed else events.ShardCommitted
        self.committed.add(shard)
        self.given_up.discard(shard)
        self.tell(kind(worker=worker, shard=shard, attempt="a", ok=1, errors=errors, now=self.now))

    @precondition(has_work)
    @rule(data=st.data(), errors=st.sampled_from([0, 0, 0, 20]))
    def an_attempt_ends(self, data: st.DataObject, errors: int) -> None:
        self.end_attempt(*self.work(data), errors=errors)

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
            events.ShardFailed(
                worker=worker, shard=shard, error="E", infrastructure=infrastructure, now=self.now
            )
        )

    @precondition(lambda self: self.running)
    @rule(
        data=st.data(),
        rounds=st.integers(0, 3),
        fraction=st.sampled_from([0.0, 0.01, 0.5, 1.0]),
        phase=st.sampled_from(["reading", "decoding", "publishing"]),
    )
    def a_worker_is_heard(
        self, data: st.DataObject, rounds: int, fraction: float, phase: events.Phase
    ) -> None:
        worker = data.draw(st.sampled_from(sorted(self.running)))
        running = tuple(
            events.Progress(shard=shard, phase=phase, num_rounds=rounds, fraction=fraction)
            for shard in self.running[worker]
        )
        self.tell(events.WorkerHeard(worker=worker, running=running, now=self.now))

    @rule(seconds=st.sampled_from([0.0, 3.0, 15.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.tell(events.Tick(now=self.now))

    @rule(node=st.sampled_from(NODES), left_s=st.sampled_from([None, 5.0, 60.0]))
    def a_node_drains(self, node: str, left_s: float | None) -> None:
        deadline = None if left_s is None else self.now + left_s
        self.tell(events.NodeDraining(node=node, deadline=deadline, now=self.now))

    @rule(node=st.sampled_from(NODES))
    def a_node_stays_after_all(self, node: str) -> None:
        self.tell(events.NodeRestored(node=node, now=self.now))

    @precondition(lambda self: self.now > 60.0)
    @rule()
    def somebody_asks_for_a_drain(self) -> None:
        self.tell(events.DrainRequested(now=self.now))

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
        for node in NODES:
            self.a_node_stays_after_all(node)
        for _ in range(200):
            if self.is_over:
                return
            self.now += 1.0
            self.tell(events.Tick(now=self.now))
            for worker in list(self.ended):
                del self.ended[worker]
                self.tell(events.WorkerLost(worker=worker, cause="infrastructure", now=self.now))
            if self.coming:
                self.a_worker_joins("left", is_placed=True)
            for worker in sorted(self.running):
                self.tell(events.WorkerHeard(worker=worker, running=(), now=self.now))
                for shard in sorted(self.running.get(worker, ())):
                    del self.running[worker][shard]
                    self.end_attempt(worker, shard)


World.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestWorld = World.TestCase
