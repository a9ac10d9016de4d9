"""Worked responses are long enough to be worth drafting and fit the quickstart's token budget."""

from itertools import islice
from pathlib import Path

import pytest
import yaml
from tokenizers import Tokenizer

from examples.quickstart.make_prompts import NUM_ROWS, SEED
from examples.tiny.splits import problems

TURN_END = "<|im_end|>"


@pytest.fixture(scope="module")
def lengths(tiny_target: Path) -> list[int]:
    """Tokens, with the turn end, of the worked responses to the quickstart's prompts."""
    tokenizer = Tokenizer.from_file(str(tiny_target / "tokenizer.json"))
    chosen = islice(problems("held_out", seed=SEED), NUM_ROWS)
    texts = [f"{problem.response}{TURN_END}" for problem in chosen]
    return [len(encoding.ids) for encoding in tokenizer.encode_batch(texts)]


def test_responses_have_60_to_250_tokens(lengths: list[int]) -> None:
    assert [length for length in lengths if not 60 <= length <= 250] == []


def test_responses_fit_the_budget_of_the_quickstart(lengths: list[int], repository: Path) -> None:
    job = yaml.safe_load((repository / "examples/quickstart/job.yaml").read_text())
    assert max(lengths) <= job["decode"]["max_tokens"]
