"""Inspecting model directories: whole ones of every family, and broken copies."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from examples.tiny.splits import problems
from jobs.errors import JobError
from jobs.targets import inspect_target
from spot.attention import KVPages
from spot.targets.paged import PagedTarget
from spot.targets.self_check import check_target
from tests.checkpoints import FAMILY_NAMES, FamilyName, write_configuration, write_released

Directories = dict[FamilyName, Path]


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> Directories:
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("released")
    return {family: write_released(family, root / family) for family in FAMILY_NAMES}


def length_of(family: FamilyName) -> int | None:
    return 8 if family in ("llada", "dream") else None


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_a_whole_checkpoint_passes_its_checks(directories: Directories, family: FamilyName) -> None:
    inspection = inspect_target(directories[family], block_length=length_of(family))
    assert inspection.passed
    verdicts = [check["passed"] for check in inspection.checks]
    assert verdicts == [True, True, True, None]  # random weights predict no text either way
    assert inspection.values["family"] == family
    assert any("ok: cached keys" in line for line in inspection.lines())


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_without_checks_no_weight_is_read(directories: Directories, family: FamilyName) -> None:
    inspection = inspect_target(directories[family], check=False)
    assert inspection.checks == ()
    assert inspection.values["logits shifted"] == (family == "dream")


def a_worked_problem(target: PagedTarget) -> str:
    """What the bundled target was trained on."""
    problem = next(problems("held_out", seed=3))
    chat = [{"role": "user", "content": problem.prompt}]
    text = target.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    return f"{text}{problem.response}<|im_end|>"


@pytest.mark.parametrize(("claimed", "passed"), [(False, True), (True, False)])
def test_a_trained_target_tells_its_alignment_on_a_text_of_its_kind(
    tiny_target: Path, claimed: bool, passed: bool
) -> None:
    target = PagedTarget.load(tiny_target)
    target.spec = replace(target.spec, shifted=claimed)
    shift = check_target(target, a_worked_problem(target))[-1]
    assert shift.passed is passed


def test_a_cache_that_loses_keys_fails_the_check(
    directories: Directories, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(self: KVPages, layer: int, pages: Tensor, keys: Tensor, values: Tensor) -> None:
        self.values[layer][pages] = values

    monkeypatch.setattr(KVPages, "write", forget)
    inspection = inspect_target(directories["sdar"])
    assert not inspection.passed
    assert any(line.startswith("FAILED: cached keys") for line in inspection.lines())


def test_a_template_of_another_family_fails_the_check(
    directories: Directories, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(directories["sdar"], tmp_path / "copy"))
    template = json.loads((directories["llada"] / "tokenizer_config.json").read_text())
    change("tokenizer_config.json", chat_template=template["chat_template"])(copy)
    inspection = inspect_target(copy)
    assert inspection.checks[0]["passed"] is False
    assert "FAILED: the chat template ends turns with <|im_end|>" in inspection.lines()[-4]


def change(name: str = "config.json", **changes: Any) -> Callable[[Path], None]:
    def apply(directory: Path) -> None:
        said = json.loads((directory / name).read_text()) | changes
        (directory / name).write_text(json.dumps(said))

    return apply


def lose_a_shard(directory: Path) -> None:
    (directory / "model-00002-of-00002.safetensors").unlink()


def cut_a_shard(directory: Path) -> None:
    file = directory / "model-00002-of-00002.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def store_more(directory: Path) -> None:
    file = directory / "model-00001-of-00002.safetensors"
    save_file(load_file(file) | {"model.stranger.weight": torch.zeros(2)}, file)


def store_less(directory: Path) -> None:
    file = directory / "model-00002-of-00002.safetensors"
    tensors = load_file(file)
    save_file(dict(list(tensors.items())[1:]), file)


def lose_the_tokenizer(directory: Path) -> None:
    for name in ("tokenizer.json", "merges.txt"):
        (directory / name).unlink(missing_ok=True)


BROKEN: list[tuple[str, Callable[[Path], None], str]] = [
    ("a missing shard", lose_a_shard, r"model-00002-of-00002\.safetensors is missing"),
    ("a cut shard", cut_a_shard, "is not a whole safetensors file"),
    ("a tensor too many", store_more, r"unknown weights \['model.stranger.weight'\]"),
    ("a tensor too few", store_less, r"missing weights \['"),
    ("no tokenizer", lose_the_tokenizer, r"tokenizer\.json is missing"),
    ("a remote class", change(architectures=["MyModel"]), r"names architectures \['MyModel'\]"),
]


@pytest.mark.parametrize("family", FAMILY_NAMES)
@pytest.mark.parametrize(("what", "damage", "sentence"), BROKEN)
def test_a_broken_copy_is_one_sentence(
    directories: Directories,
    tmp_path: Path,
    family: FamilyName,
    what: str,
    damage: Callable[[Path], None],
    sentence: str,
) -> None:
    copy = Path(shutil.copytree(directories[family], tmp_path / "copy"))
    damage(copy)
    with pytest.raises(JobError, match=sentence) as caught:
        inspect_target(copy, block_length=length_of(family))
    assert len(str(caught.value).splitlines()) == 1


SWAPPED: dict[FamilyName, tuple[dict[str, Any], str]] = {
    "sdar": ({"num_key_value_heads": 4}, r"has shape \[32, 48\] but config.json asks for \[64"),
    "llada2": ({"num_experts": 32}, r"mlp.gate.expert_bias has shape \[16\] but .* \[32\]"),
    "llada": ({"n_layers": 3}, r"missing weights \['model.layers.2"),
    "dream": ({"hidden_size": 32}, r"has shape \[\d+, 64\] but config.json asks for \[\d+, 32\]"),
}


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_the_configuration_of_another_size_is_refused(
    directories: Directories, tmp_path: Path, family: FamilyName
) -> None:
    changes, sentence = SWAPPED[family]
    copy = Path(shutil.copytree(directories[family], tmp_path / "copy"))
    change(**changes)(copy)
    with pytest.raises(JobError, match=sentence):
        inspect_target(copy, block_length=length_of(family))


def test_the_configuration_of_another_family_is_refused(
    directories: Directories, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(directories["sdar"], tmp_path / "copy"))
    shutil.copy(directories["dream"] / "config.json", copy)
    with pytest.raises(JobError, match=r"asks for|missing weights"):
        inspect_target(copy, block_length=8)


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_a_wrong_mask_id_is_refused_with_both_ids(tmp_path: Path, family: FamilyName) -> None:
    write_configuration(family, tmp_path, vocabulary="released", mask_token_id=151667)
    with pytest.raises(JobError, match=rf"says mask_token_id 151667 but {family}'s is \d+"):
        inspect_target(tmp_path, block_length=32)


def test_a_mixture_under_lladas_model_type_is_refused_by_its_architecture(tmp_path: Path) -> None:
    architectures = ["LLaDAMoEModelLM"]
    write_configuration("llada", tmp_path, vocabulary="released", architectures=architectures)
    with pytest.raises(JobError, match="which are not LLaDAModelLM although model_type is 'llada'"):
        inspect_target(tmp_path)


@pytest.mark.parametrize("family", ["sdar", "llada2"])
def test_another_block_length_is_refused_with_both(
    directories: Directories, family: FamilyName
) -> None:
    with pytest.raises(JobError, match=r"target\.block_length is 16 but block_size of .* says 8"):
        inspect_target(directories[family], block_length=16)


def test_a_text_of_less_than_two_blocks_is_refused(directories: Directories) -> None:
    with pytest.raises(JobError, match="fewer tokens than two blocks of 8"):
        inspect_target(directories["sdar"], text="short")


def test_a_device_that_is_not_there_is_refused(directories: Directories) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(JobError, match="no usable CUDA device"):
        inspect_target(directories["sdar"], device="cuda")
