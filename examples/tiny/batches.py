"""Training batches: encoded problems, grouped by length, and the two token layouts.

Legend: B sequences, T clean positions, N noised positions, L block length.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from examples.tiny.splits import problems

IGNORED = -100  # label of positions without loss
# Functions are learned first; the families that need exact digits get more of the steps.
TRAIN_MIX = ("arithmetic", "extraction", "arithmetic", "functions", "extraction")
POOL = 16  # batches drawn together, sorted by length, then shuffled


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One conversation as ids; the answer starts at ``prompt_tokens`` and ends with the stop id."""

    ids: list[int]
    prompt_tokens: int


def encode(tokenizer: PreTrainedTokenizerFast, prompt: str, response: str) -> Example:
    """Encode through the chat template, as the product does, and append the turn end."""
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
    )
    head = tokenizer.encode(str(text), add_special_tokens=False)
    tail = tokenizer.encode(f"{response}<|im_end|>", add_special_tokens=False)
    return Example(ids=head + tail, prompt_tokens=len(head))


def batches(tokenizer: PreTrainedTokenizerFast, *, seed: int, size: int) -> Iterator[list[Example]]:
    """Endless batches of fresh training problems, alike in length."""
    stream = problems("train", seed=seed, unique=False, mix=TRAIN_MIX)
    order = torch.Generator().manual_seed(seed)
    while True:
        pool = [encode(tokenizer, p.prompt, p.response) for p in islice(stream, size * POOL)]
        pool.sort(key=lambda example: len(example.ids))
        for index in torch.randperm(POOL, generator=order).tolist():
            yield pool[index * size : (index + 1) * size]


def causal_batch(examples: list[Example], *, pad_id: int) -> tuple[Tensor, Tensor]:
    """Ids [B, T] and next-token labels [B, T], with loss on the answer only."""
    width = max(len(example.ids) for example in examples)
    ids = torch.full((len(examples), width), pad_id)
    labels = torch.full((len(examples), width), IGNORED)
    for row, example in enumerate(examples):
        ids[row, : len(example.ids)] = torch.tensor(example.ids)
        answer = slice(example.prompt_tokens - 1, len(example.ids) - 1)
        labels[row, answer] = torch.tensor(example.ids[example.prompt_tokens :])
    return ids, labels


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockBatch:
    """The layout [noised | clean] of block-diffusion training.

    ``clean`` [B, T] is filled with the pad id up to the block grid, which the model learns to
    write after a stop. ``source`` [B, N] maps a noised position to its clean position (-1: none).
    ``answer`` [B, N] marks noised positions that may be masked.
    """

    clean: Tensor
    source: Tensor
    answer: Tensor
    block_length: int

    def position_ids(self) -> Tensor:
        """[B, N + T]."""
        clean = torch.arange(self.clean.shape[1]).expand_as(self.clean)
        return torch.cat([self.source.clamp(min=0), clean], dim=1)

    def attention(self) -> Tensor:
        """Bool [B, 1, N + T, N + T]: noised block b sees itself and clean blocks before b."""
        num_noised = self.source.shape[1]
        blocks = self.position_ids() // self.block_length
        blocks[:, :num_noised][self.source < 0] = -1
        noised = torch.zeros_like(blocks, dtype=torch.bool)
        noised[:, :num_noised] = True
        q_block, k_block = blocks[:, :, None], blocks[:, None, :]
        q_noised, k_noised = noised[:, :, None], noised[:, None, :]
        within = q_noised & k_noised & (q_block == k_block)
        prefix = q_noised & ~k_noised & (k_block < q_block)
        clean = ~q_noised & ~k_noised & (k_block <= q_block)
        return (within | prefix | clean)[:, None]


def block_batch(
    examples: list[Example], *, pad_id: int, block_length: int, pad_blocks: int = 0
) -> BlockBatch:
    """Lay out a batch; blocks that hold answer tokens get a noised copy, and pad blocks behind."""
    ends = [(-(-len(e.ids) // block_length) + pad_blocks) * block_length for e in examples]
    starts = [e.prompt_tokens // block_length * block_length for e in examples]
    num_noised = max(end - start for start, end in zip(starts, ends, strict=True))
    clean = torch.full((len(examples), max(ends)), pad_id)
    source = torch.full((len(examples), num_noised), -1)
    for row, (example, start, end) in enumerate(zip(examples, starts, ends, strict=True)):
        clean[row, : len(example.ids)] = torch.tensor(example.ids)
        source[row, : end - start] = torch.arange(start, end)
    prompt = torch.tensor([[e.prompt_tokens] for e in examples])
    return BlockBatch(
        clean=clean, source=source, answer=source >= prompt, block_length=block_length
    )
