from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.decode import BATCH
from benchmarks.document import Options
from benchmarks.recipes import drafter_of, engine_settings, gamma_of, resolved, spot_options
from benchmarks.settings import DRAFT_FREE, LEFT_OUT, LOSSY, STRICT, Setting, plan
from benchmarks.workload import Workload
from spot.drafters.checkpoint import read_config, write_config
from spot.drafters.spot import SpotOptions

SPOT = Setting(protocol="early_stop", rule=STRICT, method="spot", budget=8, samples=1)
FLOORED = replace(SPOT, method="spot_gamma")


def _calibrated(workload: Workload, folder: Path, *, gamma: float) -> Workload:
    config = read_config(workload.drafter).model_copy(update={"gamma": gamma})
    write_config(config, folder)
    return replace(workload, drafter=folder)


def test_every_planned_setting_has_a_drafter_and_an_engine(workload: Workload) -> None:
    for setting in plan(full=True):
        drafter = drafter_of(setting, workload, mask_id=0, moves={})
        assert (drafter is None) == (setting.method == DRAFT_FREE)
        settings = engine_settings(setting, batch=BATCH, num_pages=1)
        assert (settings.verifier != "coupled") == (setting.method in LOSSY)
        assert settings.max_drafts_per_forward >= BATCH * setting.budget


@pytest.mark.parametrize("options", LEFT_OUT, ids=str)
def test_each_ablation_changes_just_what_it_names(workload: Workload, options: Options) -> None:
    changed = replace(SPOT, options=options)
    engines = [engine_settings(s, batch=1, num_pages=1) for s in (SPOT, changed)]
    recipes = [spot_options(s, workload) for s in (SPOT, changed)]
    found: Options = {}
    for before, after in (engines, recipes):
        names = type(before).__dataclass_fields__
        found |= {n: getattr(after, n) for n in names if getattr(after, n) != getattr(before, n)}
    assert found == options


def test_a_calibrated_floor_is_used_and_is_no_option(workload: Workload, tmp_path: Path) -> None:
    calibrated = _calibrated(workload, tmp_path, gamma=0.02)
    assert spot_options(FLOORED, calibrated) == SpotOptions(gamma=0.02)
    assert resolved(FLOORED, calibrated).options == {}
    assert gamma_of(FLOORED, calibrated) == 0.02
    assert gamma_of(SPOT, calibrated) == 0.0


def test_without_a_calibrated_floor_the_options_say_so(workload: Workload) -> None:
    setting = resolved(FLOORED, workload)
    assert setting.options == {"gamma": 0.1}
    assert gamma_of(setting, workload) == 0.1


def test_a_calibrated_floor_of_zero_is_not_replaced(workload: Workload, tmp_path: Path) -> None:
    calibrated = _calibrated(workload, tmp_path, gamma=0.0)
    assert resolved(FLOORED, calibrated).options == {}
    assert gamma_of(FLOORED, calibrated) == 0.0
