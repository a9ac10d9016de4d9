"""Dream-7B: a bidirectional model with Qwen2's weights and key names.

The logits at position i predict the token at position i + 1, as in the autoregressive model that it
was made from: this is the one family whose logits are shifted.
"""

from spot.targets.family import DENSE_SETTINGS, Family, Native, Vocabulary, same_name

DREAM = Family(
    name="dream",
    architecture="DreamModel",
    model_types=("Dream",),
    native=Native(
        model="Qwen2ForCausalLM",
        config="Qwen2Config",
        settings=DENSE_SETTINGS,
        constants={"hidden_act": "silu"},
    ),
    key_map=same_name,
    vocabulary=Vocabulary(
        rows=152064, mask_id=151666, stop_ids=(151643, 151645), pad_id=151643, turn_end_id=151645
    ),
    grid="prompt",
    attention="bidirectional",
    shifted=True,
    turn_end="<|im_end|>",
    block_length=32,
    any_block_length=True,
    expected={"hidden_act": "silu", "use_sliding_window": False, "rope_scaling": None},
)
