"""The S3 store when requests, replies and conditions get lost on the way to a real server."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from manifests.errors import (
    ManifestError,
    MissingError,
    RefusedError,
    StoreError,
    UnknownOutcomeError,
)
from manifests.job_running import Storage
from manifests.plan import write_plan
from manifests.protocol import commit_shard, read_records, seal_job
from manifests.store.s3 import S3Client, S3Objects, S3Store, parse_location
from manifests.verification import verify_structure
from tests.faulty_proxy import FaultyProxy, Kind, running_proxy
from tests.manifests.builders import make_job
from tests.s3_server import S3Server

pytestmark = pytest.mark.s3

MIB = 2**20
OpenStore = Callable[..., S3Store]


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultyProxy]:
    """A proxy before the server."""
    with running_proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def open_store(proxy: FaultyProxy, s3_bucket: str) -> OpenStore:
    """Opens stores behind the proxy; nobody pauses between attempts."""

    def open_store(**settings: object) -> S3Store:
        storage = Storage(endpoint=proxy.endpoint, **{"attempts": 3, **settings})
        client = S3Client(storage, pause=lambda seconds: None)
        location = parse_location(f"s3://{s3_bucket}/job", field="output.uri")
        return S3Store(location, objects=S3Objects(client))

    return open_store


@pytest.mark.parametrize("times", [1, 2, 3])
def test_after_a_lost_reply_nobody_is_told_that_it_is_done_and_reading_tells(
    open_store: OpenStore, proxy: FaultyProxy, times: int
) -> None:
    # aiohttp sends a request again by itself, once; only from the second loss on is it ours to see.
    store = open_store()
    proxy.lose("reply lost", "PUT", "/a", times=times)
    told = RefusedError if times == 1 else UnknownOutcomeError
    with pytest.raises(told, match=r"^a in s3://"):
        store.put_if_absent("a", b"mine")
    assert store.get("a") == b"mine"
    with pytest.raises(RefusedError):
        store.put_if_absent("a", b"mine")


def test_an_answer_that_never_comes_leaves_the_outcome_unknown(
    open_store: OpenStore, proxy: FaultyProxy
) -> None:
    store = open_store(read_timeout_s=0.3)
    proxy.lose("silence", "PUT", "/a")
    with pytest.raises(UnknownOutcomeError):
        store.put_if_absent("a", b"mine")
    assert store.get("a") == b"mine"


@pytest.mark.parametrize("kind", ["request lost", "slow down", "conflict"])
def test_a_request_without_effect_is_repeated(
    open_store: OpenStore, proxy: FaultyProxy, kind: Kind
) -> None:
    proxy.lose(kind, "PUT", "/a", times=2)
    open_store().put_if_absent("a", b"mine")
    assert open_store().get("a") == b"mine"


def test_a_create_that_is_never_answered_is_unknown_at_last(
    open_store: OpenStore, proxy: FaultyProxy
) -> None:
    proxy.lose("request lost", "PUT", "/a", times=6)
    store = open_store()
    with pytest.raises(UnknownOutcomeError):
        store.put_if_absent("a", b"mine")
    assert store.list("") == []


def test_a_store_that_never_takes_a_create_says_so(
    open_store: OpenStore, proxy: FaultyProxy
) -> None:
    proxy.lose("conflict", "PUT", "/a", times=3)
    with pytest.raises(StoreError, match=r"S3 answered ConditionalRequestConflict \(HTTP 409\)"):
        open_store().put_if_absent("a", b"mine")


@pytest.mark.parametrize("kind", ["request lost", "reply lost", "body cut", "slow down"])
def test_reading_is_repeated_until_it_is_whole(
    open_store: OpenStore, proxy: FaultyProxy, kind: Kind
) -> None:
    store, data = open_store(), bytes(range(256)) * 1000
    store.put_if_absent("data/a", data)
    proxy.lose(kind, "GET", "/data/a")
    assert store.get("data/a") == data
    proxy.lose(kind, "GET", "/data/a")
    with store.open_local("data/a") as path:
        assert path.read_bytes() == data
    proxy.lose(kind, "GET", "/data/a")
    with store.open_reader("data/a") as reader:
        assert reader.read() == data


def test_a_server_that_cannot_be_reached_is_one_sentence(s3_bucket: str) -> None:
    storage = Storage(endpoint="http://127.0.0.1:9", attempts=2)
    location = parse_location(f"s3://{s3_bucket}/job", field="output.uri")
    store = S3Store(location, objects=S3Objects(S3Client(storage, pause=lambda seconds: None)))
    with pytest.raises(StoreError, match=r"check storage\.endpoint and the network"):
        store.probe()
    with pytest.raises(StoreError, match=r"check storage\.endpoint and the network"):
        store.get("plan.json")


def test_a_server_that_ignores_the_condition_is_refused_with_a_remedy(
    open_store: OpenStore, proxy: FaultyProxy
) -> None:
    proxy.keeps_conditions = False
    with pytest.raises(ManifestError, match="ignores If-None-Match; use S3, or a server that"):
        open_store().probe()
    assert open_store().list("") == []


@pytest.mark.parametrize("lost", ["data/", "commits/", "seals/"])
@pytest.mark.parametrize("kind", ["request lost", "reply lost"])
def test_a_job_survives_what_gets_lost_of_data_record_and_seal(
    open_store: OpenStore, proxy: FaultyProxy, tmp_path: Path, lost: str, kind: Kind
) -> None:
    job, store = make_job(tmp_path), open_store()
    for key in job.store.list("input/"):
        store.put_file_if_absent(key, job.path(key))
    plan = write_plan(store, job.plan)
    proxy.lose(kind, "PUT", f"/{lost}", times=3)
    for shard in (0, 1):
        attempt = f"{shard:016x}"
        path = job.attempt_file(shard, attempt=attempt)
        record = job.record(shard, attempt=attempt, path=path)
        assert commit_shard(store, record=record, data_path=path).outcome == "committed"
    seal = seal_job(store, plan)
    assert [shard.data_key for shard in seal.shards] == store.list("data/")
    assert sorted(read_records(store, plan)) == [0, 1]
    assert verify_structure(store) == []


def test_a_commit_is_two_requests(
    open_store: OpenStore, proxy: FaultyProxy, tmp_path: Path
) -> None:
    job, store = make_job(tmp_path), open_store()
    path = job.attempt_file(0, attempt="a" * 16)
    record = job.record(0, attempt="a" * 16, path=path)
    proxy.seen.clear()
    commit_shard(store, record=record, data_path=path)
    assert [request.partition("?")[0].partition("/job/")[2] for request in proxy.seen] == [
        record.data_key,
        "commits/r0000/00000000.json",
    ]


@pytest.mark.parametrize("kind", ["request lost", "reply lost"])
def test_a_file_in_parts_is_created_once_whatever_its_completion_meets(
    open_store: OpenStore, proxy: FaultyProxy, tmp_path: Path, kind: Kind
) -> None:
    store, path = open_store(part_mib=5), tmp_path / "f"
    path.write_bytes(os.urandom(11 * MIB))
    proxy.lose(kind, "POST", "uploadId")
    with suppress(UnknownOutcomeError):  # the server may know the upload no more
        store.put_file_if_absent("data/a", path)
    assert any("partNumber=3" in request for request in proxy.seen)
    with store.open_local("data/a") as found:
        assert found.read_bytes() == path.read_bytes()
    with pytest.raises(RefusedError):
        store.put_file_if_absent("data/a", path)


def test_a_file_in_parts_does_not_replace_an_object(open_store: OpenStore, tmp_path: Path) -> None:
    store, path = open_store(part_mib=5), tmp_path / "f"
    path.write_bytes(bytes(11 * MIB))
    store.put_if_absent("data/a", b"first")
    with pytest.raises(RefusedError):
        store.put_file_if_absent("data/a", path)
    assert store.get("data/a") == b"first"


def test_hidden_names_and_folder_marks_are_not_listed(s3_server: S3Server, s3_bucket: str) -> None:
    storage = Storage(endpoint=s3_server.endpoint)
    objects = S3Objects(S3Client(storage))
    store = S3Store(parse_location(f"s3://{s3_bucket}/job", field="f"), objects=objects)
    for name in ("folder/", ".hidden", "commits/.x.tmp", "commits/a"):
        objects.create(f"{s3_bucket}/job/{name}", b"", about=name)
    assert store.list("") == ["commits/a"]


def test_a_forked_process_can_use_the_store(open_store: OpenStore) -> None:
    store = open_store()
    store.put_if_absent("parent", b"")
    child = os.fork()
    if child == 0:
        try:
            store.put_if_absent("child", b"")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert store.list("") == ["child", "parent"]


@pytest.mark.usefixtures("s3_bucket")
def test_an_absent_bucket_is_one_sentence_with_a_remedy() -> None:
    objects = S3Objects(S3Client(Storage()))
    store = S3Store(parse_location("s3://no-such-bucket/job", field="f"), objects=objects)
    with pytest.raises(StoreError, match=r"NoSuchBucket .* create the bucket"):
        store.probe()
    with pytest.raises((StoreError, MissingError)):
        store.get("plan.json")
