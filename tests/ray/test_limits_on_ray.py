"""A run that has used its time drains by the driver's own means, and another one goes on."""

import pytest

from jobs.planning import PlannedJob
from jobs.running import run_planned
from manifests.job_running import Cluster
from tests.jobs.driver.fakes import FakeSink
from tests.manifests.builders import StoredJob
from tests.ray.outputs import assert_whole

pytestmark = pytest.mark.ray


def test_a_run_out_of_time_is_drained_and_the_next_one_finishes(
    job: StoredJob, cluster_address: str, sink: FakeSink
) -> None:
    planned = PlannedJob(
        store=job.store, plan=job.plan, created=False, warnings=(), drafter_files=()
    )
    cluster = Cluster(address=cluster_address, workers=1)
    spec = job.plan.job.model_copy(update={"cluster": cluster})
    limited = run_planned(planned, spec, progress=sink, time_s=1e-9)
    assert (limited.outcome, limited.exit_code) == ("drained", 3)
    assert sum("--stop-after" in message for message in sink.messages) == 1
    assert run_planned(planned, spec, progress=sink).outcome == "sealed"
    assert_whole(job)
