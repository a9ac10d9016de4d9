"""Readings about draining nodes become events once, and again when they change."""

import socket

from jobs.driver.nodes import DrainNotices, _takes_connections
from schedulers.events import NodeDraining, NodeRestored


def test_a_notice_becomes_a_deadline_on_the_drivers_clock() -> None:
    events = DrainNotices().events({"n": 30.0}, now=100.0)
    assert list(events) == [NodeDraining(node="n", deadline=130.0, now=100.0)]


def test_the_same_notice_read_again_is_not_news() -> None:
    notices = DrainNotices()
    list(notices.events({"n": 30.0, "m": None}, now=100.0))
    assert list(notices.events({"n": 28.1, "m": None}, now=102.0)) == []
    assert "n" in notices
    assert None not in notices


def test_another_deadline_is_news() -> None:
    notices = DrainNotices()
    list(notices.events({"n": None}, now=100.0))
    assert list(notices.events({"n": 30.0}, now=101.0)) == [
        NodeDraining(node="n", deadline=131.0, now=101.0)
    ]
    assert len(list(notices.events({"n": 90.0}, now=102.0))) == 1


def test_a_notice_that_is_gone_was_withdrawn() -> None:
    notices = DrainNotices()
    list(notices.events({"n": 30.0}, now=100.0))
    assert list(notices.events({}, now=101.0)) == [NodeRestored(node="n", now=101.0)]
    assert list(notices.events({}, now=102.0)) == []


def test_silence_about_nodes_withdraws_nothing() -> None:
    notices = DrainNotices()
    list(notices.events({"n": 30.0}, now=100.0))
    assert list(notices.events(None, now=101.0)) == []
    assert "n" in notices


def test_a_place_that_takes_connections_is_told_from_one_that_does_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        assert _takes_connections(address)
    assert not _takes_connections(address)
