"""The rules of released loops in a job file: what each needs, and what is refused."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from manifests.rules import RULES, RuleName, require_own, require_schedule
from spot.transition import Rule
from tests.manifests.builders import job_spec

DYNAMIC = {"rule": "low_confidence_dynamic", "tau": 0.85}


def test_every_rule_of_the_decoder_can_be_asked_for() -> None:
    assert set(get_args(RuleName)) == set(RULES) == set(get_args(Rule.__annotations__["name"]))


@pytest.mark.parametrize("rule", get_args(RuleName))
def test_a_job_and_the_decoder_agree_about_a_rules_constants(rule: RuleName) -> None:
    needs, takes = RULES[rule].needs, RULES[rule].takes
    values: dict[str, Any] = {"tau": 0.5, "denoising_steps": 2, "entropy_bound": 0.5}
    fitting = {name: values[name] for name in (*needs, *takes)}
    assert job_spec(decode={"rule": rule} | fitting).decode.rule == Rule(name=rule, **fitting).name
    for name in values.keys() - fitting:
        with pytest.raises(ValidationError, match=f"decode.{name} belongs to the rules"):
            job_spec(decode={"rule": rule, name: values[name]} | fitting)
        with pytest.raises(ValueError, match=f"the {rule} rule has no {name}"):
            Rule(name=rule, **{name: values[name]} | fitting)
    for name in needs:
        with pytest.raises(ValidationError, match=f"decode.rule {rule} needs decode.{name}"):
            job_spec(decode={"rule": rule})
        with pytest.raises(ValueError, match=f"the {rule} rule needs an? {name}"):
            Rule(name=rule)


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        ({"rule": "low_confidence_dynamic"}, r"generate.py has 0.85\)"),
        ({"rule": "llada2_threshold"}, r"LLaDA2's generate has 0.95\)"),
        ({"rule": "entropy_bounded"}, r"generate.py has 0.35\)"),
        ({"rule": "entropy_bounded", "entropy_bound": 0.0}, "needs decode.entropy_bound"),
        ({"rule": "sequential", "denoising_steps": 0}, "greater than or equal to 1"),
        (
            DYNAMIC | {"temperature": 1.0, "top_k": 1},
            "so that positions could not be told apart",
        ),
        (DYNAMIC | {"verifier": "greedy"}, "greedy is not defined for decode.rule low_confidence"),
        (
            DYNAMIC | {"verifier": "rejection", "temperature": 1.0},
            "rejection is defined for decode.rule strict only",
        ),
    ],
)
def test_what_a_released_loop_cannot_do_is_refused(decode: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(decode=decode)


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        ({"confidence_penalty": 1.0}, "mean nothing alone; set both, or neither"),
        ({"penalized_token_ids": [5]}, "mean nothing alone; set both, or neither"),
        ({"confidence_penalty": -1.0, "penalized_token_ids": [5]}, "greater than or equal to 0"),
        (
            DYNAMIC | {"confidence_penalty": 1.0, "penalized_token_ids": [5]},
            "low_confidence_dynamic selects as its released loop does, which has no such penalty",
        ),
    ],
)
def test_a_penalty_that_means_nothing_is_refused(decode: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        job_spec(decode=decode)


def test_one_token_to_choose_from_is_fine_where_positions_are_not_chosen_by_it() -> None:
    decode = {"rule": "sequential", "temperature": 1.0, "top_k": 1}
    assert job_spec(decode=decode).decode.top_k == 1
    with pytest.raises(ValueError, match="every confidence of the low_confidence_static rule is 1"):
        Rule(name="low_confidence_static", temperature=1.0, top_k=1)


@pytest.mark.parametrize(
    ("method", "decode"),
    [
        ("spot", {"rule": "low_confidence_static"}),
        ("spot_sets", DYNAMIC),
        ("spot_sets", {"rule": "llada2_threshold", "tau": 0.95}),
        ("stale_rule", {}),
        ("stale_rule", DYNAMIC | {"temperature": 1.0, "denoising_steps": 4}),
        ("stale_rule", {"rule": "entropy_bounded", "entropy_bound": 0.35}),
        ("stale_rule", {"rule": "sequential", "temperature": 0.7}),
    ],
)
def test_drafters_fit_the_rules_whose_transitions_they_know(
    method: str, decode: dict[str, Any]
) -> None:
    path = {"path": "/d"} if method != "stale_rule" else {}
    assert job_spec(drafter={"method": method} | path, decode=decode).drafts


@pytest.mark.parametrize(
    ("method", "decode"),
    [
        ("spot", {"rule": "low_confidence_static", "temperature": 1.0}),
        ("spot", {"rule": "low_confidence_static", "denoising_steps": 4}),
        ("spot_sets", DYNAMIC | {"denoising_steps": 4}),
        ("spot_sets", {"rule": "entropy_bounded", "entropy_bound": 0.35}),
        ("spot", {"rule": "sequential"}),
    ],
)
def test_a_drafter_that_does_not_know_the_rule_is_refused(
    method: str, decode: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError, match=r"use drafter.method: stale_rule"):
        job_spec(drafter={"method": method, "path": "/d"}, decode=decode)


def test_a_schedule_longer_than_a_block_is_refused() -> None:
    require_schedule(4, block_length=4)
    require_schedule(None, block_length=4)
    with pytest.raises(ValueError, match="denoising_steps 5 is above the target's block length 4"):
        require_schedule(5, block_length=4)


def test_what_knows_our_own_rules_only_says_so() -> None:
    require_own("threshold", what="drafter calibrate")
    with pytest.raises(ValueError, match=r"calibrate knows decode.rule strict and threshold"):
        require_own("sequential", what="drafter calibrate")
