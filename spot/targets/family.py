"""What a family of targets is: the values that its released checkpoints share, read without torch.

The registry supplies these values; a checkpoint may only confirm them. Where a checkpoint has
another vocabulary than the released ones, its ids cannot be known here and it must state them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Grid = Literal["sequence", "prompt"]
Attention = Literal["block-causal", "bidirectional"]
DtypeName = Literal["float32", "bfloat16", "float16", "float64"]


class TargetError(ValueError):
    """A model directory cannot be used; the message names the file and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The ids of a family's released checkpoints, told by their number of embedding rows.

    ``turn_end_id`` is the one of `Family.turn_end` (None: only the tokenizer knows it).
    """

    rows: int
    mask_id: int
    stop_ids: tuple[int, ...]
    pad_id: int
    turn_end_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where a stored tensor, or some rows of it, goes in the native model.

    ``rows`` are those of the stored tensor (None: all); ``entry`` is the first index into a stacked
    parameter and ``into`` the rows of that entry (None: all).
    """

    name: str
    rows: tuple[int, int] | None = None
    entry: int | None = None
    into: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """The transformers model that computes the same, and how its settings follow from a config.

    ``settings`` maps the native setting to the name in ``config.json``; each must be there.
    """

    model: str
    config: str
    settings: Mapping[str, str]
    constants: Mapping[str, Any] = field(default_factory=dict)
    partial_rotary: float | None = None


# From a stored tensor's name and the native settings to its slots; none if the name is unknown.
KeyMap = Callable[[str, Mapping[str, Any]], tuple[Slot, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family of targets.

    ``expected`` are entries of ``config.json`` that must have this value where they are present,
    since nothing else is computed. ``turn_end`` is the token that ends a chat turn; it stops a
    sample too, by whatever id the tokenizer gives it. ``block_lengths`` names the length by
    checkpoint name; ``block_length`` is the one of all checkpoints. With ``any_block_length`` the
    caller may choose another.
    """

    name: str
    architecture: str
    model_types: tuple[str, ...]
    native: Native
    key_map: KeyMap
    vocabulary: Vocabulary
    grid: Grid
    attention: Attention
    shifted: bool
    turn_end: str
    block_length: int | None = None
    block_length_of_name: Callable[[str], int | None] = lambda _: None
    any_block_length: bool = False
    expected: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exact_prefix(self) -> bool:
        """Whether keys and values of finished blocks never change: attention looks back only."""
        return self.attention == "block-causal"


def same_names(*names: str) -> dict[str, str]:
    """Native settings that ``config.json`` gives under their own names."""
    return {name: name for name in names}


# What dense models state in the words of their native twins.
DENSE_SETTINGS = same_names(
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
    "rms_norm_eps",
    "tie_word_embeddings",
)


def same_name(name: str, settings: Mapping[str, Any]) -> tuple[Slot, ...]:
    """The key map of checkpoints that use the native names."""
    return (Slot(name=name),)
