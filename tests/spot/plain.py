"""An independent, slow decoder: no cache, no batching, transformers' own attention with a mask.

Written from the family's description, for comparison only.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import Qwen3Config, Qwen3ForCausalLM

from spot.noise import gumbel_rows
from tests.twins import MASK_ID, PAD_ID, STOP_ID, VOCAB_ROWS


class PlainDecoder:
    """Strict decoding, one forward over the whole sequence per commit."""

    def __init__(self, directory: Path, *, block_length: int) -> None:
        config = Qwen3Config.from_json_file(directory / "config.json")
        config._attn_implementation = "sdpa"
        self._model = Qwen3ForCausalLM(config).eval()
        self._model.load_state_dict(load_file(directory / "model.safetensors"))
        self._length = block_length

    @torch.no_grad()
    def logits(self, ids: list[int]) -> torch.Tensor:
        """[positions, V] under block-causal attention."""
        block = torch.arange(len(ids)) // self._length
        mask = (block[None, :] <= block[:, None])[None, None]
        out = self._model(input_ids=torch.tensor([ids]), attention_mask=mask, use_cache=False)
        logits: torch.Tensor = out.logits[0].double()
        logits[:, MASK_ID] = -torch.inf
        logits[:, 260:] = -torch.inf
        return logits

    def decode(
        self, prompt: list[int], *, max_tokens: int, temperature: float = 0.0, key: int = 0
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Output ids and commits (position, token) in order."""
        ids, commits = list(prompt), []
        while True:
            ids += [MASK_ID] * (-len(ids) % self._length or self._length)
            first = len(ids) - self._length
            while MASK_ID in ids[max(first, len(prompt)) :]:
                open_places = [p for p in range(first, len(ids)) if ids[p] == MASK_ID]
                logits = self.logits(ids)
                best = max(open_places, key=lambda p: (_doubt(logits[p]), -p))
                token = _token(logits[best], temperature=temperature, key=key, position=best)
                ids[best] = token
                commits.append((best, token))
                end = _end(ids, prompt=len(prompt), max_tokens=max_tokens)
                if end is not None:
                    return ids[len(prompt) : end], commits


def _doubt(logits: torch.Tensor) -> float:
    """Log of the top probability, from the others."""
    others = (logits - logits.max()).exp()
    others[logits.argmax()] = 0.0
    return -float(torch.log1p(others.sum()))


def _token(logits: torch.Tensor, *, temperature: float, key: int, position: int) -> int:
    if temperature == 0.0:
        return int(logits.argmax())
    noise = gumbel_rows(torch.tensor([key]), torch.tensor([position]), vocab_size=VOCAB_ROWS)[0]
    return int((logits / temperature + noise).argmax())


def _end(ids: list[int], *, prompt: int, max_tokens: int) -> int | None:
    for position in range(prompt, len(ids)):
        if position >= prompt + max_tokens:
            return position
        if ids[position] == MASK_ID:
            return None
        if ids[position] in (STOP_ID, PAD_ID):
            return position
    return prompt + max_tokens if len(ids) >= prompt + max_tokens else None
