"""SDAR: dense block-diffusion models with Qwen3's weights and key names.

Block-causal attention (bidirectional inside a block, grid from absolute position 0), logits not
shifted. Checkpoints of other block lengths are other checkpoints; only their names tell.
"""

import re

from spot.targets.family import (
    DENSE_SETTINGS,
    Family,
    Native,
    Vocabulary,
    same_name,
    same_names,
)

_RELEASED = re.compile(r"SDAR-[\d.]+B(?:-A\d+B)?-Chat(?:-b(\d+))?$")


def block_length_of_name(name: str) -> int | None:
    """The block length in a released checkpoint's name (no suffix: 4), or None."""
    found = _RELEASED.search(name)
    return None if found is None else int(found[1] or 4)


SDAR = Family(
    name="sdar",
    architecture="SDARForCausalLM",
    model_types=("sdar",),
    native=Native(
        model="Qwen3ForCausalLM",
        config="Qwen3Config",
        settings=DENSE_SETTINGS | same_names("head_dim"),
        constants={"hidden_act": "silu", "attention_bias": False},
    ),
    key_map=same_name,
    # 151669 is `<|MASK|>`, `<MASK>` or `<|mask|>` by file, so it is never looked up by its string
    vocabulary=Vocabulary(
        rows=151936, mask_id=151669, stop_ids=(151645, 151643), pad_id=151643, turn_end_id=151645
    ),
    grid="sequence",
    attention="block-causal",
    shifted=False,
    turn_end="<|im_end|>",
    block_length_of_name=block_length_of_name,
    expected={
        "hidden_act": "silu",
        "attention_bias": False,
        "use_sliding_window": False,
        "rope_scaling": None,
    },
)
