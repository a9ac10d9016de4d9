import pytest

from benchmarks.settings import DRAFT_FREE, LEFT_OUT, ORACLES, Setting, plan

DEFAULT, FULL = plan(), plan(full=True)


def _selected(settings: list[Setting], *methods: str) -> list[Setting]:
    return [s for s in settings if s.method in methods]


def test_every_setting_has_one_draft_free_control_with_as_many_samples() -> None:
    for setting in FULL:
        (control,) = [s for s in FULL if s.method == DRAFT_FREE and s.control == setting.control]
        assert control.samples >= setting.samples
        assert control.budget == 0


def test_no_setting_is_measured_twice() -> None:
    assert len({str(setting) for setting in FULL}) == len(FULL)


@pytest.mark.parametrize("method", ["spot", "spiffy"])
def test_the_headline_methods_take_many_samples_at_the_outer_budgets(method: str) -> None:
    samples = {(s.budget, s.samples) for s in _selected(DEFAULT, method)}
    assert samples == {(8, 64), (12, 16), (20, 64)}


def test_other_verifiers_and_uncoupled_drafts_are_measured_above_temperature_zero() -> None:
    chosen = _selected(DEFAULT, "uncoupled", "greedy", "rejection_chain")
    assert {s.rule.temperature for s in chosen} == {1.0}
    assert len(chosen) == 3 * 3 * 2


def test_sets_are_measured_under_the_threshold_rule_only() -> None:
    by_rule = {
        rule: {s.method for s in DEFAULT if s.rule.name == rule} for rule in ("strict", "threshold")
    }
    assert by_rule["threshold"] == {DRAFT_FREE, "spot_sets", "sets_stale"}
    assert by_rule["strict"] & by_rule["threshold"] == {DRAFT_FREE}


def test_ablations_and_oracles_come_only_when_asked_for() -> None:
    added = FULL[len(DEFAULT) :]
    assert FULL[: len(DEFAULT)] == DEFAULT
    assert not _selected(DEFAULT, *ORACLES)
    assert all(s.options for s in added)
    assert len(_selected(added, "spot")) == len(LEFT_OUT) * 2 * 2
    assert len(_selected(added, *ORACLES)) == 3 * 3 * 2 * 2


def test_seconds_are_measured_at_temperature_zero_with_early_stops() -> None:
    timed = [s for s in FULL if s.timed]
    assert {(s.protocol, s.rule.temperature) for s in timed} == {("early_stop", 0.0)}
    assert {(s.budget, s.rule.tau) for s in timed} == {(8, None), (20, None), (3, 0.9), (6, 0.9)}
    assert DRAFT_FREE not in {s.method for s in timed}


def test_the_number_of_samples_can_be_replaced() -> None:
    assert {s.samples for s in plan(full=True, samples=3)} == {3}
