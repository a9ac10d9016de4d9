"""The job specification: combinations that cannot work, and that every leaf says its kind."""

from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from manifests.job import JobSpec
from manifests.settings import Kind
from tests.manifests.builders import job_spec


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        ({"tau": 0.9}, "decode.tau belongs to the rules threshold, .* with strict, remove it"),
        ({"rule": "threshold"}, "threshold needs decode.tau, a number between 0 and 1"),
        ({"rule": "threshold", "tau": 0.0}, "threshold needs decode.tau"),
        ({"rule": "threshold", "tau": 1.0}, "threshold needs decode.tau"),
        ({"full_drafts": "look_through", "fused_store": False}, "needs decode.fused_store"),
        (
            {"rule": "threshold", "tau": 0.9, "temperature": 1.0, "verifier": "rejection"},
            "rejection is defined for decode.rule strict only",
        ),
        ({"verifier": "rejection"}, "nothing to draw at temperature 0"),
        (
            {"verifier": "rejection", "temperature": 1.0},
            "verifies drawn chains only; use drafter.method: chain",
        ),
        ({"min_tokens": 9, "max_tokens": 8}, "decode.min_tokens is larger"),
        ({"top_p": 0.9}, "no effect at temperature 0"),
        ({"top_k": 5}, "no effect at temperature 0"),
        ({"temperature": float("inf")}, "finite number"),
        ({"temperature": -1}, "greater than or equal to 0"),
        ({"max_tokenz": 4}, "Extra inputs are not permitted"),
    ],
)
def test_settings_that_cannot_work_are_refused(decode: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(decode=decode)


def test_nucleus_sampling_is_accepted_above_temperature_zero() -> None:
    assert job_spec(decode={"temperature": 0.7, "top_p": 0.9, "top_k": 5}).decode.top_k == 5


THRESHOLD = {"rule": "threshold", "tau": 0.9}


@pytest.mark.parametrize(
    ("drafter", "decode", "message"),
    [
        ({"method": "spot"}, {}, "drafter.method spot needs drafter.path"),
        ({"method": "spot_chain"}, {}, "drafter.method spot_chain needs drafter.path"),
        ({"method": "spot_sets"}, THRESHOLD, "drafter.method spot_sets needs drafter.path"),
        ({"method": "spiffy"}, {}, "drafter.method spiffy needs drafter.path"),
        ({"method": "chain", "path": "/d"}, {}, "drafter.method chain uses no drafter.path"),
        (
            {"method": "spot", "path": "/d"},
            THRESHOLD,
            "proposes single commits.* use drafter.method: spot_sets or sets_stale",
        ),
        ({"method": "spot_chain", "path": "/d"}, THRESHOLD, "spot_chain proposes single commits"),
        ({"method": "spot_sets", "path": "/d"}, {}, "proposes sets.* use drafter.method: spot or"),
        ({"method": "sets_stale"}, {}, "sets_stale proposes sets of commits"),
        ({"method": "chain"}, {"gamma": 0.1}, "decode.gamma has no effect with drafter.method"),
        (
            {"method": "spot", "path": "/d"},
            {"temperature": 1.0, "verifier": "rejection"},
            "verifies drawn chains only",
        ),
        ({"method": "tree"}, {}, "Input should be 'spot'"),
    ],
)
def test_a_drafter_that_does_not_fit_is_refused(
    drafter: dict[str, Any], decode: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(drafter=drafter, decode=decode)


@pytest.mark.parametrize(
    ("drafter", "decode"),
    [
        ({"path": "/d"}, THRESHOLD),
        ({"method": "spot", "path": "/d"}, {"gamma": 0.1, "verifier": "uncoupled"}),
        ({"method": "spot_sets", "path": "/d"}, THRESHOLD | {"gamma": 0.1}),
        ({"method": "sets_stale"}, THRESHOLD),
        ({"method": "chain"}, THRESHOLD),
        ({"method": "confidence_tree"}, {"full_drafts": "reuse", "fused_store": False}),
        ({"method": "spiffy", "path": "/d"}, {"padded": True}),
        (
            {"method": "chain"},
            {"verifier": "rejection", "temperature": 1.0, "draft_budget": 4},
        ),
    ],
)
def test_drafters_that_fit_are_accepted(drafter: dict[str, Any], decode: dict[str, Any]) -> None:
    assert job_spec(drafter=drafter, decode=decode).drafts


@pytest.mark.parametrize(
    "decode",
    [{"verifier": "greedy"}, {"verifier": "rejection", "temperature": 1.0}, {"numerics": "fast"}],
)
def test_where_drafts_can_change_outputs_their_budget_is_a_number(decode: dict[str, Any]) -> None:
    drafter = {"method": "chain"}
    (cause,) = [f"decode.{key} {decode[key]}" for key in ("verifier", "numerics") if key in decode]
    with pytest.raises(ValidationError, match=f"auto depends on the machine, and with {cause}"):
        job_spec(drafter=drafter, decode=decode)
    job_spec(drafter=drafter, decode=decode | {"draft_budget": 4})
    job_spec(drafter=drafter, decode=decode, work="collect")


def test_nothing_is_drafted_without_a_drafter_or_with_a_budget_of_zero() -> None:
    assert not job_spec(decode={"draft_budget": 4}).drafts
    assert not job_spec(drafter={"method": "chain"}, decode={"draft_budget": 0}).drafts


def test_an_output_budget_of_zero_is_refused_by_its_name() -> None:
    with pytest.raises(ValidationError, match=r"decode\.max_tokens\n.*greater than or equal to 1"):
        job_spec(decode={"max_tokens": 0})


def test_a_specification_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        job_spec().sampling.n = 3  # type: ignore[misc]


def leaves(model: type[BaseModel], prefix: str = "") -> list[tuple[str, Any, str | None]]:
    """Name, extra and description of every setting."""
    found = []
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found += leaves(annotation, f"{prefix}{name}.")
        else:
            found.append((prefix + name, field.json_schema_extra, field.description))
    return found


def test_every_setting_says_whether_it_can_change_an_output_and_what_it_is() -> None:
    unclear = [
        name
        for name, extra, description in leaves(JobSpec)
        if not isinstance(extra, dict) or extra.get("kind") not in get_args(Kind) or not description
    ]
    assert unclear == []


def test_a_collect_job_may_name_a_drafter_and_drafts_nothing() -> None:
    groups = {"drafter": {"path": "/drafter"}, "decode": {"draft_budget": 8}}
    assert (job_spec(**groups).drafts, job_spec(work="collect", **groups).drafts) == (True, False)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://KEYID:topsecret@server",
        "https://topsecret@server",
        "https://server/?key=topsecret",
        "https://server/#topsecret",
        "ftp://topsecret",
        "topsecret:9000",
        "",
    ],
)
def test_an_endpoint_is_plain_and_what_is_not_is_refused_without_repeating_it(
    endpoint: str,
) -> None:
    with pytest.raises(ValidationError, match=r"storage\.endpoint must be") as caught:
        job_spec(storage={"endpoint": endpoint})
    assert "topsecret" not in str(caught.value)


