"""One engine step at SDAR-8B's shapes with random weights, part by part against the roofline.

``python -m benchmarks.engine_step [--json FILE] [--table FILE]`` runs on a GPU where there is one.
One layer is built and its time multiplied; weights are random, since time does not depend on them.
``--table`` writes a measured cost table for ``python -m benchmarks.engine --clock FILE``.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import Qwen3Config
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer, Qwen3RotaryEmbedding

from benchmarks.batching.clocks import ClockTable, DrafterTable
from spot.attention import NAME, Context, KVPages, attend, make_context
from spot.drafters.checkpoint import OrderModelShape
from spot.drafters.features import NUM_FEATURES
from spot.drafters.order_model import OrderModel
from spot.numerics import pad_rows
from spot.transition import confidence

UNITS = (1, 2, 3, 5, 9, 13, 21, 32, 64)
REPEATS = 9
STALE = 32
FINE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """A dense target and the drafter beside it; SDAR-8B unless told otherwise."""

    hidden: int = 4096
    layers: int = 36
    heads: int = 32
    key_heads: int = 8
    head_size: int = 128
    feedforward: int = 12288
    vocabulary: int = 151936
    block: int = 32
    pages: int = 16  # of every unit's prefix
    masked: int = 16  # positions of every unit
    drafter_width: int = 128
    drafter_layers: int = 3
    drafter_heads: int = 8
    drafter_feedforward: int = 512


TINY = Shapes(
    hidden=32,
    layers=2,
    heads=4,
    key_heads=2,
    head_size=8,
    feedforward=48,
    vocabulary=64,
    block=8,
    pages=2,
    masked=4,
    drafter_width=16,
    drafter_layers=1,
    drafter_heads=2,
    drafter_feedforward=16,
)


class Part(NamedTuple):
    """A part of a step with so many units."""

    units: int
    name: str
    seconds: float
    flops: float
    bytes: float

    def roofline_s(self, *, tflops: float, gb_per_s: float) -> float:
        """The least that the part can take on such a device."""
        return max(self.flops / (tflops * 1e12), self.bytes / (gb_per_s * 1e9))


class Step:
    """Everything that a step needs, on one device."""

    def __init__(self, shapes: Shapes, *, device: torch.device, dtype: torch.dtype) -> None:
        self.shapes, self.device, self.dtype = shapes, device, dtype
        config = Qwen3Config(
            hidden_size=shapes.hidden,
            num_hidden_layers=1,
            num_attention_heads=shapes.heads,
            num_key_value_heads=shapes.key_heads,
            head_dim=shapes.head_size,
            intermediate_size=shapes.feedforward,
            vocab_size=shapes.vocabulary,
        )
        config._attn_implementation = NAME
        torch.manual_seed(0)
        self.layer = Qwen3DecoderLayer(config, 0).to(device, dtype).eval().requires_grad_(False)
        self.rotary = Qwen3RotaryEmbedding(config).to(device)
        self.head = torch.randn(shapes.vocabulary, shapes.hidden, device=device, dtype=dtype) * 0.02
        shape = OrderModelShape(
            width=shapes.drafter_width,
            layers=shapes.drafter_layers,
            heads=shapes.drafter_heads,
            feedforward=shapes.drafter_feedforward,
        )
        self.order = OrderModel(shape).to(device).eval().requires_grad_(False)
        self.pages = KVPages(
            num_layers=1,
            shape=(shapes.pages, shapes.key_heads, shapes.block, shapes.head_size),
            like=self.head,
        )

    def context(self, units: int) -> Context:
        """Every unit behind the same full page table; nobody writes."""
        table = tuple(range(self.shapes.pages))
        return make_context(self.pages, tables=[table] * units, writes=[-1] * units)

    def random(self, *shape: int) -> Tensor:
        """Activations."""
        return torch.randn(*shape, device=self.device, dtype=self.dtype)

    def timed(self, action: Callable[[], object], *, repeats: int = REPEATS) -> float:
        """Median seconds of a call."""
        times = []
        for turn in range(repeats + 1):
            began = time.perf_counter()
            action()
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            if turn:
                times.append(time.perf_counter() - began)
        return median(times)


def parts(step: Step, units: int) -> list[Part]:
    """The parts of a step with so many units; those of all layers together."""
    return [*_layer_parts(step, units), *_head_parts(step, units), _drafter_part(step, units)]


@torch.inference_mode()
def _layer_parts(step: Step, units: int) -> list[Part]:
    s, context = step.shapes, step.context(units)
    tokens, keys = units * s.block, (s.pages + 1) * s.block
    x = step.random(1, tokens, s.hidden)
    positions = torch.arange(tokens, device=step.device)[None] % s.block + s.pages * s.block
    rotary = step.rotary(x, positions)
    query = step.random(units, s.heads, s.block, s.head_size)
    own = step.random(units, s.key_heads, s.block, s.head_size)
    whole = step.timed(
        lambda: step.layer(
            x, position_embeddings=rotary, block_context=context, block_length=s.block
        )
    )
    attention = step.timed(
        lambda: attend(query, own, own, layer=0, context=context, scaling=s.head_size**-0.5)
    )
    mlp = step.timed(lambda: step.layer.mlp(x))
    item = step.head.element_size()
    projections = 2 * s.hidden * s.head_size * (s.heads + s.key_heads)
    gated = 3 * s.hidden * s.feedforward
    attended = 4 * s.heads * s.head_size * tokens * keys
    cache = 2 * units * keys * s.key_heads * s.head_size * item
    others = max(whole - attention - mlp, 0.0)
    return [
        _times(s.layers, units, "attention", attention, attended, cache),
        _times(s.layers, units, "mlp", mlp, 2 * tokens * gated, gated * item),
        _times(
            s.layers,
            units,
            "projections and norms",
            others,
            2 * tokens * projections,
            projections * item,
        ),
    ]


def _times(num: int, units: int, name: str, seconds: float, flops: float, size: float) -> Part:
    """A part that every layer has."""
    return Part(units, name, num * seconds, num * flops, num * size)


@torch.inference_mode()
def _head_parts(step: Step, units: int) -> list[Part]:
    s, rows, item = step.shapes, units * step.shapes.masked, step.head.element_size()
    hidden = step.random(rows, s.hidden)
    logits = (pad_rows(hidden) @ step.head.T)[:rows].float()
    matrix = s.hidden * s.vocabulary
    head = step.timed(lambda: pad_rows(hidden) @ step.head.T)
    statistics = step.timed(lambda: confidence(logits))
    stale = step.timed(lambda: logits.topk(min(STALE, s.vocabulary), dim=-1))
    table = rows * s.vocabulary * 4
    return [
        Part(units, "logits", head, 2 * rows * matrix, matrix * item),
        Part(units, "statistics", statistics, 3 * rows * s.vocabulary, 2 * table),
        Part(units, "stale candidates", stale, rows * s.vocabulary, table),
    ]


@torch.inference_mode()
def _drafter_part(step: Step, units: int) -> Part:
    """One level of the order model with a node to each unit."""
    s = step.shapes
    features = torch.randn(units, s.block, NUM_FEATURES, device=step.device)
    masked = torch.ones(units, s.block, dtype=torch.bool, device=step.device)
    taken = torch.zeros_like(masked)
    seconds = step.timed(lambda: step.order(features, masked=masked, taken=taken))
    weights = sum(p.numel() for p in step.order.parameters())
    return Part(units, DRAFTER, seconds, 2 * units * s.block * weights, 4 * weights)


DRAFTER = "level of the drafter"


def cost_table(found: Sequence[Part], shapes: Shapes, *, name: str, note: str) -> ClockTable:
    """The measured parts as a table for the simulated clock.

    Attention's pairs and the head's rows are inside the seconds of the positions, as measured with
    the shapes' own prefix and masked positions.
    """
    units = sorted({part.units for part in found})
    forward = [
        sum(p.seconds for p in found if p.units == num and p.name != DRAFTER) for num in units
    ]
    levels = [p.seconds for p in found if p.name == DRAFTER]
    draft_s = max(levels[-1] - levels[0], 0.0) / max(units[-1] - units[0], 1)
    return ClockTable(
        name=name,
        source="measured",
        note=note,
        positions=tuple(float(num * shapes.block) for num in units),
        seconds=tuple(forward),
        pair_s=0.0,
        row_s=0.0,
        drafter=DrafterTable(call_s=levels[0], level_s=levels[0], draft_s=draft_s),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parser().parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    shapes = replace(TINY if options.tiny else Shapes(), pages=options.pages)
    step = Step(shapes, device=device, dtype=dtype)
    found = [part for num in options.units or UNITS for part in parts(step, num)]
    for part in found:
        roofline = part.roofline_s(tflops=options.tflops, gb_per_s=options.gb_per_s)
        share = roofline / max(part.seconds, FINE)
        print(f"{part.units:4d} {part.name:24s} {1e3 * part.seconds:9.3f} ms {share:7.1%}")
    note = f"random weights of {json.dumps(asdict(shapes))} on {_name(device)}, {dtype}"
    if options.json:
        text = json.dumps({"note": note, "parts": [part._asdict() for part in found]}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.table:
        table = cost_table(found, shapes, name=options.table.stem, note=note)
        options.table.write_text(table.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return 0


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name() if device.type == "cuda" else "a CPU"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine_step",
        description="One engine step at SDAR-8B's shapes, part by part against the roofline.",
    )
    parser.add_argument("--json", type=Path, help="write the parts here")
    parser.add_argument("--table", type=Path, help="write a cost table for a simulated clock here")
    parser.add_argument("--units", type=int, action="append", help="only so many; may be repeated")
    parser.add_argument("--pages", type=int, default=16, help="of every unit's prefix (16)")
    parser.add_argument("--tflops", type=float, default=989.0, help="the device's peak (H200's)")
    parser.add_argument("--gb-per-s", type=float, default=4800.0, help="its memory's (H200's)")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, to see that it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
