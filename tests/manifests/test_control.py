"""Requests to drivers: who is asked, and what a driver finds when it looks."""

from manifests.control import ask_driver, ask_drivers, requests_to
from manifests.documents import decode
from manifests.journal import write_presence
from manifests.keys import control_key
from manifests.records import Control
from tests.manifests.builders import StoredJob
from tests.manifests.test_journal import presence


def test_every_driver_that_has_not_said_goodbye_is_asked(job: StoredJob) -> None:
    for epoch, finished in (("e1", False), ("e2", True), ("e3", False)):
        write_presence(job.store, presence(epoch=epoch, finished=finished))
    assert sorted(ask_drivers(job.store, "drain")) == ["e1", "e3"]
    assert [requests_to(job.store, epoch) for epoch in ("e1", "e2", "e3")] == [
        {"drain"},
        set(),
        {"drain"},
    ]


def test_without_a_driver_nobody_is_asked(job: StoredJob) -> None:
    before = job.store.list("")
    assert ask_drivers(job.store, "cancel") == []
    assert job.store.list("") == before


def test_asking_twice_leaves_the_first_request(job: StoredJob) -> None:
    ask_driver(job.store, "e1", "drain")
    first = job.store.get(control_key("e1", "drain"))
    ask_driver(job.store, "e1", "drain")
    assert job.store.get(control_key("e1", "drain")) == first
    said = decode(Control, first, key=control_key("e1", "drain"))
    assert (said.epoch, said.request) == ("e1", "drain")


def test_a_driver_hears_all_that_was_asked_of_it_and_of_nobody_else(job: StoredJob) -> None:
    ask_driver(job.store, "e1", "drain")
    ask_driver(job.store, "e1", "cancel")
    ask_driver(job.store, "e10", "cancel")
    assert requests_to(job.store, "e1") == {"drain", "cancel"}
    assert requests_to(job.store, "e10") == {"cancel"}
