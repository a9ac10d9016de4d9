"""Independent forwards of the four families, straight from the stored tensors.

Written from the families' descriptions: one sequence, no cache, no batching, no transformers
classes, every expert by itself. For comparison only.

Legend: N positions, E width, H query heads, K key heads, D head size.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

Weights = dict[str, Tensor]


class PlainModel:
    """Logits of a whole sequence under a family's attention."""

    def __init__(self, directory: Path, *, block_length: int, dtype: torch.dtype) -> None:
        self.config: dict[str, Any] = json.loads((directory / "config.json").read_text())
        stored: Weights = {}
        for file in sorted(directory.glob("*.safetensors")):
            stored |= load_file(file)
        self._stored = {name: tensor.to(dtype) for name, tensor in stored.items()}
        self._raw, self._length, self._dtype = stored, block_length, dtype
        self._parts = _PARTS[self.config["architectures"][0]](self)

    @torch.no_grad()
    def logits(self, ids: list[int]) -> Tensor:
        """[N, V]; row i predicts position i, whatever the family's convention."""
        x = self._parts.embed(torch.tensor(ids))
        cos, sin = self._angles(len(ids))
        mask = self._parts.mask(len(ids), self._length)
        for layer in range(self._parts.num_layers):
            normed = self._norm(x, self._parts.attention_norm(layer))
            x = x + self._attention(layer, normed, cos, sin, mask)
            x = x + self._parts.mlp(layer, self._norm(x, self._parts.mlp_norm(layer)))
        logits = self._norm(x, self._parts.last_norm()) @ self._parts.head().T
        return torch.cat([logits[:1], logits[:-1]]) if self._parts.shifted else logits

    def weight(self, name: str) -> Tensor:
        """A stored tensor in the type that is computed in."""
        return self._stored[name]

    def single(self, name: str) -> Tensor:
        """A stored tensor in fp32, whatever is computed in."""
        return self._raw[name].float()

    def has(self, name: str) -> bool:
        """Whether such a tensor is stored."""
        return name in self._stored

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """RMS norm; every family takes the mean of squares in fp32."""
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return weight * wide.to(self._dtype)

    def _angles(self, num: int) -> tuple[Tensor, Tensor]:
        size = self._parts.rotary_size
        exponents = torch.arange(0, size, 2).float() / size
        rope = self.config.get("rope_parameters") or self.config
        inverse = 1.0 / rope["rope_theta"] ** exponents
        angles = torch.arange(num).float()[:, None] * inverse[None, :]
        return angles.cos().to(self._dtype), angles.sin().to(self._dtype)

    def _rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Turn pairs (i, i + half) of the rotary part of each head [N, heads, D]."""
        half = cos.shape[-1]
        first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        c, s = cos[:, None], sin[:, None]
        return torch.cat([first * c - second * s, second * c + first * s, rest], dim=-1)

    def _attention(self, layer: int, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self._parts.heads(layer, x)  # [N, heads, D]
        norms = self._parts.head_norms(layer)
        if norms is not None:
            query, key = self._norm(query, norms[0]), self._norm(key, norms[1])
        query, key = self._rotate(query, cos, sin), self._rotate(key, cos, sin)
        share = query.shape[1] // key.shape[1]
        out = torch.empty_like(query)
        for head in range(query.shape[1]):
            k, v = key[:, head // share], value[:, head // share]
            scores = query[:, head] @ k.T / k.shape[-1] ** 0.5
            out[:, head] = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v
        return out.flatten(1) @ self._parts.output(layer).T


class _Parts:
    """Where a family keeps what; the names of Qwen's checkpoints."""

    shifted = False
    layer_name = "model.layers.{}."

    def __init__(self, model: PlainModel) -> None:
        self._m, self._c = model, model.config

    @property
    def num_layers(self) -> int:
        return int(self._c["num_hidden_layers"])

    @property
    def head_size(self) -> int:
        return int(
            self._c.get("head_dim") or self._c["hidden_size"] // self._c["num_attention_heads"]
        )

    @property
    def rotary_size(self) -> int:
        return self.head_size

    def mask(self, num: int, length: int) -> Tensor:
        """Block-causal: everything up to the end of one's own block; bool [N, N]."""
        block = torch.arange(num) // length
        return block[None, :] <= block[:, None]

    def embed(self, ids: Tensor) -> Tensor:
        return self._m.weight("model.embed_tokens.weight")[ids]

    def last_norm(self) -> Tensor:
        return self._m.weight("model.norm.weight")

    def head(self) -> Tensor:
        return self._m.weight("lm_head.weight")

    def _of(self, layer: int, name: str) -> Tensor:
        return self._m.weight(self.layer_name.format(layer) + name)

    def attention_norm(self, layer: int) -> Tensor:
        return self._of(layer, "input_layernorm.weight")

    def mlp_norm(self, layer: int) -> Tensor:
        return self._of(layer, "post_attention_layernorm.weight")

    def head_norms(self, layer: int) -> tuple[Tensor, Tensor] | None:
        return self._of(layer, "self_attn.q_norm.weight"), self._of(
            layer, "self_attn.k_norm.weight"
        )

    def heads(self, layer: int, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self._projected(layer, x, part) for part in "qkv")

    def _projected(self, layer: int, x: Tensor, part: str) -> Tensor:
        out = x @ self._of(layer, f"self_attn.{part}_proj.weight").T
        heads: Tensor = out.unflatten(-1, (-1, self.head_size))
        return heads

    def output(self, layer: int) -> Tensor:
        return self._of(layer, "self_attn.o_proj.weight")

    def mlp(self, layer: int, x: Tensor) -> Tensor:
        return self._gated(layer, "mlp.", x)

    def _gated(self, layer: int, name: str, x: Tensor) -> Tensor:
        gate = x @ self._of(layer, f"{name}gate_proj.weight").T
        up = x @ self._of(layer, f"{name}up_proj.weight").T
        return (gate * torch.sigmoid(gate) * up) @ self._of(layer, f"{name}down_proj.weight").T


