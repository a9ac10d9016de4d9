"""What a model directory is: every value that decoding would use, and the checks on it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.errors import JobError
from jobs.report_table import format_lines
from spot.targets.checkpoint import TargetSpec, inspect_directory, read_config, spec_of
from spot.targets.families import family_of
from spot.targets.family import DtypeName, Family
from spot.targets.files import CONFIG
from spot.targets.revision import revision_of

TEXT = (
    "A train leaves the station at nine in the morning and travels sixty kilometres in the first "
    "hour. It then stops for ten minutes, and after that it travels another forty kilometres. How "
    "far has it travelled in total? It has travelled sixty and forty kilometres, which makes one "
    "hundred kilometres in total."
)
GREETING = [{"role": "user", "content": "Hello"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The values, by name, and what the checks said."""

    values: dict[str, Any]
    checks: tuple[dict[str, Any], ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(check["passed"] is not False for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Values, then checks."""
        return {**self.values, "checks": list(self.checks)}

    def lines(self) -> list[str]:
        """For people."""
        words = {True: "ok", False: "FAILED", None: "undecided"}
        rows = [(name, str(value)) for name, value in self.values.items()]
        checks = [f"{words[c['passed']]}: {c['name']} ({c['detail']})" for c in self.checks]
        return [*format_lines(rows).splitlines(), *checks]


def inspect_target(
    directory: Path,
    *,
    block_length: int | None = None,
    dtype: DtypeName = "float32",
    device: str = "cpu",
    numerics: str = "invariant",
    text: str = TEXT,
    check: bool = True,
) -> Inspection:
    """Look at a directory, load it and check it; without ``check`` no weight is read.

    Raises:
        JobError: it cannot be used; the message says why.
    """
    try:
        files = inspect_directory(directory, block_length=block_length)
        spec = spec_of(directory, block_length=block_length)
        family = family_of(read_config(directory), path=directory / CONFIG)
        values = _values(directory, family, spec, files)
        if not check:
            return Inspection(values=values, checks=())
        return _checked(
            directory,
            values,
            family,
            text,
            block_length,
            dtype=dtype,
            device=device,
            numerics=numerics,
        )
    except ValueError as error:
        raise JobError(str(error)) from error


def _values(directory: Path, family: Family, spec: TargetSpec, files: list[Path]) -> dict[str, Any]:
    return {
        "directory": str(directory),
        "family": spec.family,
        "architecture": family.architecture,
        "computed by": f"transformers {family.native.model}",
        "revision": revision_of(directory) or "unknown",
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
        "block length": spec.block_length,
        "grid origin": f"the {spec.grid}'s {'start' if spec.grid == 'sequence' else 'end'}",
        "attention": spec.attention,
        "logits shifted": spec.shifted,
        "exact prefix": spec.exact_prefix,
        "distribution preserving": spec.exact_prefix or "never: its prefix cache approximates",
        "mask id": spec.mask_id,
        "stop ids": list(spec.stop_ids),
        "pad id": spec.pad_id,
        "embedding rows": spec.vocab_rows,
        "positions": spec.max_positions,
    }


def _checked(
    directory: Path,
    values: dict[str, Any],
    family: Family,
    text: str,
    block_length: int | None,
    **options: Any,
) -> Inspection:
    from spot.targets.registry import load_target
    from spot.targets.self_check import check_target

    target = load_target(directory, block_length=block_length, **options)
    template = _template(target.tokenizer, family, target.spec)
    values = values | {
        "tokens": len(target.tokenizer),
        "banned ids": int(target.banned.sum()),
        "chat template": template["detail"],
        "dtype": options["dtype"],
        "device": options["device"],
        "numerics": options["numerics"],
    }
    checks = [check._asdict() for check in check_target(target, text)]
    return Inspection(values=values, checks=(template, *checks))


def _template(tokenizer: Any, family: Family, spec: TargetSpec) -> dict[str, Any]:
    """Whether a rendered chat holds the family's end of a turn as one token."""
    name = f"the chat template ends turns with {family.turn_end}"
    if tokenizer.chat_template is None:
        return {"name": name, "passed": None, "detail": "none: prompts cannot be rendered"}
    text = tokenizer.apply_chat_template(GREETING, tokenize=False, add_generation_prompt=True)
    ids = tokenizer.encode(text, add_special_tokens=False)
    turn_end = tokenizer.convert_tokens_to_ids(family.turn_end)
    passed = turn_end in ids and turn_end in spec.stop_ids
    return {"name": name, "passed": passed, "detail": f"{text!r} is {len(ids)} tokens"}
