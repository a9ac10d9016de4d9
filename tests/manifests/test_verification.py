"""Structural verification: a faithful job passes; each kind of damage is named, never raised."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manifests.columns import METADATA_ATTEMPT, output_schema
from manifests.documents import encode
from manifests.journal import write_failure
from manifests.keys import (
    commit_key,
    data_key,
    failure_key,
    numerics_key,
    plan_key,
    seal_key,
)
from manifests.protocol import read_seal
from manifests.verification import verify_structure
from tests.manifests.builders import StoredJob, identity, make_job, write_staged
from tests.manifests.test_journal import failure

MINE = "a" * 16
DATA = data_key(0, MINE)
RECORD = commit_key(0)

Values = list[dict[str, Any]]


def problems(job: StoredJob) -> list[tuple[str, str]]:
    """What verification finds, as pairs of key and problem."""
    return [(finding.key, finding.problem) for finding in verify_structure(job.store)]


def flip(path: Path, offset: int) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("trace", ["none", "tokens", "commits"])
@pytest.mark.parametrize("scope", ["shard", "row"])
def test_a_faithful_job_has_no_findings(tmp_path: Path, trace: str, scope: str) -> None:
    job = make_job(tmp_path, output={"uri": "/o", "trace": trace}, seed={"scope": scope})
    for shard in job.plan.shards:
        job.commit(shard.shard)
    assert problems(job) == []


def test_a_sealed_job_has_no_findings(sealed_job: StoredJob) -> None:
    assert problems(sealed_job) == []


def test_an_unfinished_job_with_failures_and_orphans_has_no_findings(job: StoredJob) -> None:
    job.commit(1)
    write_failure(job.store, failure())
    job.store.put_file_if_absent(DATA, job.attempt_file(0, attempt=MINE))
    job.store.put_if_absent(numerics_key(), encode(failure()))
    assert problems(job) == []


def test_a_place_without_a_plan_is_one_finding(job: StoredJob) -> None:
    job.path(plan_key()).unlink()
    assert problems(job) == [(plan_key(), f"is not in {job.store.uri}")]


def test_every_flipped_bit_of_plan_records_and_seal_is_found(sealed_job: StoredJob) -> None:
    for key in (plan_key(), RECORD, commit_key(1), seal_key()):
        path = sealed_job.path(key)
        whole = path.read_bytes()
        for offset in range(0, len(whole), 97):
            flip(path, offset)
            assert key in {found for found, _ in problems(sealed_job)}
            path.write_bytes(whole)


def test_a_flipped_bit_anywhere_in_a_data_file_is_found(job: StoredJob) -> None:
    path = job.path(job.commit(0).record.data_key)
    whole = path.read_bytes()
    page = pq.read_metadata(path).row_group(0).column(2)
    offsets = {
        "magic": 0,
        "page": page.data_page_offset + page.total_compressed_size - 1,
        "footer": len(whole) - 100,
        "footer length": len(whole) - 6,
        "end": len(whole) - 1,
    }
    for offset in offsets.values():
        flip(path, offset)
        key = path.relative_to(job.store.uri).as_posix()
        assert problems(job) == [(key, "its SHA-256 is not the recorded one")]
        path.write_bytes(whole)


@pytest.mark.parametrize("where", ["page", "footer", "end"])
def test_damage_that_was_hashed_into_the_record_is_found_by_reading(
    job: StoredJob, where: str
) -> None:
    # Uncompressed, so that nothing but the page's checksum can tell.
    path = job.attempt_file(0, attempt=MINE, compression="none", use_dictionary=False)
    page = pq.read_metadata(path).row_group(0).column(2)
    offsets = {
        "page": page.data_page_offset + page.total_compressed_size - 1,
        "footer": path.stat().st_size - 8,  # its length
        "end": path.stat().st_size - 1,
    }
    record = job.record(0, attempt=MINE, path=path)
    flip(path, offsets[where])
    sha256 = identity(path, key=DATA).sha256
    job.publish(0, path, attempt=MINE, record=record.model_copy(update={"sha256": sha256}))
    assert {key for key, _ in problems(job)} == {DATA}


def test_a_data_file_of_another_length_is_found(job: StoredJob) -> None:
    path = job.path(job.commit(0, attempt=MINE).record.data_key)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    assert problems(job) == [(DATA, f"it has {size - 1} bytes, not {size}")]


def test_a_data_file_that_is_gone_is_found(job: StoredJob) -> None:
    job.path(job.commit(0, attempt=MINE).record.data_key).unlink()
    assert problems(job) == [(DATA, f"is not in {job.store.uri}")]


def test_damaged_staged_input_is_found_and_the_output_is_still_checked(job: StoredJob) -> None:
    key = job.commit(0).record.data_key
    staged = job.plan.shards[0].part
    part = job.path(staged)
    size = part.stat().st_size
    part.write_bytes(b"x" * size)
    assert [found for found, _ in problems(job)] == [staged] * 3
    job.path(key).write_bytes(b"")
    assert key in {found for found, _ in problems(job)}


def test_staged_rows_that_were_exchanged_are_found(job: StoredJob) -> None:
    write_staged(job.path(job.plan.shards[0].part), reversed(job.rows))
    found = [problem for _, problem in problems(job)]
    assert found == [
        "its SHA-256 is not the recorded one",
        "row group 0: its rows are not those of shard 0",
        "row group 1: its rows are not those of shard 1",
    ]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"plan_sha256": "f" * 64}, "plan_sha256 is 'ffff"),
        ({"revision": 1}, "revision is 1, not 0"),
        ({"rows": 2}, "rows is 2, not 3"),
        ({"samples": 5, "ok": 5}, "samples is 5, not 6"),
        ({"schema_fingerprint": "f" * 64}, "schema_fingerprint is 'ffff"),
    ],
)
def test_a_record_that_does_not_fit_the_plan_is_found(
    job: StoredJob, changes: dict[str, Any], problem: str
) -> None:
    path = job.attempt_file(0, attempt=MINE)
    record = job.record(0, attempt=MINE, path=path, **changes)
    job.store.put_file_if_absent(DATA, path)
    job.store.put_if_absent(RECORD, encode(record))
    [(key, found)] = problems(job)
    assert key == RECORD
    assert found.startswith(problem)


def test_a_record_under_another_shards_name_is_found(job: StoredJob) -> None:
    path = job.attempt_file(1, attempt=MINE)
    job.store.put_if_absent(RECORD, encode(job.record(1, attempt=MINE, path=path)))
    assert (RECORD, "shard is 1, not 0") in problems(job)


def test_a_record_of_a_shard_that_is_not_planned_is_found(job: StoredJob) -> None:
    job.store.put_if_absent("commits/r0000/x.json", b"")
    assert problems(job) == [("commits/r0000/x.json", "the plan has no such shard")]


def edit(index: int, **changes: Any) -> Callable[[Values], None]:
    """Change one output row."""
    return lambda values: values[index].update(changes)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda values: values.pop(), "it has 5 rows, not 6"),
        (lambda values: values.append(values[0]), "it has 7 rows, not 6"),
        (lambda values: values.reverse(), "output row 0 is Place(row=2, id='id-2', sample=1"),
        (edit(1, sample=0), "output row 1 is Place(row=0, id='id-0', sample=0"),
        (edit(2, id="id-0"), "output row 2 is Place(row=1, id='id-0', sample=0"),
        (edit(2, row=0), "output row 2 is Place(row=0, id='id-1', sample=0"),
        (edit(0, seed=1), "output row 0 is Place(row=0, id='id-0', sample=0, seed=1)"),
        (edit(0, shard=1), "output row 0 (id 'id-0', sample 0): shard is 1, not 0"),
        (edit(3, attempt="b"), "output row 3 (id 'id-1', sample 1): attempt is 'b', not 'aaa"),
        (edit(0, carried=None), "output row 0 (id 'id-0', sample 0): its carried columns are not"),
        (edit(0, tokens=3), "output row 0 (id 'id-0', sample 0): tokens is 3, but there are 2"),
        (edit(0, error_class="E"), "output row 0 (id 'id-0', sample 0): it is an error, and yet"),
        (edit(0, text=None), "output row 0 (id 'id-0', sample 0): it has neither an output nor"),
        (edit(0, finish_reason="done"), "output row 0 (id 'id-0', sample 0): finish_reason is 'd"),
        (edit(0, confidence=[1.0]), "output row 0 (id 'id-0', sample 0): commit_step, log_prob"),
        (edit(0, commit_token=[1]), "output row 0 (id 'id-0', sample 0): commit_position, commit"),
        (
            edit(0, token_ids=[], tokens=0, confidence=[]),
            "output row 0 (id 'id-0', sample 0): commit_step, log_prob",
        ),
    ],
)
def test_rows_that_are_not_what_was_promised_are_found(
    tmp_path: Path, change: Callable[[Values], object], problem: str
) -> None:
    job = make_job(tmp_path, output={"uri": "/o", "trace": "commits"})
    values = job.output_values(0, attempt=MINE)
    change(values)
    path = job.attempt_file(0, attempt=MINE, values=values)
    record = job.record(0, attempt=MINE, path=path)
    claims = {"samples": 6, "ok": 6 - record.errors}
    job.publish(0, path, attempt=MINE, record=record.model_copy(update=claims))
    key, found = problems(job)[0]
    assert key == DATA
    assert found.startswith(problem)


def test_an_output_for_a_row_that_planning_refused_is_found(job: StoredJob) -> None:
    values = job.output_values(1, attempt=MINE)
    values[-1].update(error_class=None, text="", token_ids=[], finish_reason="stop")
    job.publish(1, job.attempt_file(1, attempt=MINE, values=values), attempt=MINE)
    assert problems(job) == [
        (
            data_key(1, MINE),
            "output row 3 (id 'id-4', sample 1): it has an output, although planning found "
            "EmptyPrompt",
        )
    ]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"ok": 5, "errors": 1}, "it has 6 outputs and 0 errors, the commit record says 5 and 1"),
        ({"row_ids_sha256": "f" * 64}, "its row ids are not those of the commit record"),
    ],
)
def test_a_record_that_does_not_fit_its_file_is_found(
    job: StoredJob, changes: dict[str, Any], problem: str
) -> None:
    path = job.attempt_file(0, attempt=MINE)
    job.publish(0, path, attempt=MINE, record=job.record(0, attempt=MINE, path=path, **changes))
    assert problems(job) == [(DATA, problem)]


def test_other_columns_are_found(job: StoredJob) -> None:
    schema = output_schema("none").append(pa.field("extra", pa.int32()))
    job.publish(0, job.attempt_file(0, attempt=MINE, schema=schema), attempt=MINE)
    assert problems(job) == [(DATA, "its columns are not those of the plan")]


def test_file_metadata_of_another_attempt_is_found(job: StoredJob) -> None:
    metadata = job.metadata(0, attempt=MINE) | {METADATA_ATTEMPT: "b" * 16}
    job.publish(0, job.attempt_file(0, attempt=MINE, metadata=metadata), attempt=MINE)
    assert problems(job) == [(DATA, f"its file metadata does not say {METADATA_ATTEMPT} = {MINE}")]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"plan_sha256": "f" * 64}, "plan_sha256 is 'ffff"),
        ({"rows": 4}, "rows is 4, not 5"),
        ({"samples": 9}, "samples is 9, not 10"),
        ({"ok": 9}, "ok is 9, not 8"),
        ({"errors": 1}, "errors is 1, not 2"),
        ({"sealed": "t"}, "sealed is 't', not '2026-01-01T00:00:01+00:00'"),
        ({"revision": 1}, "it is the seal of revision 1"),
        ({"shards": ()}, "its shards are not those of the plan"),
    ],
)
def test_a_seal_that_does_not_fit_is_found(
    sealed_job: StoredJob, changes: dict[str, Any], problem: str
) -> None:
    seal = read_seal(sealed_job.store)
    assert seal is not None
    sealed_job.path(seal_key()).write_bytes(encode(seal.model_copy(update=changes)))
    [(key, found)] = problems(sealed_job)
    assert key == seal_key()
    assert found.startswith(problem)


def test_a_seal_that_names_another_file_is_found(sealed_job: StoredJob) -> None:
    seal = read_seal(sealed_job.store)
    assert seal is not None
    first = seal.shards[0].model_copy(update={"data_key": DATA})
    changed = seal.model_copy(update={"shards": (first, *seal.shards[1:])})
    sealed_job.path(seal_key()).write_bytes(encode(changed))
    expected = f"shard 0: data_key is {DATA!r}, not {data_key(0, '0' * 16)!r}"
    assert problems(sealed_job) == [(seal_key(), expected)]


def test_a_sealed_job_without_a_record_is_found(sealed_job: StoredJob) -> None:
    sealed_job.path(commit_key(1)).unlink()
    assert problems(sealed_job) == [
        (seal_key(), "the job is sealed, but shard 1 has no commit record")
    ]


def test_a_damaged_record_of_a_sealed_job_is_one_finding(sealed_job: StoredJob) -> None:
    sealed_job.path(RECORD).write_bytes(b"{}")
    assert problems(sealed_job) == [(RECORD, "not a JSON document of a job")]


def test_failures_that_are_not_what_their_names_say_are_found(job: StoredJob) -> None:
    job.store.put_if_absent(failure_key(1, MINE), encode(failure()))
    job.store.put_if_absent(failure_key(9, MINE), encode(failure(shard=9)))
    assert problems(job) == [
        (failure_key(1, MINE), f"it is about shard 0, attempt {MINE}"),
        (failure_key(9, MINE), "the plan has no such shard"),
    ]


def test_a_changed_numerics_class_is_found(job: StoredJob) -> None:
    job.store.put_if_absent(numerics_key(), encode(failure())[:-5])
    assert problems(job) == [(numerics_key(), "not a JSON document of a job")]


def test_a_plan_that_points_outside_the_job_is_reported(job: StoredJob) -> None:
    outside = "../../etc/passwd"
    staged = tuple(entry.model_copy(update={"path": outside}) for entry in job.plan.staged)
    shards = tuple(shard.model_copy(update={"part": outside}) for shard in job.plan.shards)
    plan = job.plan.model_copy(update={"staged": staged, "shards": shards})
    job.path(plan_key()).write_bytes(encode(plan))
    found = verify_structure(job.store)
    assert {finding.key for finding in found} == {outside}
    assert all("is not a key of this job" in finding.problem for finding in found)
