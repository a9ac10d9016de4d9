"""A worker's loaded parts, on a random target."""

from pathlib import Path
from typing import Any

import pytest
import torch

import workers.runtime
from manifests.job import JobSpec
from manifests.job_decode import Decode
from manifests.staged import StagedRow
from spot.drafters.checkpoint import DrafterConfig, OrderModelShape, save_drafter
from spot.drafters.order_model import OrderModel
from spot.limits import Limits
from spot.targets.base import Target
from spot.transition import Rule
from tests.twins import BLOCK_LENGTH, PAD_ID, STOP_ID, VOCAB_ROWS, write_sdar_twin
from workers.engine import Engine, EngineSettings
from workers.runtime import Runtime, drafter_of, limits_of, load_runtime, rule_of
from workers.samples import SampleRequest, SampleResult

MAX_TOKENS = 12
ROW = StagedRow(row=0, id="r", prompt="hi")


@pytest.fixture(scope="module")
def twin_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sdar_twin(tmp_path_factory.mktemp("twin"))


@pytest.fixture(scope="module")
def drafter_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(tmp_path_factory.mktemp("drafter"))
    shape = OrderModelShape(width=16, layers=1, heads=2, feedforward=16)
    config = DrafterConfig(shape=shape, block_length=BLOCK_LENGTH, target="t", data="d")
    torch.manual_seed(0)
    save_drafter(OrderModel(shape), config, path)
    return path


@pytest.fixture(autouse=True)
def _few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No room beside the batch's own pages, so that loading takes no memory to speak of."""
    monkeypatch.setattr(workers.runtime, "CACHE_BYTES", 0)


def _job(
    twin: Path,
    *,
    drafter: Path | None = None,
    method: str | None = None,
    trace: str = "none",
    **decode: Any,
) -> JobSpec:
    return JobSpec.model_validate(
        {
            "input": {"uri": "prompts.jsonl"},
            "target": {"path": str(twin)},
            "drafter": {"path": drafter and str(drafter), "method": method},
            "decode": {"max_tokens": MAX_TOKENS, "draft_budget": 0} | decode,
            "output": {"uri": "out", "trace": trace},
        }
    )


def _request(prompt_ids: tuple[int, ...]) -> SampleRequest:
    return SampleRequest(
        shard=0, row=0, sample=0, prompt_ids=prompt_ids, key=1, max_tokens=MAX_TOKENS
    )


def _decode(runtime: Runtime) -> SampleResult:
    runtime.engine.add(_request(runtime.encode(ROW)))
    results: list[SampleResult] = []
    while runtime.engine.has_work():
        results += runtime.engine.step()
    (result,) = results
    return result


def test_without_stop_strings_the_engines_output_stays_as_it_is(twin_path: Path) -> None:
    runtime = load_runtime(_job(twin_path))
    result = _decode(runtime)
    text = runtime.decode(result.token_ids)
    assert runtime.finish(result) == (text, result.token_ids, result.finish_reason)


def test_a_stop_string_cuts_what_the_engine_decoded(twin_path: Path) -> None:
    free = load_runtime(_job(twin_path, ignore_eos=True))
    whole = _decode(free)
    text = free.decode(whole.token_ids)
    stop = text[-1]
    runtime = load_runtime(_job(twin_path, ignore_eos=True, stop=["never there", stop]))
    again = _decode(runtime)
    assert again.token_ids == whole.token_ids
    kept, token_ids, reason = runtime.finish(again)
    assert (kept, reason) == (text[: text.index(stop)], "stop")
    assert token_ids == whole.token_ids[: len(token_ids)]
    assert runtime.decode(token_ids) == kept


def test_a_budget_of_zero_loads_no_drafter(twin_path: Path, tmp_path: Path) -> None:
    runtime = load_runtime(_job(twin_path, drafter=tmp_path / "nowhere", draft_budget=0))
    assert runtime.drafter is None


def test_a_fixed_budget_drafts_with_the_jobs_drafter(twin_path: Path, drafter_path: Path) -> None:
    runtime = load_runtime(_job(twin_path, drafter=drafter_path, draft_budget=3))
    result = _decode(runtime)
    assert runtime.drafter is not None
    assert result.drafted > 0


def test_drafting_leaves_the_output_alone(twin_path: Path, drafter_path: Path) -> None:
    free = _decode(load_runtime(_job(twin_path)))
    drafted = _decode(load_runtime(_job(twin_path, drafter=drafter_path, draft_budget="auto")))
    assert drafted.token_ids == free.token_ids


def test_an_automatic_budget_without_a_drafter_drafts_nothing(twin_path: Path) -> None:
    runtime = load_runtime(_job(twin_path, draft_budget="auto"))
    _decode(runtime)
    assert runtime.engine.counters()["drafts"] == 0


@pytest.mark.parametrize(("trace", "traced"), [("none", False), ("tokens", True)])
def test_trajectories_are_kept_where_the_job_wants_a_trace(
    twin_path: Path, trace: str, traced: bool
) -> None:
    result = _decode(load_runtime(_job(twin_path, trace=trace)))
    assert (result.trace is not None) == traced


def test_the_longest_sample_that_the_target_takes_has_its_pages(twin_path: Path) -> None:
    runtime = load_runtime(_job(twin_path))
    num_prompt = runtime.target.spec.max_positions - MAX_TOKENS
    runtime.engine.add(_request((65,) * num_prompt))
    runtime.engine.step()
    assert isinstance(runtime.engine, Engine)
    assert runtime.engine.num_active == 1


