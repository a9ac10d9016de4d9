"""Families with exact pages, decoded in fp64: tokens and commit order of an independent decoder.

The reference decoder takes samples one by one; the engine takes them together, drafted and not.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from spot.limits import Limits
from spot.rounds import Sample
from spot.targets.paged import PagedTarget
from spot.transition import Rule
from tests.checkpoints import FamilyName, specials_of, write_released
from tests.spot.hostile import Hostile
from tests.spot.lineup import Outcome, decode_all, decode_one
from tests.spot.plain import Ids, PlainDecoder

L = 8
MAX_TOKENS = 11
FAMILIES: tuple[FamilyName, ...] = ("sdar", "llada2")
# P < L; P mod L in {0, 1, L - 1}
PROMPTS = (3, L, L + 1, 2 * L - 1, 3 * L)
Expected = tuple[list[int], list[tuple[int, int]]]


class Case:
    """A family's checkpoint, loaded in fp64, and the independent decoder's answers."""

    def __init__(self, family: FamilyName, directory: Path) -> None:
        specials = specials_of(family)
        self.target = PagedTarget.load(write_released(family, directory), dtype="float64")
        spec = self.target.spec
        self.ids = Ids(
            mask=spec.mask_id,
            stops=spec.stop_ids,
            num_tokens=specials.first + len(specials.tokens),
            rows=specials.rows,
        )
        self._plain = PlainDecoder(directory, block_length=L, ids=self.ids)
        self.expected = cache(self._expected)

    def sample(self, num_prompt: int) -> Sample:
        prompt = np.random.default_rng(num_prompt).integers(0, 256, num_prompt)
        limits = Limits(
            prompt_tokens=num_prompt,
            max_tokens=MAX_TOKENS,
            stop_ids=frozenset(self.ids.stops),
        )
        return Sample(prompt_ids=tuple(prompt.tolist()), key=num_prompt, limits=limits)

    def _expected(self, num_prompt: int, temperature: float) -> Expected:
        sample = self.sample(num_prompt)
        return self._plain.decode(
            list(sample.prompt_ids),
            max_tokens=MAX_TOKENS,
            temperature=temperature,
            key=sample.key,
        )


@pytest.fixture(scope="module", params=FAMILIES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    torch.set_num_threads(1)
    return Case(request.param, Path(tmp_path_factory.mktemp(request.param)))


def found(outcome: Outcome) -> Expected:
    trace = outcome.trace
    return list(outcome.token_ids), list(zip(trace.positions, trace.tokens, strict=True))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("num_prompt", PROMPTS)
def test_tokens_and_commit_order_are_those_of_the_plain_decoder(
    case: Case, num_prompt: int, temperature: float
) -> None:
    rule = Rule(temperature=temperature)
    outcome = decode_one(case.target, case.sample(num_prompt), rule=rule)
    assert found(outcome) == case.expected(num_prompt, temperature)


@pytest.mark.parametrize("drafted", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_batch_of_mixed_lengths_decodes_like_each_alone(
    case: Case, temperature: float, drafted: bool
) -> None:
    samples = [case.sample(num_prompt) for num_prompt in PROMPTS]
    drafter = Hostile(7, mask_id=case.ids.mask, num_tokens=256) if drafted else None
    outcomes = decode_all(
        case.target,
        samples,
        rule=Rule(temperature=temperature),
        drafter=drafter,
        budget=3 if drafted else 0,
    )
    expected = [case.expected(num_prompt, temperature) for num_prompt in PROMPTS]
    assert [found(outcome) for outcome in outcomes] == expected
