"""Train the bundled target from scratch: autoregressive warm-up, block diffusion, soft labels.

``python -m examples.tiny.train_target --out DIR`` writes the tokenizer, ``warmup/``, ``sharp/``,
``soft/`` and ``target/`` with a log; a stage whose directory is there is not run again. Seeded; two
CPU cores need about two hours. The route is SDAR's own (an autoregressive model converted to block
diffusion); the last stage is explained in ``softening.py``.
"""

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from examples.tiny.batches import IGNORED, batches, block_batch, causal_batch
from examples.tiny.build_tokenizer import END_OF_TEXT, MASK, TURN_END, VOCAB_SIZE, build
from examples.tiny.noising import mask_blocks
from examples.tiny.softening import masked_loss, rarity
from examples.tiny.strict_accuracy import causal_accuracy, strict_accuracy

BLOCK_LENGTH = 32
PAD_BLOCKS = (0, 1, 0, 2)  # behind the answers, by step: what is decoded when stops are ignored


@dataclass(frozen=True, slots=True)
class Stage:
    """One training stage: a warm-up, a plateau, a linear decay over the last part."""

    name: str
    steps: int
    sequences: int
    learning_rate: float
    seed: int
    soft: bool = False  # soft labels, and blocks of padding behind the answers
    warmup: int = 100
    decay: float = 0.4  # share of the steps

    def rate(self, step: int) -> float:
        """Learning rate at a step."""
        warm = min(1.0, (step + 1) / self.warmup)
        decay = min(1.0, (self.steps - step) / (self.decay * self.steps)) if self.decay else 1.0
        return self.learning_rate * warm * decay


def new_model() -> Qwen3ForCausalLM:
    """A Qwen3 model of about 2 M parameters."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=VOCAB_SIZE,
            hidden_size=192,
            num_hidden_layers=5,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=32,
            intermediate_size=512,
            max_position_embeddings=1024,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
            tie_word_embeddings=True,
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
        )
    )


class Optimizers:
    """Muon for the matrices of the layers, AdamW for embeddings and norms."""

    def __init__(self, model: Qwen3ForCausalLM) -> None:
        layers = [p for n, p in model.named_parameters() if "layers" in n and p.ndim == 2]
        chosen = {id(p) for p in layers}
        rest = [p for p in model.parameters() if id(p) not in chosen]
        self._parameters = list(model.parameters())
        self._muon = torch.optim.Muon(
            layers, lr=1.0, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
        )
        self._adamw = torch.optim.AdamW(rest, lr=1.0, betas=(0.9, 0.98), weight_decay=0.0)
        self._both: tuple[torch.optim.Optimizer, ...] = (self._muon, self._adamw)

    def step(self, loss: Tensor, *, rate: float) -> None:
        """Back-propagate, clip and update."""
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        for optimizer in self._both:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()


class Log:
    """Appends one JSON object a line and shows it."""

    def __init__(self, path: Path) -> None:
        self._path, self._start = path, time.monotonic()

    def __call__(self, **fields: object) -> None:
        line = json.dumps({"minutes": round((time.monotonic() - self._start) / 60, 1)} | fields)
        print(line, flush=True)
        with self._path.open("a") as file:
            file.write(line + "\n")


def train_causal(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, *, stage: Stage, log: Log
) -> None:
    """Next-token prediction on the answers."""
    optimizers, pad = Optimizers(model), _id(tokenizer, END_OF_TEXT)
    stream = batches(tokenizer, seed=stage.seed, size=stage.sequences)
    for step, examples in enumerate(islice(stream, stage.steps)):
        ids, labels = causal_batch(examples, pad_id=pad)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(input_ids=ids).logits
        loss = functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED
        )
        optimizers.step(loss, rate=stage.rate(step))
        if step % 50 == 0:
            log(stage=stage.name, step=step, loss=round(loss.item(), 4))


def train_blocks(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    *,
    stage: Stage,
    log: Log,
    out: Path,
) -> None:
    """Predict masked tokens in blocks; half of the later steps visit decoding's own states."""
    optimizers, generator = Optimizers(model), torch.Generator().manual_seed(7)
    pad, mask_id = _id(tokenizer, END_OF_TEXT), _id(tokenizer, MASK)
    stream = batches(tokenizer, seed=stage.seed, size=stage.sequences)
    factor = rarity((e.ids for part in islice(stream, 64) for e in part), vocab_size=VOCAB_SIZE)
    factor[pad] = factor.min()  # examples do not hold it, blocks are full of it
    losses: list[float] = []
    for step, examples in enumerate(islice(stream, stage.steps)):
        batch = block_batch(
            examples,
            pad_id=pad,
            block_length=BLOCK_LENGTH,
            pad_blocks=PAD_BLOCKS[step % len(PAD_BLOCKS)] if stage.soft else 0,
        )
        labels = batch.clean.gather(1, batch.source.clamp(min=0))
        attention, positions = batch.attention(), batch.position_ids()

        def predict(masked: Tensor) -> Tensor:
            """Logits [B, N, V] at the noised positions."""
            noised = labels.masked_fill(masked, mask_id)  # noqa: B023 - used within this step
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model.model(
                    input_ids=torch.cat([noised, batch.clean], dim=1),  # noqa: B023
                    attention_mask=attention,  # noqa: B023
                    position_ids=positions,  # noqa: B023
                ).last_hidden_state
                return model.lm_head(hidden[:, : noised.shape[1]])  # type: ignore[no-any-return]

        rank = torch.rand(labels.shape, generator=generator)
        if step > stage.steps // 5 and step % 2:
            with torch.no_grad():
                confidence = predict(batch.answer).float().log_softmax(-1).amax(-1)
            rank = -confidence + 0.3 * rank
        masked, weights = mask_blocks(
            batch.answer, block_length=BLOCK_LENGTH, rank=rank, generator=generator
        )
        logits = predict(masked)[masked].float()
        loss = masked_loss(
            logits,
            labels,
            masked,
            weights=weights / batch.answer.sum(),
            factor=factor if stage.soft else None,
            block_length=BLOCK_LENGTH,
        )
        optimizers.step(loss, rate=stage.rate(step))
        losses.append(loss.item())
        if step % 50 == 0:
            log(stage=stage.name, step=step, loss=round(sum(losses) / len(losses), 4))
            losses.clear()
        if step % 500 == 499:
            save_as_sdar(model, tokenizer, out)
            log(stage=stage.name, step=step, **strict_accuracy(model, tokenizer, num_problems=48))


