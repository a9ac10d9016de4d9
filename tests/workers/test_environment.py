"""Versions and numerics: what is compared, and the sentences of refusals."""

from dataclasses import replace

import pytest

import workers
from manifests.documents import encode
from manifests.errors import DamagedError
from manifests.keys import numerics_key
from tests.manifests.builders import StoredJob, job_spec
from workers.environment import (
    PACKAGES,
    NumericsClass,
    PackageReport,
    ProcessIdentity,
    check_environment,
    claim_numerics,
    numerics_class,
    report_environment,
)
from workers.errors import NumericsError, VersionError

MINE = NumericsClass(
    device="cpu 1",
    instruction_set="AVX512",
    numerics="invariant",
    dtype="float32",
    torch="2.13.0",
    blas="mkl",
    threads=1,
)
ELSEWHERE = ProcessIdentity(host="node-7", pid=1, created=0.0)


def test_a_report_names_every_package_with_its_path_and_sources() -> None:
    report = report_environment()
    assert set(report.packages) == set(PACKAGES)
    assert f"{report.packages['workers'].path}/__init__.py" == workers.__file__
    assert set(report.versions) == {"python", "spotbatch", "ray", "torch"}
    assert "missing" not in report.versions.values()


def test_equal_environments_on_different_paths_and_hosts_are_accepted() -> None:
    driver = report_environment()
    packages = {
        name: PackageReport(path=f"/elsewhere/{name}", sources=package.sources)
        for name, package in driver.packages.items()
    }
    worker = replace(driver, process=ELSEWHERE, packages=packages)
    check_environment(worker, name="worker-0001", driver=driver)


def test_a_package_with_other_sources_is_refused_by_name_and_path() -> None:
    driver = report_environment()
    foreign = {"jobs": PackageReport(path="/home/user/jobs", sources="0" * 12)}
    worker = replace(driver, process=ELSEWHERE, packages=driver.packages | foreign)
    with pytest.raises(
        VersionError, match=r"^worker w on node-7 imports `jobs` from /home/user/jobs .*install"
    ):
        check_environment(worker, name="w", driver=driver)


def test_a_missing_package_is_refused() -> None:
    driver = report_environment()
    packages = {name: p for name, p in driver.packages.items() if name != "spot"}
    with pytest.raises(VersionError, match="imports `spot` from nothing"):
        check_environment(replace(driver, packages=packages), name="w", driver=driver)


def test_another_version_is_refused_by_name() -> None:
    driver = report_environment()
    worker = replace(driver, versions=driver.versions | {"torch": "1.0"})
    with pytest.raises(VersionError, match=r"runs torch 1\.0, but the driver"):
        check_environment(worker, name="w", driver=driver)


def test_the_first_worker_creates_the_class_and_an_equal_one_is_accepted(job: StoredJob) -> None:
    claim_numerics(job.store, MINE, worker="a")
    claim_numerics(job.store, MINE, worker="b")
    assert job.store.get(numerics_key()) == encode(MINE)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("device", "cpu 2"),
        ("instruction_set", "AVX2"),
        ("numerics", "fast"),
        ("dtype", "bfloat16"),
        ("tensor_parallel", 2),
        ("torch", "2.14.0"),
        ("blas", "openblas"),
    ],
)
def test_another_class_is_refused_by_field(job: StoredJob, field: str, value: object) -> None:
    claim_numerics(job.store, MINE, worker="a")
    with pytest.raises(NumericsError, match=f"worker b has {field} {value!r}"):
        claim_numerics(job.store, MINE.model_copy(update={field: value}), worker="b")


def test_threads_may_differ_in_invariant_mode_only(job: StoredJob) -> None:
    claim_numerics(job.store, MINE, worker="a")
    claim_numerics(job.store, MINE.model_copy(update={"threads": 2}), worker="b")


def test_threads_must_be_equal_in_fast_mode(job: StoredJob) -> None:
    fast = MINE.model_copy(update={"numerics": "fast"})
    claim_numerics(job.store, fast, worker="a")
    with pytest.raises(NumericsError, match="threads"):
        claim_numerics(job.store, fast.model_copy(update={"threads": 2}), worker="b")


def test_a_damaged_class_is_never_taken_for_absent(job: StoredJob) -> None:
    job.store.put_if_absent(numerics_key(), b"{}")
    with pytest.raises(DamagedError, match=r"numerics\.json"):
        claim_numerics(job.store, MINE, worker="a")


@pytest.mark.models
def test_this_machine_has_a_class() -> None:
    job = job_spec(cluster={"threads": 2}, decode={"numerics": "fast"})
    mine = numerics_class(job, dtype="float32")
    assert (mine.numerics, mine.dtype, mine.threads) == ("fast", "float32", 2)
    assert "unknown" not in (mine.device, mine.blas)
    assert mine.instruction_set
