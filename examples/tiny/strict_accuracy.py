"""Accuracy on held-out problems during training, without the product's decoder.

Plain batched loops without a cache: slow and short. The figures that count come from
``spotbatch stats``; these show whether training is on its way.
"""

import math
from itertools import islice

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from examples.tiny.batches import encode
from examples.tiny.families import FAMILIES, Problem
from examples.tiny.splits import problems

BLOCK_LENGTH = 32
MAX_BLOCKS = 6
MAX_TOKENS = 150


def _held_out(num_problems: int) -> list[Problem]:
    return list(islice(problems("held_out", seed=999), num_problems))


def _score(
    tokenizer: PreTrainedTokenizerFast, chosen: list[Problem], answers: list[list[int]]
) -> dict[str, float]:
    hits: dict[str, list[bool]] = {family: [] for family in FAMILIES}
    for problem, ids in zip(chosen, answers, strict=True):
        text = str(tokenizer.decode(ids)).split("<|im_end|>")[0]
        hits[problem.family].append(FAMILIES[problem.family].check(problem.reference, text))
    return {family: round(sum(h) / max(1, len(h)), 3) for family, h in hits.items()}


@torch.no_grad()
def causal_accuracy(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, *, num_problems: int
) -> dict[str, float]:
    """Greedy autoregressive accuracy per family."""
    chosen, stop = _held_out(num_problems), tokenizer.convert_tokens_to_ids("<|im_end|>")
    answers = []
    for problem in chosen:
        ids = torch.tensor([encode(tokenizer, problem.prompt, "").ids[:-1]])
        start = ids.shape[1]
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=MAX_TOKENS,
            do_sample=False,
            eos_token_id=stop,
            pad_token_id=stop,
            use_cache=True,
        )
        answers.append(out[0, start:].tolist())
    return _score(tokenizer, chosen, answers)


@torch.no_grad()
def strict_accuracy(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, *, num_problems: int
) -> dict[str, float]:
    """Strict draft-free block-diffusion accuracy per family (one commit a forward)."""
    chosen = _held_out(num_problems)
    prompts = [encode(tokenizer, p.prompt, "").ids[:-1] for p in chosen]
    mask_id = int(tokenizer.convert_tokens_to_ids("<|MASK|>"))
    stop = int(tokenizer.convert_tokens_to_ids("<|im_end|>"))
    first = [len(ids) // BLOCK_LENGTH for ids in prompts]
    width = (max(first) + MAX_BLOCKS) * BLOCK_LENGTH
    canvas = torch.full((len(prompts), width), mask_id)
    for row, ids in enumerate(prompts):
        canvas[row, : len(ids)] = torch.tensor(ids)
    for offset in range(MAX_BLOCKS):
        blocks = torch.tensor([f + offset for f in first])
        live = torch.tensor([stop not in canvas[r, len(p) :] for r, p in enumerate(prompts)])
        while _commit_one(model, canvas, blocks=blocks, mask_id=mask_id, live=live):
            pass
    answers = [canvas[row, len(ids) :].tolist() for row, ids in enumerate(prompts)]
    return _score(tokenizer, chosen, answers)


def _commit_one(
    model: Qwen3ForCausalLM, canvas: Tensor, *, blocks: Tensor, mask_id: int, live: Tensor
) -> bool:
    where = blocks[:, None] * BLOCK_LENGTH + torch.arange(BLOCK_LENGTH)
    masked = canvas.gather(1, where) == mask_id
    rows = (masked.any(1) & live).nonzero()[:, 0]
    if rows.numel() == 0:
        return False
    length = int((blocks[rows].max() + 1) * BLOCK_LENGTH)
    block_of = torch.arange(length) // BLOCK_LENGTH
    attention = (block_of[None, :] <= block_of[:, None])[None, None].expand(len(rows), 1, -1, -1)
    hidden = model.model(
        input_ids=canvas[rows, :length],
        attention_mask=attention,
        position_ids=torch.arange(length).expand(len(rows), -1),
    ).last_hidden_state
    picked = hidden.gather(1, where[rows, :, None].expand(-1, -1, hidden.shape[-1]))
    logits = model.lm_head(picked).float()
    logits[..., mask_id] = -math.inf
    confidence, token = logits.log_softmax(-1).max(-1)
    best = confidence.masked_fill(~masked[rows], -math.inf).argmax(1)
    each = torch.arange(len(rows))
    canvas[rows, where[rows, best]] = token[each, best]
    return True