@pytest.mark.parametrize(("numerics", "probes"), [("invariant", 1), ("fast", 0)])
def test_invariant_numerics_are_probed_at_the_start(
    twin_path: Path, monkeypatch: pytest.MonkeyPatch, numerics: str, probes: int
) -> None:
    probed: list[object] = []
    monkeypatch.setattr(workers.runtime, "probe_invariance", probed.append)
    load_runtime(_job(twin_path, numerics=numerics))
    assert len(probed) == probes


def test_an_id_that_the_job_bans_is_never_output(twin_path: Path) -> None:
    whole = _decode(load_runtime(_job(twin_path, ignore_eos=True)))
    banned = tuple(set(whole.token_ids[:2]))
    again = _decode(load_runtime(_job(twin_path, ignore_eos=True, banned_token_ids=banned)))
    assert len(again.token_ids) == len(whole.token_ids)
    assert not {*again.token_ids} & {*banned}


@pytest.mark.parametrize(
    "ids",
    [
        {"banned_token_ids": (VOCAB_ROWS,)},
        {"banned_token_ids": (-1,)},
        {"penalized_token_ids": (VOCAB_ROWS,), "confidence_penalty": 1.0},
    ],
)
def test_an_id_that_the_target_has_not_got_is_refused(twin_path: Path, ids: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="but the target's ids go from 0 to 263"):
        load_runtime(_job(twin_path, **ids))


def test_banning_everything_is_refused(twin_path: Path) -> None:
    with pytest.raises(ValueError, match="leaves no token that could be output"):
        load_runtime(_job(twin_path, banned_token_ids=tuple(range(VOCAB_ROWS))))


def test_the_rule_has_the_jobs_constants() -> None:
    decode = Decode(temperature=0.7, top_k=5, top_p=0.9)
    assert rule_of(decode) == Rule(temperature=0.7, top_k=5, top_p=0.9)
    penalty = Decode(confidence_penalty=2.0, penalized_token_ids=(4, 5))
    assert rule_of(penalty) == Rule(confidence_penalty=2.0, penalized_ids=(4, 5))


def test_the_threshold_rule_has_the_jobs_tau() -> None:
    assert rule_of(Decode(rule="threshold", tau=0.9)) == Rule(name="threshold", tau=0.9)


@pytest.mark.parametrize(
    ("decode", "expected"),
    [
        ({}, {}),
        (
            {"verifier": "uncoupled", "full_drafts": "reuse", "fused_store": False},
            {"verifier": "uncoupled", "full_drafts": "reuse", "fused_store": False},
        ),
        ({"padded": True, "full_drafts": "drop"}, {"padded": True, "full_drafts": "drop"}),
    ],
)
def test_the_engine_has_the_jobs_settings(
    twin_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    decode: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    made: list[EngineSettings] = []

    def spy(target: Target, *, settings: EngineSettings, **parts: Any) -> Engine:
        made.append(settings)
        return Engine(target, settings=settings, **parts)

    monkeypatch.setattr(workers.runtime, "Engine", spy)
    load_runtime(_job(twin_path, **decode))
    defaults = {"verifier": "coupled", "full_drafts": "look_through", "fused_store": True}
    wanted = defaults | {"padded": False} | expected
    assert [{name: getattr(s, name) for name in wanted} for s in made] == [wanted]


SAMPLED: dict[str, Any] = {"temperature": 1.0, "draft_budget": 4}


@pytest.mark.parametrize(
    "decode",
    [
        {"verifier": "uncoupled"},
        {"full_drafts": "reuse", "fused_store": False},
        {"full_drafts": "drop", "padded": True},
    ],
    ids=["uncoupled", "stores apart", "padded"],
)
def test_exact_settings_of_drafting_leave_the_output_alone(
    twin_path: Path, decode: dict[str, Any]
) -> None:
    free = _decode(load_runtime(_job(twin_path, temperature=1.0)))
    drafted = _decode(load_runtime(_job(twin_path, method="chain", **(SAMPLED | decode))))
    assert drafted.drafted > 0
    assert drafted.token_ids == free.token_ids


def test_greedy_match_and_rejection_decode_other_samples(twin_path: Path) -> None:
    free = _decode(load_runtime(_job(twin_path, temperature=1.0)))
    for verifier in ("greedy", "rejection"):
        job = _job(twin_path, method="chain", verifier=verifier, **SAMPLED)
        result = _decode(load_runtime(job))
        assert result.accepted > 0
        assert result.token_ids != free.token_ids


@pytest.mark.parametrize(
    ("verifier", "coupled", "sampled"),
    [
        ("coupled", True, False),
        ("uncoupled", False, False),
        ("greedy", False, False),
        ("rejection", False, True),
    ],
)
def test_the_verifier_decides_how_drafts_are_drawn(
    monkeypatch: pytest.MonkeyPatch, verifier: str, coupled: bool, sampled: bool
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(
        workers.runtime, "make_drafter", lambda method, path, **options: asked.append(options)
    )
    job = _job(Path("t"), method="chain", verifier=verifier, **SAMPLED)
    drafter_of(job, mask_id=3)
    assert [(o["coupled"], o["sampled"], o["mask_id"]) for o in asked] == [(coupled, sampled, 3)]


def _limits(**decode: Any) -> Limits:
    return limits_of(Decode(**decode), prompt_tokens=9, max_tokens=7, stop_ids=(STOP_ID, PAD_ID))


def test_a_sample_ends_where_its_own_budget_ends() -> None:
    limits = _limits(max_tokens=100, min_tokens=3)
    assert (limits.end, limits.min_tokens) == (16, 3)


def test_stop_ids_of_the_job_join_those_of_the_target() -> None:
    assert _limits(stop_token_ids=(5,)).stop_ids == {STOP_ID, PAD_ID, 5}


def test_ignoring_the_end_of_sequence_leaves_no_stop_ids() -> None:
    assert _limits(ignore_eos=True, stop_token_ids=(5,)).stop_ids == frozenset()
