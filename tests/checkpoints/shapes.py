"""Names and shapes of the stored tensors."""

from collections.abc import Mapping
from typing import Any

Shapes = dict[str, tuple[int, ...]]


def _sdar_shapes(config: Mapping[str, Any]) -> Shapes:
    return _qwen_shapes(config, head=config["head_dim"], biased=False)


def _dream_shapes(config: Mapping[str, Any]) -> Shapes:
    head = config["hidden_size"] // config["num_attention_heads"]
    return _qwen_shapes(config, head=head, biased=True)


def _qwen_shapes(config: Mapping[str, Any], *, head: int, biased: bool) -> Shapes:
    width, inner = config["hidden_size"], config["intermediate_size"]
    rows = (config["vocab_size"], width)
    heads = {
        "q": config["num_attention_heads"] * head,
        "k": config["num_key_value_heads"] * head,
        "v": config["num_key_value_heads"] * head,
    }
    shapes: Shapes = {"model.embed_tokens.weight": rows}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        shapes[f"{name}input_layernorm.weight"] = (width,)
        shapes[f"{name}post_attention_layernorm.weight"] = (width,)
        for part, size in heads.items():
            shapes[f"{name}self_attn.{part}_proj.weight"] = (size, width)
            if biased:
                shapes[f"{name}self_attn.{part}_proj.bias"] = (size,)
            elif part != "v":
                shapes[f"{name}self_attn.{part}_norm.weight"] = (head,)
        shapes[f"{name}self_attn.o_proj.weight"] = (width, heads["q"])
        shapes[f"{name}mlp.gate_proj.weight"] = (inner, width)
        shapes[f"{name}mlp.up_proj.weight"] = (inner, width)
        shapes[f"{name}mlp.down_proj.weight"] = (width, inner)
    shapes["model.norm.weight"] = (width,)
    return shapes | ({} if config["tie_word_embeddings"] else {"lm_head.weight": rows})


def _llada_shapes(config: Mapping[str, Any]) -> Shapes:
    width, inner = config["d_model"], config["mlp_hidden_size"]
    keys = config["n_kv_heads"] * width // config["n_heads"]
    rows, top = (config["embedding_size"], width), "model.transformer."
    shapes: Shapes = {f"{top}wte.weight": rows}
    for layer in range(config["n_layers"]):
        name = f"{top}blocks.{layer}."
        shapes |= {
            f"{name}attn_norm.weight": (width,),
            f"{name}ff_norm.weight": (width,),
            f"{name}q_proj.weight": (width, width),
            f"{name}k_proj.weight": (keys, width),
            f"{name}v_proj.weight": (keys, width),
            f"{name}attn_out.weight": (width, width),
            f"{name}ff_proj.weight": (inner, width),
            f"{name}up_proj.weight": (inner, width),
            f"{name}ff_out.weight": (width, inner),
        }
    return shapes | {f"{top}ln_f.weight": (width,), f"{top}ff_out.weight": rows}


def _llada2_shapes(config: Mapping[str, Any]) -> Shapes:
    width, head = config["hidden_size"], config["head_dim"]
    num_queries, num_keys = config["num_attention_heads"], config["num_key_value_heads"]
    rows = (config["vocab_size"], width)
    shapes: Shapes = {"model.word_embeddings.weight": rows}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        shapes |= {
            f"{name}input_layernorm.weight": (width,),
            f"{name}post_attention_layernorm.weight": (width,),
            f"{name}attention.query_key_value.weight": (
                (num_queries + 2 * num_keys) * head,
                width,
            ),
            f"{name}attention.query_layernorm.weight": (head,),
            f"{name}attention.key_layernorm.weight": (head,),
            f"{name}attention.dense.weight": (width, num_queries * head),
        }
        if layer < config["first_k_dense_replace"]:
            shapes |= _mlp(f"{name}mlp.", width, config["intermediate_size"])
            continue
        inner = config["moe_intermediate_size"]
        shapes[f"{name}mlp.gate.weight"] = (config["num_experts"], width)
        shapes[f"{name}mlp.gate.expert_bias"] = (config["num_experts"],)
        for expert in range(config["num_experts"]):
            shapes |= _mlp(f"{name}mlp.experts.{expert}.", width, inner)
        shared = inner * config["num_shared_experts"]
        shapes |= _mlp(f"{name}mlp.shared_experts.", width, shared)
    return shapes | {"model.norm.weight": (width,), "lm_head.weight": rows}


def _mlp(name: str, width: int, inner: int) -> Shapes:
    return {
        f"{name}gate_proj.weight": (inner, width),
        f"{name}up_proj.weight": (inner, width),
        f"{name}down_proj.weight": (width, inner),
    }


SHAPES = {
    "sdar": _sdar_shapes,
    "llada2": _llada2_shapes,
    "llada": _llada_shapes,
    "dream": _dream_shapes,
}
