"""LLaDA2.0-mini: a block-diffusion mixture of experts that computes what GLM-4 MoE computes.

Stored tensors have names of their own; queries, keys and values are fused, and each expert is
stored apart. Block-causal attention, grid from absolute position 0, logits not shifted.
"""

import re
from collections.abc import Mapping
from typing import Any

from spot.targets.family import DENSE_SETTINGS, Family, Native, Slot, Vocabulary, same_names

_OUTSIDE = {
    "model.word_embeddings.weight": "model.embed_tokens.weight",
    "model.norm.weight": "model.norm.weight",
    "lm_head.weight": "lm_head.weight",
}
_IN_LAYER = {
    "input_layernorm.weight": "input_layernorm.weight",
    "post_attention_layernorm.weight": "post_attention_layernorm.weight",
    "attention.dense.weight": "self_attn.o_proj.weight",
    "attention.query_layernorm.weight": "self_attn.q_norm.weight",
    "attention.key_layernorm.weight": "self_attn.k_norm.weight",
    "mlp.gate.weight": "mlp.gate.weight",
    "mlp.gate.expert_bias": "mlp.gate.e_score_correction_bias",
    **{
        f"mlp.{part}{name}_proj.weight": f"mlp.{part}{name}_proj.weight"
        for part in ("", "shared_experts.")
        for name in ("gate", "up", "down")
    },
}
_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")
_EXPERT = re.compile(r"mlp\.experts\.(\d+)\.(gate|up|down)_proj\.weight")


def key_map(name: str, settings: Mapping[str, Any]) -> tuple[Slot, ...]:
    """GLM-4 MoE's names of a stored tensor's parts."""
    if name in _OUTSIDE:
        return (Slot(name=_OUTSIDE[name]),)
    found = _LAYER.fullmatch(name)
    if found is None:
        return ()
    layer, rest = f"model.layers.{found[1]}.", found[2]
    if rest == "attention.query_key_value.weight":
        return _fused(layer, settings)
    expert = _EXPERT.fullmatch(rest)
    if expert is not None:
        return (_stacked(layer, int(expert[1]), expert[2], settings),)
    return (Slot(name=layer + _IN_LAYER[rest]),) if rest in _IN_LAYER else ()


def _fused(layer: str, settings: Mapping[str, Any]) -> tuple[Slot, ...]:
    """Rows of queries, then keys, then values."""
    size, num_keys = settings["head_dim"], settings["num_key_value_heads"]
    first, slots = 0, []
    for part, heads in (("q", settings["num_attention_heads"]), ("k", num_keys), ("v", num_keys)):
        last = first + heads * size
        slots.append(Slot(name=f"{layer}self_attn.{part}_proj.weight", rows=(first, last)))
        first = last
    return tuple(slots)


def _stacked(layer: str, expert: int, part: str, settings: Mapping[str, Any]) -> Slot:
    """An expert's entry of the stacked weights; gate and up projection lie one above the other."""
    if part == "down":
        return Slot(name=f"{layer}mlp.experts.down_proj", entry=expert)
    size = settings["moe_intermediate_size"]
    into = (0, size) if part == "gate" else (size, 2 * size)
    return Slot(name=f"{layer}mlp.experts.gate_up_proj", entry=expert, into=into)


LLADA2 = Family(
    name="llada2",
    architecture="LLaDA2MoeModelLM",
    model_types=("llada2_moe", "llada2_moe_veomni"),
    native=Native(
        model="Glm4MoeForCausalLM",
        config="Glm4MoeConfig",
        settings=DENSE_SETTINGS
        | same_names(
            "moe_intermediate_size",
            "head_dim",
            "first_k_dense_replace",
            "num_experts_per_tok",
            "n_group",
            "topk_group",
            "routed_scaling_factor",
        )
        | {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts"},
        constants={
            "hidden_act": "silu",
            "attention_bias": False,
            "norm_topk_prob": True,
            "use_qk_norm": True,
            "num_mtp_layers": 0,
        },
        partial_rotary=0.5,
    ),
    key_map=key_map,
    vocabulary=Vocabulary(
        rows=157184, mask_id=156895, stop_ids=(156892,), pad_id=156892, turn_end_id=None
    ),
    grid="sequence",
    attention="block-causal",
    shifted=False,
    turn_end="<|role_end|>",
    block_length=32,
    expected={
        "hidden_act": "silu",
        "use_bias": False,
        "use_qkv_bias": False,
        # classes disagree about the default of this one; the released weights have the norms
        "use_qk_norm": True,
        "use_rmsnorm": True,
        "norm_topk_prob": True,
        "norm_head": False,
        "norm_softmax": False,
        "score_function": "sigmoid",
        "router_dtype": "fp32",
        "moe_router_enable_expert_bias": True,
        "partial_rotary_factor": 0.5,
        "using_split_qkv_in_self_attention": False,
        "use_sliding_window": False,
        "rope_scaling": None,
    },
)
