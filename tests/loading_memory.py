"""Peak memory of loading a target: ``python -m tests.loading_memory DIR NUMERICS``.

Prints, as JSON, the bytes of the weights and by how much the peak of this process rose over them.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors import safe_open

from spot.targets.files import weight_files
from spot.targets.registry import load_target
from tests.checkpoints import write_released

MIB = 2**20


def peak_bytes() -> int:
    """The most resident memory that this process has had."""
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    return int(line.split()[1]) * 1024


def write_large(directory: Path, *, num_bytes: int) -> Path:
    """A random checkpoint of about so many bytes in fp32, in two shards."""
    width, inner = 1024, 3072
    layer = 4 * (4 * width * width + 3 * width * inner)
    layers = max(1, round(num_bytes / layer))
    return write_released(
        "sdar",
        directory,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=16,
        head_dim=64,
    )


def measure(directory: Path, numerics: str) -> dict[str, float]:
    """Load once; imports and the tokenizer's libraries are paid before."""
    torch.set_num_threads(1)
    stored = sum(file.stat().st_size for file in weight_files(directory))
    with safe_open(weight_files(directory)[0], framework="pt") as handle:
        handle.keys()
    before = peak_bytes()
    target = load_target(directory, numerics=numerics)
    rose = peak_bytes() - before
    del target
    return {"stored_mib": stored / MIB, "rose_mib": rose / MIB, "ratio": rose / stored}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), *sys.argv[2:])))
