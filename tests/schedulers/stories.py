"""Short words for events and instructions. Workers are named by number: `w(1)`."""

from schedulers import events, instructions
from schedulers.instructions import Assign, Instruction, StartWorker
from schedulers.machine import Scheduler


def w(number: int) -> str:
    """The name of the n-th worker that was asked for."""
    return f"worker-{number:04d}"


def tick(now: float = 0.0) -> events.Tick:
    return events.Tick(now=now)


def placed(number: int, *, node: str = "node", now: float = 0.0) -> events.WorkerPlaced:
    return events.WorkerPlaced(worker=w(number), node=node, now=now)


def joined(number: int, *, now: float = 0.0) -> events.WorkerJoined:
    return events.WorkerJoined(worker=w(number), now=now)


def heard(number: int, *running: events.Progress, now: float = 0.0) -> events.WorkerHeard:
    return events.WorkerHeard(worker=w(number), running=running, now=now)


def progress(
    shard: int,
    *,
    phase: events.Phase = "decoding",
    num_rounds: int = 0,
    fraction: float = 0.0,
) -> events.Progress:
    return events.Progress(shard=shard, phase=phase, num_rounds=num_rounds, fraction=fraction)


def lost(
    number: int,
    *,
    cause: events.Cause = "death",
    committed: tuple[int, ...] = (),
    announced: int | None = None,
    now: float = 0.0,
) -> events.WorkerLost:
    return events.WorkerLost(
        worker=w(number),
        cause=cause,
        committed=frozenset(committed),
        announced=announced,
        now=now,
    )


def committed(
    number: int, shard: int, *, ok: int = 0, errors: int = 0, now: float = 0.0
) -> events.ShardCommitted:
    return events.ShardCommitted(
        worker=w(number), shard=shard, attempt="a", ok=ok, errors=errors, now=now
    )


def beaten(number: int, shard: int, *, now: float = 0.0) -> events.ShardLost:
    return events.ShardLost(worker=w(number), shard=shard, attempt="b", now=now)


def failed(
    number: int, shard: int, *, infrastructure: bool = False, now: float = 0.0
) -> events.ShardFailed:
    return events.ShardFailed(
        worker=w(number), shard=shard, error="E", infrastructure=infrastructure, now=now
    )


def drain(now: float = 0.0) -> events.DrainRequested:
    return events.DrainRequested(now=now)


def assign(number: int, *shards: int) -> list[Instruction]:
    return [Assign(worker=w(number), shard=shard) for shard in shards]


def alone(number: int, shard: int, *convicted: int) -> Assign:
    """Row by row."""
    return Assign(worker=w(number), shard=shard, row_by_row=True, convicted=convicted)


def start(*numbers: int) -> list[Instruction]:
    return [StartWorker(worker=w(number)) for number in numbers]


def release(number: int) -> instructions.Release:
    return instructions.Release(worker=w(number))


END: list[Instruction] = [instructions.Seal(), instructions.Finished()]


def begun(scheduler: Scheduler, *, num_workers: int = 1, node: str = "node") -> Scheduler:
    """The scheduler after its first workers have joined."""
    scheduler.handle(tick())
    for number in range(1, num_workers + 1):
        scheduler.handle(placed(number, node=node))
        scheduler.handle(joined(number))
    return scheduler