def _id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    return int(tokenizer.convert_tokens_to_ids(token))


def save(model: Qwen3ForCausalLM, directory: Path) -> None:
    """Write weights and configuration in fp32 safetensors."""
    model.save_pretrained(directory)


def save_as_sdar(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, directory: Path
) -> None:
    """Write a directory in SDAR's layout: its architecture name, block size and mask id."""
    save(model, directory)
    path = directory / "config.json"
    config = json.loads(path.read_text()) | {
        "architectures": ["SDARForCausalLM"],
        "model_type": "sdar",
        "block_size": BLOCK_LENGTH,
        "mask_token_id": _id(tokenizer, MASK),
        "eos_token_id": _id(tokenizer, END_OF_TEXT),
        "pad_token_id": _id(tokenizer, END_OF_TEXT),
    }
    path.write_text(json.dumps(config, indent=2) + "\n")
    stops = [_id(tokenizer, TURN_END), _id(tokenizer, END_OF_TEXT)]
    generation = {"eos_token_id": stops, "pad_token_id": stops[1]}
    (directory / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    tokenizer.save_pretrained(directory)


def main(arguments: Iterable[str] | None = None) -> None:
    """Run all stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--warmup-steps", type=int, default=1200)
    parser.add_argument("--diffusion-steps", type=int, default=3600)
    parser.add_argument("--soft-steps", type=int, default=500)
    parser.add_argument("--settle-steps", type=int, default=1000)
    options = parser.parse_args(list(arguments) if arguments is not None else None)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(11)
    torch.set_num_threads(2)
    log = Log(out / "training_log.jsonl")
    if not (out / "tokenizer").is_dir():
        build(out / "tokenizer", seed=1)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(out / "tokenizer")
    model = new_model()
    log(parameters=sum(p.numel() for p in model.parameters()))
    if not resume(model, out / "warmup"):
        stage = Stage(
            name="warmup", steps=options.warmup_steps, sequences=48, learning_rate=4e-3, seed=101
        )
        train_causal(model, tokenizer, stage=stage, log=log)
        save(model, out / "warmup")
        tokenizer.save_pretrained(out / "warmup")
        log(stage="warmup", **causal_accuracy(model, tokenizer, num_problems=96))
    stages = {
        "sharp": Stage("diffusion", options.diffusion_steps, 32, 3e-3, seed=202),
        "soft": Stage("soft", options.soft_steps, 32, 1.5e-3, seed=303, soft=True, decay=0.0),
        "target": Stage(
            "settle", options.settle_steps, 32, 1.4e-3, seed=404, soft=True, warmup=1, decay=1.0
        ),
    }
    for name, stage in stages.items():
        if not resume(model, out / name):
            train_blocks(model, tokenizer, stage=stage, log=log, out=out / "partial")
            save_as_sdar(model, tokenizer, out / name)
            log(stage=stage.name, **strict_accuracy(model, tokenizer, num_problems=96))


def resume(model: Qwen3ForCausalLM, directory: Path) -> bool:
    """Load a stage that is done already; whether it was."""
    if not directory.is_dir():
        return False
    model.load_state_dict(Qwen3ForCausalLM.from_pretrained(directory).state_dict())
    return True


if __name__ == "__main__":
    main()
