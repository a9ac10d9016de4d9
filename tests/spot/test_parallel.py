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
from torch import Tensor

from spot.canvas_decoder import CanvasDecoder
from spot.decoder import ReferenceDecoder
from spot.limits import Limits
from spot.rounds import Sample
from spot.targets.base import Canvas, CanvasUnit, Unit
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.family import TargetError
from spot.targets.paged import PagedTarget
from spot.targets.parallel.leader import EXIT_STUCK, RankError
from spot.targets.parallel.messages import (
    Message,
    pack_canvases,
    pack_units,
    receive,
    send,
    unpack_canvases,
    unpack_units,
)
from spot.targets.parallel.sharding import check_divisible
from spot.targets.parallel.target import ParallelCanvasTarget, ParallelTarget, start_target
from spot.targets.registry import load_target
from spot.transition import Rule
from tests.checkpoints import LENGTH, FamilyName, write_released
from workers.references import Decoder

FAMILIES: tuple[FamilyName, ...] = ("sdar", "llada2", "llada", "dream")
Shared = tuple[ParallelTarget, PagedTarget | NativeCanvasTarget]


def write(family: FamilyName, directory: Path) -> Path:
    """A checkpoint whose vocabulary two processes can share."""
    if family == "dream":
        return write_released(family, directory, vocab_size=266)
    return write_released(family, directory)


@pytest.fixture(params=FAMILIES)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shared]:
    """A target that two processes share, and the same in one."""
    torch.set_num_threads(1)
    path = write(request.param, tmp_path)
    length = None if request.param in ("sdar", "llada2") else LENGTH
    target = start_target(path, size=2, threads=1, dtype="float64", block_length=length)
    yield target, load_target(path, dtype="float64", block_length=length)
    target.leader.close()


def sample(num_prompt: int) -> Sample:
    prompt = tuple(np.random.default_rng(num_prompt).integers(0, 256, num_prompt).tolist())
    limits = Limits(prompt_tokens=num_prompt, max_tokens=9)
    return Sample(prompt_ids=prompt, key=5, limits=limits)


def decoder(target: PagedTarget | NativeCanvasTarget, rule: Rule) -> Decoder:
    if isinstance(target, PagedTarget):
        return ReferenceDecoder(target, rule=rule)
    return CanvasDecoder(target, rule=rule, context="prefix+suffix")


def decoded(target: PagedTarget | NativeCanvasTarget, num_prompt: int) -> list[tuple[int, int]]:
    found = decoder(target, Rule(temperature=1.0)).decode(sample(num_prompt))
    return [(c.position, c.token) for c in found.trajectory.commits]


def logits_and_heads(target: PagedTarget | NativeCanvasTarget) -> tuple[Tensor, int]:
    """Logits behind a prefix, of several units at once, and key heads that this process has."""
    tokens = np.random.default_rng(0).integers(0, 256, (3, LENGTH))
    if isinstance(target, PagedTarget):
        pages = target.new_pages(1)
        target.hidden([Unit(state=tokens[0], start=0, pages=(), write=0)], pages)
        units = [Unit(state=state, start=LENGTH, pages=(0,)) for state in tokens[1:]]
        rows, heads = target.hidden(units, pages).flatten(0, 1), pages.keys[0].shape[1]
    else:
        canvases = [Canvas(tokens.ravel(), n) for n in (0, LENGTH, 5)]
        opened = target.open(canvases, context="prefix")
        states = [CanvasUnit(state=tokens[1], opened=opened[n]) for n in (2, 0, 2)]
        rows = torch.cat([*(each.hidden for each in opened), *target.hidden(states)])
        heads = opened[1].keys[0].shape[0]
    return target.logits(rows), heads


@pytest.mark.models
def test_two_ranks_compute_and_decode_what_one_process_does(shared: Shared) -> None:
    together, alone = shared
    for num_prompt in (3, 2 * LENGTH):
        assert decoded(together, num_prompt) == decoded(alone, num_prompt)
    (logits, heads), (expected, all_heads) = logits_and_heads(together), logits_and_heads(alone)
    assert torch.allclose(logits, expected, atol=1e-9)
    assert 2 * heads == all_heads


LEADER = """
import sys
from spot.targets.parallel.target import start_target

target = start_target(sys.argv[1], size=2, threads=1)
print(target.leader.children[0].pid, flush=True)
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


@pytest.mark.models
def test_a_target_ends_with_a_sentence_when_one_of_its_ranks_does(tmp_path: Path) -> None:
    path = write_released("llada", tmp_path)
    target = start_target(path, size=2, threads=1, block_length=LENGTH)
    assert isinstance(target, ParallelCanvasTarget)
    canvas = Canvas(np.zeros(2 * LENGTH, np.int64), LENGTH)
    (opened,) = target.open([canvas], context="prefix")
    (child,) = target.leader.children
    child.kill()
    unit = CanvasUnit(state=canvas.tokens[:LENGTH], opened=opened)
    for _ in range(2):
        with pytest.raises(RankError, match="rank 1 of the target ended by SIGKILL"):
            target.hidden([unit])
    target.leader.close()


@pytest.mark.models
def test_a_failure_of_the_first_rank_alone_ends_the_target_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start_target(write_released("llada", tmp_path), size=2, threads=1, block_length=LENGTH)
    assert isinstance(target, ParallelCanvasTarget)

    def exhausted(*_: object) -> Tensor:
        raise MemoryError("no more")

    monkeypatch.setattr(target, "_rows", exhausted)
    canvas = Canvas(np.zeros(2 * LENGTH, np.int64), LENGTH)
    with pytest.raises(
        RankError, match=r"rank 0 .* \(MemoryError: no more\), .* smaller cluster.batch"
    ):
        target.open([canvas], context="prefix")
    target.leader.close()


def test_a_rank_that_cannot_begin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spot.targets.parallel.leader.sys.executable", "/bin/false")
    path = write_released("llada", tmp_path)
    with pytest.raises(RankError, match="rank 1 of the target ended with exit status 1 before it"):
        start_target(path, size=2, threads=1)


STUCK = """
import subprocess, sys, time
from spot.targets.parallel.leader import Watch

child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
with Watch([child], stuck_s=0.1).working:
    sys.stdin.read()
"""


@pytest.mark.models
def test_a_process_whose_operation_waits_for_a_dead_rank_ends_with_a_sentence() -> None:
    command = [sys.executable, "-P", "-c", STUCK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as stuck:
        assert stuck.stderr is not None
        message = stuck.stderr.read().decode()
        assert stuck.wait() == EXIT_STUCK
    assert "rank 1 of the target ended with exit status 3" in message


def test_a_target_that_cannot_be_shared_is_refused_before_anybody_is_started(
    tmp_path: Path,
) -> None:
    path = write_released("sdar", tmp_path, num_key_value_heads=1)
    with pytest.raises(TargetError, match="2 ranks cannot share num_key_value_heads 1 equally"):
        start_target(path, size=2, threads=1)


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


def test_canvases_survive_the_pipe() -> None:
    rng = np.random.default_rng(0)
    canvases = [Canvas(rng.integers(0, 9, num), num - 3) for num in (4, 9, 3)]
    for canvas, again in zip(canvases, unpack_canvases(*pack_canvases(canvases)), strict=True):
        assert (again.tokens.tolist(), again.start) == (canvas.tokens.tolist(), canvas.start)


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
