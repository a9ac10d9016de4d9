"""Signals are counted, and the handlers of before come back."""

import signal

import pytest

from jobs.driver.stops import SIGNALS, Signals


def test_one_interrupt_asks_for_a_drain_and_two_for_the_end() -> None:
    with Signals() as signals:
        assert not signals.wants_drain
        signal.raise_signal(signal.SIGINT)
        assert (signals.wants_drain, signals.wants_cancel) == (True, False)
        signal.raise_signal(signal.SIGINT)
        assert signals.wants_cancel


def test_terminations_ask_for_a_drain_however_many_come() -> None:
    with Signals() as signals:
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert (signals.wants_drain, signals.wants_cancel) == (True, False)


@pytest.mark.parametrize("number", SIGNALS)
def test_old_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Signals():
        assert signal.getsignal(number) != before
    assert signal.getsignal(number) == before
