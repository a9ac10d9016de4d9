"""Connecting to Ray: what goes wrong there is a sentence."""

from typing import Any

import pytest
import ray

from jobs.driver.cluster import ray_cluster
from jobs.driver.errors import DriverError
from manifests.job_running import Cluster


def refuse(error: Exception) -> Any:
    def init(**settings: Any) -> None:
        raise error

    return init


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionError("nobody there"), "cannot be reached at this machine"),
        (Exception("The current node timed out.\nmore"), "Ray did not start here"),
    ],
)
def test_a_cluster_that_does_not_come_up_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    monkeypatch.setattr(ray, "init", refuse(error))
    with pytest.raises(DriverError, match=words) as caught, ray_cluster(Cluster()):
        pass
    assert "\n" not in str(caught.value)


def test_other_errors_of_ray_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "init", refuse(KeyError("ours")))
    with pytest.raises(KeyError, match="ours"), ray_cluster(Cluster()):
        pass
