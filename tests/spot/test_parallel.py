"""A target shared by two processes: the same tokens, and nobody is left behind."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from spot.decoder import ReferenceDecoder
from spot.limits import Limits
from spot.rounds import Sample
from spot.targets.base import Unit
from spot.targets.family import TargetError
from spot.targets.paged import PagedTarget
from spot.targets.parallel.messages import Message, pack_units, receive, send, unpack_units
from spot.targets.parallel.sharding import check_divisible
from spot.targets.parallel.target import ParallelTarget
from spot.transition import Rule
from tests.checkpoints import LENGTH, FamilyName, write_released

FAMILIES: tuple[FamilyName, ...] = ("sdar", "llada2")


@pytest.fixture(scope="module", params=FAMILIES)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_released(request.param, Path(tmp_path_factory.mktemp(request.param)))


@pytest.fixture
def shared(path: Path) -> Iterator[ParallelTarget]:
    target = ParallelTarget.start(path, size=2, threads=1, dtype="float64")
    yield target
    target.close()


def sample(num_prompt: int) -> Sample:
    prompt = tuple(np.random.default_rng(num_prompt).integers(0, 256, num_prompt).tolist())
    limits = Limits(prompt_tokens=num_prompt, max_tokens=9)
    return Sample(prompt_ids=prompt, key=5, limits=limits)


@pytest.mark.models
def test_two_ranks_decode_what_one_process_decodes(path: Path, shared: ParallelTarget) -> None:
    alone = PagedTarget.load(path, dtype="float64")
    rule = Rule(temperature=1.0)
    for num_prompt in (3, 2 * LENGTH):
        expected = ReferenceDecoder(alone, rule=rule).decode(sample(num_prompt))
        decoded = ReferenceDecoder(shared, rule=rule).decode(sample(num_prompt))
        assert decoded.token_ids == expected.token_ids
        moves = [(c.position, c.token) for c in decoded.trajectory.commits]
        assert moves == [(c.position, c.token) for c in expected.trajectory.commits]
    assert shared.new_pages(3).keys[0].shape[1] == 1  # of two key heads


LEADER = """
import sys
from spot.targets.parallel.target import ParallelTarget

target = ParallelTarget.start(sys.argv[1], size=2, threads=1)
print(target._children[0].pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.models
def test_a_rank_ends_when_the_first_one_is_killed(tmp_path: Path) -> None:
    path = write_released("sdar", tmp_path)
    command = [sys.executable, "-P", "-c", LEADER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as leader:
        assert leader.stdout is not None
        child = psutil.Process(int(leader.stdout.readline()))
        leader.kill()
    _, alive = psutil.wait_procs([child], timeout=60)
    assert alive == []


def test_a_target_that_cannot_be_shared_is_refused_before_anybody_is_started(
    tmp_path: Path,
) -> None:
    path = write_released("sdar", tmp_path, num_key_value_heads=1)
    with pytest.raises(TargetError, match="2 ranks cannot share num_key_value_heads 1 equally"):
        ParallelTarget.start(path, size=2, threads=1)


def test_a_bidirectional_target_is_not_shared(tmp_path: Path) -> None:
    path = write_released("llada", tmp_path)
    with pytest.raises(TargetError, match=r"set cluster\.tensor_parallel to 1"):
        ParallelTarget.start(path, size=2, threads=1)


def test_parts_that_cannot_be_equal_are_refused() -> None:
    check_divisible({"num_attention_heads": 4, "vocab_size": 264}, 2)
    with pytest.raises(TargetError, match="vocab_size 265 equally"):
        check_divisible({"num_attention_heads": 4, "vocab_size": 265}, 2)


def test_units_survive_the_pipe(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    units = [
        Unit(state=rng.integers(0, 9, 4), start=4 * n, pages=tuple(range(n)), write=n - 1)
        for n in range(4)
    ]
    file = tmp_path / "pipe"
    with file.open("wb") as out:
        send(out, Message("hidden", (np.array([3]), *pack_units(units))))
    with file.open("rb") as stream:
        message = receive(stream)
        assert receive(stream) is None
    assert message is not None
    assert (message.operation, message.arrays[0].tolist()) == ("hidden", [3])
    for unit, again in zip(units, unpack_units(*message.arrays[1:]), strict=True):
        assert again.state.tolist() == unit.state.tolist()
        assert (again.start, again.pages, again.write) == (unit.start, unit.pages, unit.write)


def test_half_a_message_is_none(tmp_path: Path) -> None:
    file = tmp_path / "pipe"
    with file.open("wb") as out:
        send(out, Message("pages", (np.arange(6),)))
    file.write_bytes(file.read_bytes()[:-8])
    with file.open("rb") as stream:
        assert receive(stream) is None
    header = {"operation": "pages", "shapes": []}
    file.write_text(json.dumps(header))
    with file.open("rb") as stream:
        assert receive(stream) is None
