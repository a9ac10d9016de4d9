"""Workers that die, fall silent or are refused, and nodes that go."""

from jobs.driver.loop import Loop
from jobs.driver.notices import Gone, Heard, Joined, Notice, Placed, Refused
from manifests.journal import read_failures, write_announcement
from manifests.records import Announcement
from tests.jobs.driver.fakes import (
    NODE,
    FakeNodes,
    FakePool,
    FakeStops,
    commit,
    join,
)
from tests.jobs.driver.loops import OTHER_ATTEMPT, failure, make_loop, messages
from tests.manifests.builders import CREATED, StoredJob
from workers.actor import Heartbeat
from workers.attempt import Attempt
from workers.stream import Totals


def test_a_dead_worker_is_replaced_and_its_shards_are_done_by_another(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "worker-0001":
            return [Gone(worker=worker, cause="death", message="killed", node=NODE)]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert pool.started == ["worker-0001", "worker-0002"]
    assert loop.ending.seal is not None
    assert "worker-0001 is gone (killed)" in messages(loop)


def test_a_death_leaves_a_failure_with_the_attempt_that_was_seen(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "worker-0001":
            seen = Attempt(shard=shard, attempt=OTHER_ATTEMPT, phase="decoding")
            beat = Heartbeat(running=(seen,), num_steps=0, totals=Totals())
            gone = Gone(worker=worker, cause="death", message="killed", node=NODE)
            return [Heard(worker=worker, heartbeat=beat), gone]
        return commit(job)(worker, shard)

    make_loop(job, FakePool(on_start=join, on_assign=react)).run()
    failures = read_failures(job.store)
    assert OTHER_ATTEMPT in {failure.attempt for failure in failures}
    assert {(f.kind, f.message, f.worker) for f in failures} == {("rows", "killed", "worker-0001")}


def test_a_record_written_with_the_last_breath_counts(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        job.commit(shard)
        return [Gone(worker=worker, cause="death", message="killed", node=NODE)]

    # Every worker dies; if storage were looked at later, the only attempt would be used up.
    loop = make_loop(job, FakePool(on_start=join, on_assign=react), attempts=1)
    loop.run()
    assert loop.ending.seal is not None
    assert loop.ending.given_up == {}


def test_a_worker_with_a_broken_engine_is_ended_and_replaced(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        if worker == "worker-0001":
            return [failure(worker, shard, is_worker_usable=False)]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool)
    loop.run()
    assert pool.ended[0] == "worker-0001"
    assert loop.ending.seal is not None


def test_a_refused_worker_ends_a_local_run_in_one_sentence(job: StoredJob) -> None:
    pool = FakePool(
        on_start=lambda worker: [Refused(worker=worker, sentence="other torch")],
        on_assign=commit(job),
    )
    loop = make_loop(job, pool)
    loop.run()
    assert (loop.ending.refusal, loop.ending.num_joined) == ("other torch", 0)
    assert pool.started == ["worker-0001"]


def test_a_cluster_goes_on_with_the_workers_that_are_not_refused(job: StoredJob) -> None:
    def start(worker: str) -> list[Notice]:
        return (
            [Refused(worker=worker, sentence="other torch")]
            if worker == "worker-0001"
            else join(worker)
        )

    pool = FakePool(on_start=start, on_assign=commit(job))
    loop = make_loop(job, pool, num_workers=2, refuse_at_once=False)
    loop.run()
    assert loop.ending.seal is not None
    assert "other torch" in messages(loop)


def test_a_cluster_that_refuses_every_worker_ends_with_the_reason(job: StoredJob) -> None:
    pool = FakePool(
        on_start=lambda worker: [Refused(worker=worker, sentence="other torch")],
        on_assign=commit(job),
    )
    loop = make_loop(job, pool, num_workers=2, refuse_at_once=False)
    loop.run()
    assert (loop.ending.refusal, loop.ending.num_joined) == ("other torch", 0)
    assert len(pool.started) == 5


def test_a_death_on_a_dead_or_draining_node_is_not_held_against_rows(job: StoredJob) -> None:
    nodes = FakeNodes(dead={NODE})

    def react(worker: str, shard: int) -> list[Notice]:
        if len(pool.started) == 1:
            return [Gone(worker=worker, cause="death", message="killed", node=NODE)]
        return commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    make_loop(job, pool, nodes=nodes).run()
    failures = read_failures(job.store)
    assert {(failure.kind, failure.is_death) for failure in failures} == {("infrastructure", False)}


def test_a_draining_node_gets_no_more_shards(job: StoredJob) -> None:
    nodes = FakeNodes(drained={NODE: None})

    def start(worker: str) -> list[Notice]:
        where = NODE if worker == "worker-0001" else "elsewhere"
        return [Placed(worker=worker, node=where), Joined(worker=worker)]

    def react(worker: str, shard: int) -> list[Notice]:
        return [] if worker == "worker-0001" else commit(job)(worker, shard)

    pool = FakePool(on_start=start, on_assign=react)
    loop = make_loop(job, pool, nodes=nodes, publishing_s=50.0)
    loop.run()
    assert loop.ending.seal is not None
    assert pool.killed == ["worker-0001"]


def test_a_silent_worker_is_killed_and_its_shards_are_done_by_another(job: StoredJob) -> None:
    def react(worker: str, shard: int) -> list[Notice]:
        return [] if worker == "worker-0001" else commit(job)(worker, shard)

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool, lease_s=20.0)
    loop.run()
    assert "worker-0001" in pool.killed
    assert loop.ending.seal is not None
    assert "did not answer within 20 s" in messages(loop)


def test_a_row_that_kills_its_worker_twice_when_it_is_alone_is_convicted(job: StoredJob) -> None:
    """The shard of row 1 kills every worker until that row is left out."""

    def react(worker: str, shard: int) -> list[Notice]:
        order = pool.orders[-1]
        if shard != 2 or order.convicted == (1,):
            return commit(job)(worker, shard)
        if order.row_by_row:
            write_announcement(job.store, announcement(loop, worker, row=0, second="1"))
            write_announcement(job.store, announcement(loop, worker, row=1, second="2"))
        return [Gone(worker=worker, cause="death", message="killed", node=NODE)]

    pool = FakePool(on_start=join, on_assign=react)
    loop = make_loop(job, pool, attempts=1)
    loop.run()
    assert loop.ending.seal is not None
    assert [order.convicted for order in pool.orders if order.row_by_row and order.shard == 2] == [
        (),
        (),
        (1,),
    ]
    assert "row 1 of shard 2 ended its workers" in messages(loop)
    rows = [(f.is_death, f.row) for f in read_failures(job.store) if f.shard == 2]
    assert sorted(rows, key=str) == [(True, 1), (True, 1), (True, None), (True, None)]


def announcement(loop: Loop, worker: str, *, row: int, second: str) -> Announcement:
    return Announcement(
        shard=2,
        attempt=f"{len(worker) + int(worker[-1]):016x}",
        row=row,
        epoch=loop.ledger.epoch,
        worker=f"{worker}@host",
        time=CREATED.replace("00+00", f"0{second}+00"),
    )


def test_a_new_driver_recalls_under_which_rows_workers_died(job: StoredJob) -> None:
    def die(worker: str, shard: int) -> list[Notice]:
        stops.wants_drain = True
        return [Gone(worker=worker, cause="death", message="killed", node=NODE)]

    for _ in range(2):
        stops = FakeStops()
        make_loop(job, FakePool(on_start=join, on_assign=die), stops=stops).run()
    pool = FakePool(on_start=join, on_assign=commit(job))
    make_loop(job, pool).run()
    assert any(order.row_by_row for order in pool.orders)
