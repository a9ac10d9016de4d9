from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.document import Options, Row
from benchmarks.forwards import measure, stages
from benchmarks.settings import DRAFT_FREE, SAMPLED, STRICT, Setting, plan
from benchmarks.traces import read_traces, write_traces
from benchmarks.workload import Workload
from spot.transition import Rule

FREE = Setting(protocol="ignore_eos", rule=STRICT, method=DRAFT_FREE, budget=0, samples=2)
SPOT = replace(FREE, method="spot", budget=4)
CHAIN = replace(SPOT, method="chain")
THRESHOLD = Rule(name="threshold", tau=0.9999)


def _measured(setting: Setting, workload: Workload, controls: Path) -> Row:
    """A row, after its draft-free control."""
    if not (controls / f"{setting.control}.json").is_file():
        free = replace(setting, method=DRAFT_FREE, budget=0, options={})
        measure(free, workload, controls=controls)
    return measure(setting, workload, controls=controls)[0]


def test_controls_come_first_and_the_heaviest_first() -> None:
    settings = plan(full=True)
    controls, others = stages(settings)
    assert {settings[i].method for i in controls} == {DRAFT_FREE}
    assert sorted(controls + others) == list(range(len(settings)))
    weights = [settings[i].weight for i in others]
    assert weights == sorted(weights, reverse=True)


@pytest.mark.models
def test_draft_free_forwards_are_transitions(workload: Workload, controls: Path) -> None:
    row, _ = measure(FREE, workload, controls=controls)
    assert row.identical
    assert (row.budget, row.samples, row.options) == (0, 2, {})
    assert row.sample_nfe == row.sample_transitions
    assert row.transitions >= 32
    assert (row.reduction, row.accepted_per_round, row.wall_ratio) == (1.0, 0.0, None)


@pytest.mark.models
@pytest.mark.parametrize(
    ("rule", "method"),
    [
        (STRICT, "spot"),
        (STRICT, "confidence_tree"),
        (STRICT, "spiffy"),
        (SAMPLED, "uncoupled"),
        (THRESHOLD, "spot_sets"),
        (THRESHOLD, "sets_stale"),
    ],
)
def test_drafts_save_forwards_and_change_nothing(
    rule: Rule, method: str, workload: Workload, controls: Path
) -> None:
    row = _measured(replace(SPOT, rule=rule, method=method), workload, controls)
    assert row.identical
    assert row.reduction > 1.0
    assert row.nfe * row.reduction == pytest.approx(row.transitions)
    assert row.nfe == sum(row.sample_nfe) / 2


@pytest.mark.models
@pytest.mark.parametrize("method", ["greedy", "rejection_chain"])
def test_a_lossy_verifier_is_not_identical(method: str, workload: Workload, controls: Path) -> None:
    setting = replace(SPOT, rule=Rule(temperature=2.0), method=method)
    assert not _measured(setting, workload, controls).identical


@pytest.mark.models
def test_the_joint_oracle_accepts_every_draft(workload: Workload, controls: Path) -> None:
    setting = replace(SPOT, method="oracle_joint", options={"full_drafts": "drop"})
    row = _measured(setting, workload, controls)
    assert row.identical
    assert row.options == {"full_drafts": "drop"}
    fewest = [-(-transitions // 5) for transitions in row.sample_transitions]
    assert all(nfe <= least + 4 for nfe, least in zip(row.sample_nfe, fewest, strict=True))


@pytest.mark.models
def test_stores_of_their_own_are_counted_apart(workload: Workload, controls: Path) -> None:
    apart: Options = {"full_drafts": "drop", "fused_store": False}
    fused = _measured(replace(CHAIN, options={"full_drafts": "drop"}), workload, controls)
    row = _measured(replace(CHAIN, options=apart), workload, controls)
    assert row.sample_nfe == fused.sample_nfe
    assert row.store_forwards > fused.store_forwards == 0.0


@pytest.mark.models
def test_fewer_samples_are_compared_with_the_first_ones(
    workload: Workload, controls: Path, tmp_path: Path
) -> None:
    assert _measured(CHAIN, workload, controls).identical
    name = f"{FREE.control}.json"
    first, second = read_traces(controls / name)
    write_traces([first, second._replace(tokens=(0, *second.tokens[1:]))], tmp_path / name)
    both, _ = measure(CHAIN, workload, controls=tmp_path)
    one, _ = measure(replace(CHAIN, samples=1), workload, controls=tmp_path)
    assert (one.identical, both.identical) == (True, False)


@pytest.mark.models
def test_only_early_stops_end_before_the_last_position(workload: Workload, tmp_path: Path) -> None:
    longer = replace(workload, max_tokens=160)
    rows = [
        measure(replace(FREE, protocol=protocol, samples=1), longer, controls=tmp_path)[0]
        for protocol in ("early_stop", "ignore_eos")
    ]
    assert rows[0].transitions < 160 <= rows[1].transitions
