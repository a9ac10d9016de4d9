"""Checks that a loaded target computes what its family computes, on the device at hand.

The model is its own witness: transformers' attention over a whole text, with an explicit mask and
no cache, is compared with the attention that decoding uses, and with the text itself.

Legend: N positions of the text, L block length, V vocabulary rows.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spot.targets.base import Canvas, CanvasUnit, State, Unit
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.checkpoint import TargetSpec
from spot.targets.paged import PagedTarget

# Largest difference of logits, in standard deviations of all logits, that rounding explains.
TOLERANCES = {
    torch.float64: 1e-5,
    torch.float32: 1e-3,
    torch.float16: 5e-2,
    torch.bfloat16: 3e-1,
}
COMPANY = 5  # states that share a forward
MASK_EVERY = 4  # one position in four of the text is masked
CLEARLY = 0.5  # nats by which an alignment must be better to be called so


class Check(NamedTuple):
    """One check; ``passed`` is None where nothing could be concluded."""

    name: str
    passed: bool | None
    detail: str


def check_target(target: PagedTarget | NativeCanvasTarget, text: str) -> list[Check]:
    """All checks on a text, which should be of the kind that the model was trained on.

    Raises:
        ValueError: the text is shorter than two blocks.
    """
    length = target.spec.block_length
    ids = np.asarray(target.tokenizer.encode(text, add_special_tokens=False), np.int64)
    ids = ids[: min(len(ids), target.spec.max_positions) // length * length]
    if len(ids) < 2 * length:
        raise ValueError(
            f"the text has fewer tokens than two blocks of {length}: give a longer one"
        )
    masked = np.zeros(len(ids), bool)
    masked[1::MASK_EVERY] = True
    state = np.where(masked, target.spec.mask_id, ids)
    whole = whole_logits(target, state)
    return [
        _replica(target, state),
        _cached(target, state, whole),
        _shift(target.spec, whole, ids, masked),
    ]


@torch.inference_mode()
def whole_logits(target: PagedTarget | NativeCanvasTarget, state: State) -> Tensor:
    """Logits [N, V] by transformers' own attention with a mask; not aligned."""
    model: Any = target.model
    block = torch.arange(len(state), device=target.banned.device) // target.spec.block_length
    seen = block[None, :] <= block[:, None]
    mask = seen if target.spec.exact_prefix else torch.ones_like(seen)
    ours = model.config._attn_implementation
    model.config._attn_implementation = "sdpa"
    try:
        out = model(
            input_ids=torch.from_numpy(state)[None].to(mask.device),
            attention_mask=mask[None, None],
            use_cache=False,
        )
    finally:
        model.config._attn_implementation = ours
    logits: Tensor = out.logits[0]
    return logits


def _replica(target: PagedTarget | NativeCanvasTarget, state: State) -> Check:
    """The last block alone, and in the middle of others."""
    length = target.spec.block_length
    start = len(state) - length
    others = [np.roll(state[start:], shift) for shift in range(1, COMPANY)]
    states = [*others[: COMPANY // 2], state[start:], *others[COMPANY // 2 :]]
    alone = _last_block(target, state, [state[start:]])[0]
    among = _last_block(target, state, states)[COMPANY // 2]
    equal = torch.equal(alone, among)
    worst = float((alone - among).abs().max())
    return Check(
        "a state among others equals the state alone",
        equal or worst <= TOLERANCES[alone.dtype] * float(alone.std()),
        "bit for bit" if equal else f"largest difference of logits {worst:.2g}",
    )


def _last_block(
    target: PagedTarget | NativeCanvasTarget, whole: State, states: list[State]
) -> Tensor:
    """Logits [S, L, V] of states of the last block behind the others, by the way of decoding."""
    length = target.spec.block_length
    start = len(whole) - length
    if isinstance(target, NativeCanvasTarget):
        canvases = [Canvas(whole, start)]
        if len(states) > 1:  # then the opening has company as well
            canvases.append(Canvas(whole[:start], start - length))
        opened = target.open(canvases, context="prefix")[0]
        hidden = target.hidden([CanvasUnit(state=s, opened=opened) for s in states])
    else:
        num = start // length
        pages = target.new_pages(num)
        for block in range(num):
            before = tuple(range(block))
            mine = whole[block * length :][:length]
            target.hidden(
                [Unit(state=mine, start=block * length, pages=before, write=block)], pages
            )
        prefix = tuple(range(num))
        hidden = target.hidden([Unit(state=s, start=start, pages=prefix) for s in states], pages)
    return target.logits(hidden.flatten(0, 1)).view(len(states), length, -1)


def _cached(target: PagedTarget | NativeCanvasTarget, state: State, whole: Tensor) -> Check:
    """The last block with cached keys and values, against transformers' forward without any."""
    length = target.spec.block_length
    expected = aligned(whole, shifted=target.spec.shifted)[-length:]
    cached = _last_block(target, state, [state[-length:]])[0]
    worst, scale = float((cached - expected).abs().max()), float(expected.std())
    return Check(
        "cached keys and values equal an uncached forward",
        worst <= TOLERANCES[cached.dtype] * scale,
        f"largest difference of logits {worst:.2g}, their spread is {scale:.2g}",
    )


def aligned(whole: Tensor, *, shifted: bool) -> Tensor:
    """Rows such that row i predicts position i."""
    return torch.cat([whole[:1], whole[:-1]]) if shifted else whole


def _shift(spec: TargetSpec, whole: Tensor, ids: State, masked: State) -> Check:
    """Which alignment predicts the masked tokens of the text better."""
    name = f"logits are {'shifted by one' if spec.shifted else 'not shifted'}"
    ours = _predicted(aligned(whole, shifted=spec.shifted), ids, masked)
    other = _predicted(aligned(whole, shifted=not spec.shifted), ids, masked)
    chance = -float(np.log(spec.vocab_rows))
    detail = f"mean log-probability {ours:.2f} of masked tokens, the other way {other:.2f}"
    if max(ours, other) < chance + CLEARLY or abs(ours - other) < CLEARLY:
        return Check(name, None, f"{detail}: this text cannot tell")
    return Check(name, ours > other, detail)


def _predicted(rows: Tensor, ids: State, masked: State) -> float:
    """Mean log-probability of the text's tokens at masked positions."""
    places = torch.from_numpy(np.flatnonzero(masked)).to(rows.device)
    tokens = torch.from_numpy(ids[masked]).to(rows.device)
    laws = rows[places].double().log_softmax(-1)
    return float(laws.gather(1, tokens[:, None]).mean())
