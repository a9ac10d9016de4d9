"""A model directory's tokenizer, by transformers' own classes; no remote code runs."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer

from spot.targets.checkpoint import TargetSpec
from spot.targets.family import TargetError
from spot.targets.files import MERGES, TOKENIZER


def load_tokenizer(directory: Path) -> Any:
    """The tokenizer, from its one file or, as Qwen's slow ones are saved, from its parts."""
    if (directory / TOKENIZER).is_file():
        return PreTrainedTokenizerFast.from_pretrained(directory)
    if all((directory / name).is_file() for name in MERGES):
        return Qwen2Tokenizer.from_pretrained(directory)
    raise TargetError(f"{directory / TOKENIZER} is missing: save the tokenizer there")


def banned_ids(tokenizer: Any, spec: TargetSpec, *, directory: Path) -> Tensor:
    """Which ids are never output: the mask, and every id that is no token; bool [V].

    Raises:
        TargetError: the tokenizer has ids that the model has not.
    """
    ids = torch.tensor(sorted(tokenizer.get_vocab().values()))
    if int(ids[-1]) >= spec.vocab_rows:
        raise TargetError(
            f"{directory}: the tokenizer has id {int(ids[-1])} but the model only "
            f"{spec.vocab_rows} rows: use the checkpoint's own tokenizer"
        )
    banned = torch.ones(spec.vocab_rows, dtype=torch.bool)
    banned[ids] = False
    banned[spec.mask_id] = True
    return banned
