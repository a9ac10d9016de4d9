"""What a directory says about itself: the registry supplies, the checkpoint may only confirm."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spot.targets.checkpoint import inspect_directory, spec_of
from spot.targets.family import TargetError
from tests.checkpoints import FAMILY_NAMES, FamilyName, write_configuration
from tests.twins import BLOCK_LENGTH, MASK_ID, PAD_ID, STOP_ID

RELEASED: dict[FamilyName, tuple[int, tuple[int, ...], int]] = {
    "sdar": (151669, (151645, 151643), 151643),
    "llada2": (156895, (156892, 156901), 156892),
    "llada": (126336, (126081, 126348), 126081),
    "dream": (151666, (151643, 151645), 151643),
}
LENGTHS: dict[FamilyName, int | None] = {"sdar": 32, "llada2": None, "llada": None, "dream": None}


def edited(directory: Path, name: str = "config.json", **changes: Any) -> Path:
    """The directory with other entries in a file; None removes one."""
    said = json.loads((directory / name).read_text()) | changes
    kept = {key: value for key, value in said.items() if value is not None}
    (directory / name).write_text(json.dumps(kept))
    return directory


def released(family: FamilyName, directory: Path, **changes: Any) -> Path:
    write_configuration(family, directory, vocabulary="released")
    return edited(directory, **changes)


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_released_checkpoints_get_their_ids_from_the_registry(
    tmp_path: Path, family: FamilyName
) -> None:
    directory = released(family, tmp_path, mask_token_id=None)
    spec = spec_of(directory, block_length=LENGTHS[family])
    assert (spec.mask_id, spec.stop_ids, spec.pad_id) == RELEASED[family]


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_a_mask_id_that_is_open_in_the_generation_config_is_no_contradiction(
    tmp_path: Path, family: FamilyName
) -> None:
    directory = released(family, tmp_path)
    said = json.loads((directory / "generation_config.json").read_text())
    (directory / "generation_config.json").write_text(json.dumps(said | {"mask_token_id": None}))
    assert spec_of(directory, block_length=LENGTHS[family]).mask_id == RELEASED[family][0]


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_another_mask_id_is_refused_with_both_ids(
    tmp_path: Path, family: FamilyName, file: str
) -> None:
    directory = edited(released(family, tmp_path), file, mask_token_id=5)
    sentence = rf"{file} says mask_token_id 5 but {family}'s is {RELEASED[family][0]}"
    with pytest.raises(TargetError, match=sentence):
        spec_of(directory, block_length=LENGTHS[family])


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_another_stop_id_is_refused_with_both(tmp_path: Path, family: FamilyName) -> None:
    directory = edited(released(family, tmp_path), "generation_config.json", eos_token_id=[5])
    with pytest.raises(TargetError, match=r"eos_token_id \[5\] but .* stop ids are \[1"):
        spec_of(directory, block_length=LENGTHS[family])


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_another_padding_is_refused_with_both(tmp_path: Path, family: FamilyName) -> None:
    directory = released(family, tmp_path, pad_token_id=5)
    with pytest.raises(TargetError, match=rf"pad_token_id 5 but {family}'s is 1"):
        spec_of(directory, block_length=LENGTHS[family])


def test_a_foreign_tokenizer_is_refused_by_the_end_of_a_turn(tmp_path: Path) -> None:
    directory = released("sdar", tmp_path)
    added = {"151645": {"content": "<|im_start|>"}, "151669": {"content": "<|im_end|>"}}
    edited(directory, "tokenizer_config.json", added_tokens_decoder=added)
    with pytest.raises(TargetError, match=r"<\|im_end\|> the id 151669 but sdar's is 151645"):
        spec_of(directory, block_length=32)


def test_an_ordinary_token_is_no_mask(tmp_path: Path) -> None:
    write_configuration("sdar", tmp_path, mask_token_id=7)
    edited(tmp_path, mask_token_id=7)
    with pytest.raises(TargetError, match="mask_token_id 7 but the tokenizer has an ordinary"):
        spec_of(tmp_path)


GRIDS: dict[FamilyName, tuple[str, str, bool]] = {
    "sdar": ("sequence", "block-causal", False),
    "llada2": ("sequence", "block-causal", False),
    "llada": ("prompt", "bidirectional", False),
    "dream": ("prompt", "bidirectional", True),
}


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_grid_attention_and_shift_follow_from_the_family(
    tmp_path: Path, family: FamilyName
) -> None:
    write_configuration(family, tmp_path)
    spec = spec_of(tmp_path)
    assert (spec.grid, spec.attention, spec.shifted) == GRIDS[family]
    assert spec.exact_prefix == (spec.attention == "block-causal")


def test_only_shifted_families_are_shifted() -> None:
    assert [family for family, (_, _, shifted) in GRIDS.items() if shifted] == ["dream"]


WRONG: list[tuple[FamilyName, dict[str, Any], str]] = [
    ("sdar", {"architectures": ["LlamaForCausalLM"]}, "use one of SDARForCausalLM"),
    ("sdar", {"model_type": "qwen3"}, "says model_type 'qwen3' but SDARForCausalLM's is 'sdar'"),
    ("sdar", {"attention_bias": True}, "says attention_bias True but sdar's is False"),
    ("sdar", {"rope_scaling": {"factor": 2}}, "says rope_scaling .* but sdar's is None"),
    ("sdar", {"vocab_size": "many"}, "has no whole number vocab_size"),
    ("llada", {"block_type": "sequential"}, "says block_type 'sequential' but llada's is 'llama'"),
    ("llada", {"weight_tying": 1, "alibi": True}, "says alibi True but llada's is False"),
    ("llada2", {"use_qk_norm": False}, "says use_qk_norm False but llada2's is True"),
    ("llada2", {"score_function": "softmax"}, "says score_function 'softmax' but llada2's"),
    ("dream", {"use_sliding_window": True}, "says use_sliding_window True but dream's is False"),
]


@pytest.mark.parametrize(("family", "changes", "sentence"), WRONG)
def test_a_setting_that_is_not_computed_is_refused_with_both_values(
    tmp_path: Path, family: FamilyName, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TargetError, match=sentence):
        spec_of(released(family, tmp_path, **changes), block_length=LENGTHS[family])


def test_a_shared_model_type_does_not_make_a_mixture_llada(tmp_path: Path) -> None:
    directory = released("llada", tmp_path, architectures=["LLaDAMoEModelLM"])
    sentence = r"\['LLaDAMoEModelLM'\], which are not LLaDAModelLM although model_type is 'llada'"
    with pytest.raises(TargetError, match=sentence):
        spec_of(directory)


def test_without_any_word_about_the_block_length_the_job_must_say_it(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"does not say its block length: set target\.block"):
        spec_of(released("sdar", tmp_path))


@pytest.mark.parametrize(
    ("name", "length"),
    [("SDAR-8B-Chat-b32", 32), ("SDAR-1.7B-Chat", 4), ("SDAR-30B-A3B-Chat-b16", 16)],
)
def test_a_released_checkpoints_name_tells_its_block_length(
    tmp_path: Path, name: str, length: int
) -> None:
    assert spec_of(released("sdar", tmp_path / name)).block_length == length


def test_a_download_caches_folder_name_tells_it_too(tmp_path: Path) -> None:
    folder = tmp_path / "models--JetLM--SDAR-4B-Chat-b8" / "snapshots" / "0123"
    assert spec_of(released("sdar", folder)).block_length == 8


LENGTH_CLAIMS: list[tuple[FamilyName, str, dict[str, Any], str]] = [
    ("sdar", "x", {"block_size": 8}, r"block_length is 16 but block_size of .* says 8"),
    ("sdar", "SDAR-8B-Chat-b32", {}, r"block_length is 16 but the checkpoint's name .* says 32"),
    ("sdar", "SDAR-8B-Chat-b32", {"block_size": 16}, r"block_size of .* is 16 but .* says 32"),
    ("llada2", "x", {}, r"block_length is 16 but the registry of llada2 says 32"),
    ("llada2", "x", {"block_size": 16}, r"block_size of .* is 16 but the registry .* says 32"),
]


@pytest.mark.parametrize(("family", "name", "changes", "sentence"), LENGTH_CLAIMS)
def test_two_block_lengths_are_refused_with_who_says_which(
    tmp_path: Path, family: FamilyName, name: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TargetError, match=sentence):
        spec_of(released(family, tmp_path / name, **changes), block_length=16)


@pytest.mark.parametrize("family", ["llada", "dream"])
@pytest.mark.parametrize(("asked", "found"), [(None, 32), (5, 5)])
def test_a_bidirectional_family_takes_any_block_length(
    tmp_path: Path, family: FamilyName, asked: int | None, found: int
) -> None:
    assert spec_of(released(family, tmp_path), block_length=asked).block_length == found


def test_a_vocabulary_of_ones_own_must_be_described(tmp_path: Path) -> None:
    write_configuration("sdar", tmp_path)
    edited(tmp_path, mask_token_id=None)
    with pytest.raises(TargetError, match="no whole number mask_token_id"):
        spec_of(tmp_path)


def test_the_specification_comes_from_the_directory(twin_path: Path) -> None:
    spec = spec_of(twin_path)
    assert (spec.block_length, spec.mask_id, spec.pad_id) == (BLOCK_LENGTH, MASK_ID, PAD_ID)
    assert spec.stop_ids == (STOP_ID, PAD_ID)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_missing_file_is_named(twin_path: Path, tmp_path: Path, name: str) -> None:
    copy = shutil.copytree(twin_path, tmp_path / "copy")
    (copy / name).unlink()
    with pytest.raises(TargetError, match=name):
        inspect_directory(copy)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="nowhere is not a directory"):
        inspect_directory(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        ({}, "has no weight_map"),
        ({"weight_map": {"a": "../model.safetensors"}}, "which is no safetensors file beside it"),
        ({"weight_map": {"a": "pytorch_model.bin"}}, "which is no safetensors file beside it"),
        ({"weight_map": {"a": "model-2.safetensors"}}, r"model-2\.safetensors is missing"),
    ],
)
def test_an_index_may_only_name_files_that_are_there(
    twin_path: Path, tmp_path: Path, index: dict[str, Any], sentence: str
) -> None:
    copy = shutil.copytree(twin_path, tmp_path / "copy")
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(TargetError, match=sentence):
        inspect_directory(copy)
