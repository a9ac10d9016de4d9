"""LLaDA-8B: a bidirectional model that computes what Llama computes, under names of its own."""

import re
from collections.abc import Mapping
from typing import Any

from spot.targets.family import Family, Native, Slot, Vocabulary

_OUTSIDE = {
    "model.transformer.wte.weight": "model.embed_tokens.weight",
    "model.transformer.ln_f.weight": "model.norm.weight",
    "model.transformer.ff_out.weight": "lm_head.weight",
}
_IN_BLOCK = {
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
}
_BLOCK = re.compile(r"model\.transformer\.blocks\.(\d+)\.(\w+)\.weight")


def key_map(name: str, settings: Mapping[str, Any]) -> tuple[Slot, ...]:
    """Llama's name of a stored tensor."""
    if name in _OUTSIDE:
        return (Slot(name=_OUTSIDE[name]),)
    found = _BLOCK.fullmatch(name)
    if found is None or found[2] not in _IN_BLOCK:
        return ()
    return (Slot(name=f"model.layers.{found[1]}.{_IN_BLOCK[found[2]]}.weight"),)


LLADA = Family(
    name="llada",
    architecture="LLaDAModelLM",
    model_types=("llada",),
    native=Native(
        model="LlamaForCausalLM",
        config="LlamaConfig",
        settings={
            "vocab_size": "embedding_size",
            "hidden_size": "d_model",
            "intermediate_size": "mlp_hidden_size",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "num_key_value_heads": "n_kv_heads",
            "max_position_embeddings": "max_sequence_length",
            "rms_norm_eps": "rms_norm_eps",
            "tie_word_embeddings": "weight_tying",
        },
        constants={"hidden_act": "silu", "attention_bias": False, "mlp_bias": False},
    ),
    key_map=key_map,
    vocabulary=Vocabulary(
        rows=126464, mask_id=126336, stop_ids=(126081, 126348), pad_id=126081, turn_end_id=126348
    ),
    grid="prompt",
    attention="bidirectional",
    shifted=False,
    turn_end="<|eot_id|>",
    block_length=32,
    any_block_length=True,
    expected={
        "activation_type": "silu",
        "block_type": "llama",
        "block_group_size": 1,
        "layer_norm_type": "rms",
        "rope": True,
        "alibi": False,
        "include_bias": False,
        "include_qkv_bias": False,
        "bias_for_layer_norm": False,
        "attention_layer_norm": False,
        "input_emb_norm": False,
        "scale_logits": False,
        "multi_query_attention": None,
    },
)