class _Dream(_Parts):
    """Biases on queries, keys and values; no head norms; bidirectional; shifted."""

    shifted = True

    def mask(self, num: int, length: int) -> Tensor:
        return torch.ones(num, num, dtype=torch.bool)

    def head_norms(self, layer: int) -> None:
        return None

    def _projected(self, layer: int, x: Tensor, part: str) -> Tensor:
        out = x @ self._of(layer, f"self_attn.{part}_proj.weight").T
        out = out + self._of(layer, f"self_attn.{part}_proj.bias")
        heads: Tensor = out.unflatten(-1, (-1, self.head_size))
        return heads


class _Llada(_Parts):
    """Names of its own; no biases, no head norms; bidirectional."""

    layer_name = "model.transformer.blocks.{}."

    @property
    def num_layers(self) -> int:
        return int(self._c["n_layers"])

    @property
    def head_size(self) -> int:
        return int(self._c["d_model"] // self._c["n_heads"])

    def mask(self, num: int, length: int) -> Tensor:
        return torch.ones(num, num, dtype=torch.bool)

    def embed(self, ids: Tensor) -> Tensor:
        return self._m.weight("model.transformer.wte.weight")[ids]

    def last_norm(self) -> Tensor:
        return self._m.weight("model.transformer.ln_f.weight")

    def head(self) -> Tensor:
        return self._m.weight("model.transformer.ff_out.weight")

    def attention_norm(self, layer: int) -> Tensor:
        return self._of(layer, "attn_norm.weight")

    def mlp_norm(self, layer: int) -> Tensor:
        return self._of(layer, "ff_norm.weight")

    def head_norms(self, layer: int) -> None:
        return None

    def _projected(self, layer: int, x: Tensor, part: str) -> Tensor:
        out = x @ self._of(layer, f"{part}_proj.weight").T
        heads: Tensor = out.unflatten(-1, (-1, self.head_size))
        return heads

    def output(self, layer: int) -> Tensor:
        return self._of(layer, "attn_out.weight")

    def mlp(self, layer: int, x: Tensor) -> Tensor:
        gate = x @ self._of(layer, "ff_proj.weight").T
        up = x @ self._of(layer, "up_proj.weight").T
        return (gate * torch.sigmoid(gate) * up) @ self._of(layer, "ff_out.weight").T


class _Llada2(_Parts):
    """Fused heads, half of each head rotated, and experts behind the first layers."""

    @property
    def rotary_size(self) -> int:
        return int(self.head_size * self._c["partial_rotary_factor"])

    def embed(self, ids: Tensor) -> Tensor:
        return self._m.weight("model.word_embeddings.weight")[ids]

    def head_norms(self, layer: int) -> tuple[Tensor, Tensor]:
        names = ("attention.query_layernorm.weight", "attention.key_layernorm.weight")
        return self._of(layer, names[0]), self._of(layer, names[1])

    def heads(self, layer: int, x: Tensor) -> tuple[Tensor, ...]:
        fused = x @ self._of(layer, "attention.query_key_value.weight").T
        num, keys = self._c["num_attention_heads"], self._c["num_key_value_heads"]
        heads: Tensor = fused.unflatten(-1, (-1, self.head_size))
        parts: tuple[Tensor, ...] = heads.split([num, keys, keys], dim=1)
        return parts

    def output(self, layer: int) -> Tensor:
        return self._of(layer, "attention.dense.weight")

    def mlp(self, layer: int, x: Tensor) -> Tensor:
        if layer < self._c["first_k_dense_replace"]:
            return self._gated(layer, "mlp.", x)
        rows = [self._experts(layer, row) for row in x]
        return torch.stack(rows) + self._gated(layer, "mlp.shared_experts.", x)

    def _experts(self, layer: int, row: Tensor) -> Tensor:
        """The best experts of the best groups, in the order of their numbers."""
        gate = self._m.single(f"model.layers.{layer}.mlp.gate.weight")
        bias = self._m.single(f"model.layers.{layer}.mlp.gate.expert_bias")
        scores = torch.sigmoid(row.float() @ gate.T)
        chosen = self._chosen((scores + bias).tolist())
        total = sum(float(scores[e]) for e in chosen)
        out = torch.zeros_like(row)
        for expert in chosen:
            share = float(scores[expert]) / total * self._c["routed_scaling_factor"]
            out += share * self._gated(layer, f"mlp.experts.{expert}.", row)
        return out

    def _chosen(self, scores: list[float]) -> list[int]:
        num_groups = self._c["n_group"]
        size = len(scores) // num_groups
        groups = [range(g * size, (g + 1) * size) for g in range(num_groups)]
        worth = [sum(sorted((scores[e] for e in group), reverse=True)[:2]) for group in groups]
        best = sorted(range(num_groups), key=lambda g: -worth[g])[: self._c["topk_group"]]
        experts = [e for g in best for e in groups[g]]
        return sorted(sorted(experts, key=lambda e: -scores[e])[: self._c["num_experts_per_tok"]])


_PARTS = {
    "SDARForCausalLM": _Parts,
    "LLaDA2MoeModelLM": _Llada2,
    "LLaDAModelLM": _Llada,
    "DreamModel": _Dream,
}