def test_plain_endpoints_are_accepted() -> None:
    for endpoint in ("http://127.0.0.1:9000", "https://minio.example/base"):
        assert job_spec(storage={"endpoint": endpoint}).storage.endpoint == endpoint


def test_storage_has_no_place_for_a_secret() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted") as caught:
        job_spec(storage={"secret_access_key": "topsecret"})
    assert "topsecret" not in str(caught.value)


DEVICES: list[tuple[dict[str, Any], str]] = [
    ({}, "target.device cuda needs GPUs that Ray reserves: set cluster.gpus_per_worker"),
    ({"tensor_parallel": 2, "gpus_per_worker": 1}, "gpus_per_worker to 2, one for each process"),
]


@pytest.mark.parametrize(("cluster", "message"), DEVICES)
def test_a_gpu_that_is_not_reserved_is_refused(cluster: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(target={"path": "t", "device": "cuda"}, cluster=cluster)


def test_a_reserved_gpu_may_be_a_part_of_one() -> None:
    job_spec(target={"path": "t", "device": "cuda"}, cluster={"gpus_per_worker": 0.5})


def test_a_worker_reserves_the_threads_of_all_its_processes() -> None:
    cluster = job_spec(cluster={"threads": 3, "tensor_parallel": 2}).cluster
    assert cluster.reserved_cpus == 6


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"cluster": {"address": "ray://head:10001"}}, "run spotbatch on the head node"),
        ({"cluster": {"env": {"MY_TOKEN": "x"}}}, "the plan would store it in the open"),
        ({"decode": "fast"}, "valid dictionary"),
        (
            {
                "work": "null",
                "output": {"uri": "/out", "postprocess": "package.module:function"},
            },
            "output.postprocess has no text to work on with work: null",
        ),
        (
            {
                "input": {"uri": "/p.jsonl", "columns": {"temperature": "t"}},
                "decode": {"temperature": 1.0, "verifier": "greedy"},
            },
            "takes one temperature for the whole job",
        ),
    ],
)
def test_groups_that_cannot_work_are_refused(groups: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(**groups)


@pytest.mark.parametrize(
    ("cluster", "cpus"),
    [({"threads": 2}, 2.0), ({"threads": 2, "cpus_per_worker": 0.5}, 0.5)],
)
def test_a_worker_reserves_its_threads_unless_told_otherwise(
    cluster: dict[str, Any], cpus: float
) -> None:
    assert job_spec(cluster=cluster).cluster.reserved_cpus == cpus


def test_variables_without_secrets_are_passed_on() -> None:
    job = job_spec(cluster={"address": "auto", "env": {"OMP_NUM_THREADS": "1"}})
    assert job.cluster.env == {"OMP_NUM_THREADS": "1"}
