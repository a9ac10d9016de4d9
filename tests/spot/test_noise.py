import math

import pytest
import torch

from spot.noise import (
    ACCEPTANCE,
    COMMITS,
    DRAFTS,
    RESIDUAL,
    gumbel,
    gumbel_rows,
    philox,
    uniform,
)

# Published known answers of Philox4x32-10: counter, key, result.
KNOWN = (
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
)  # fmt: skip


def _words(text: str) -> tuple[torch.Tensor, ...]:
    return tuple(torch.tensor(int(word, 16)) for word in text.split())


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_answers(counter: str, key: str, answer: str) -> None:
    low, high = _words(key)
    found = philox(_words(counter), (low, high))
    assert [int(word) for word in found] == [int(word) for word in _words(answer)]


def test_rows_and_single_tokens_see_the_same_noise() -> None:
    keys, positions = torch.tensor([-5, 2**62 + 7]), torch.tensor([3, 70_000])
    tokens = torch.tensor([[0, 1, 9], [4, 258, 6]])
    rows = gumbel_rows(keys, positions, vocab_size=259)
    assert torch.equal(gumbel(keys, positions, tokens), rows.gather(1, tokens))


def test_noise_depends_on_every_part_of_its_name() -> None:
    def at(key: int, position: int, token: int, step: int, stream: int) -> float:
        return float(
            gumbel(
                torch.tensor([key]),
                torch.tensor([position]),
                torch.tensor([[token]]),
                step=step,
                stream=stream,
            )
        )

    names = [(1, 2, 3, 0, 0), (2, 2, 3, 0, 0), (1 << 40, 2, 3, 0, 0), (1, 3, 3, 0, 0),
             (1, 2, 4, 0, 0), (1, 2, 7, 0, 0), (1, 2, 3, 1, 0), (1, 2, 3, 0, 1)]  # fmt: skip
    assert len({at(*name) for name in names}) == len(names)


def test_noise_has_the_moments_of_a_gumbel_law() -> None:
    noise = gumbel_rows(torch.arange(64), torch.arange(64), vocab_size=4096).flatten()
    # standard errors: 0.0025 for the mean, 0.0067 for the variance
    assert abs(float(noise.mean()) - 0.57722) < 0.0125
    assert abs(float(noise.var()) - math.pi**2 / 6) < 0.034


def test_the_tail_is_as_heavy_as_it_should_be() -> None:
    noise = gumbel_rows(torch.arange(128), torch.arange(128), vocab_size=4096).flatten()
    level = 7.0
    expected = len(noise) * -math.expm1(-math.exp(-level))
    found = int((noise > level).sum())
    assert abs(found - expected) < 5 * math.sqrt(expected)


def test_streams_and_steps_are_uncorrelated() -> None:
    num = 10_000
    keys, positions = torch.arange(num), torch.full((num,), 9)
    tokens = torch.full((num, 1), 5)
    names = [
        (step, stream) for step in (0, 1) for stream in (COMMITS, ACCEPTANCE, RESIDUAL, DRAFTS)
    ]
    found = [uniform(keys, positions, tokens, step=a, stream=b)[:, 0] for a, b in names]
    between = torch.corrcoef(torch.stack(found)) - torch.eye(len(names))
    assert float(between.abs().max()) < 0.05  # five standard errors
