"""The scheduler alone: how many events it takes a second of processor time."""

import time
from collections import deque

from schedulers.events import (
    Event,
    Progress,
    ShardCommitted,
    Tick,
    WorkerHeard,
    WorkerJoined,
    WorkerPlaced,
)
from schedulers.instructions import Assign, Instruction, StartWorker
from schedulers.machine import Scheduler

NUM_SHARDS = 50_000
NUM_WORKERS = 64
HEARTBEAT_EVERY = 4  # commits


def core_events_per_s() -> float:
    """Events a second, through a whole run with heartbeats and ticks among the commits.

    Counted in the time of this process, which runs one thread and waits for nothing, so that a
    busy machine does not show in it.
    """
    costs = ((shard, float(1 + shard % 7)) for shard in range(NUM_SHARDS))
    scheduler = Scheduler(costs, num_workers=NUM_WORKERS)
    began = time.process_time()
    num_events = _drive(scheduler)
    return num_events / (time.process_time() - began)


def _drive(scheduler: Scheduler) -> int:
    """Workers that commit what they are given, in order; how many events that took."""
    waiting: deque[Event] = deque([Tick(now=0.0)])
    num_events = 0
    while waiting:
        event = waiting.popleft()
        num_events += 1
        for instruction in scheduler.handle(event):
            waiting += _reaction(instruction, now=event.now + 0.001)
        if isinstance(event, ShardCommitted) and num_events % HEARTBEAT_EVERY == 0:
            waiting += _signs_of_life(event, num_events)
    assert scheduler.num_committed == NUM_SHARDS
    return num_events


def _reaction(instruction: Instruction, *, now: float) -> list[Event]:
    match instruction:
        case StartWorker(worker=worker):
            placed = WorkerPlaced(worker=worker, node=f"node-{worker}", now=now)
            return [placed, WorkerJoined(worker=worker, now=now)]
        case Assign(worker=worker, shard=shard):
            return [ShardCommitted(worker=worker, shard=shard, attempt="a", ok=1, now=now)]
        case _:
            return []


def _signs_of_life(event: ShardCommitted, num_rounds: int) -> list[Event]:
    running = Progress(shard=event.shard, phase="decoding", num_rounds=num_rounds, fraction=0.5)
    heard = WorkerHeard(worker=event.worker, running=(running,), now=event.now)
    return [heard, Tick(now=event.now)]
