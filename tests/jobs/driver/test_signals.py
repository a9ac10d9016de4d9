"""Signals are counted, and the handlers of before come back."""

import signal

import pytest

from jobs.driver.signals import SIGNALS, SignalCounter


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_counted_and_does_nothing_else(number: signal.Signals) -> None:
    with SignalCounter() as counter:
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert counter.num_received == 2


@pytest.mark.parametrize("number", SIGNALS)
def test_old_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with SignalCounter():
        assert signal.getsignal(number) != before
    assert signal.getsignal(number) == before
