"""Which special tokens the families have, at which ids, and their chat templates."""

from dataclasses import dataclass
from typing import Literal

FamilyName = Literal["sdar", "llada2", "llada", "dream"]
VocabularyName = Literal["tiny", "released"]
FAMILY_NAMES: tuple[FamilyName, ...] = ("sdar", "llada2", "llada", "dream")
LENGTH = 8  # of a block, where a family leaves it open
NUM_BYTES = 256
SPARE_ROWS = 4  # embedding rows behind the last token, as all released models have some


@dataclass(frozen=True, slots=True, kw_only=True)
class Specials:
    """The special tokens behind the ordinary ones, first one first; ``rows`` of the embedding."""

    first: int
    tokens: tuple[str, ...]
    rows: int

    def id_of(self, token: str) -> int:
        return self.first + self.tokens.index(token)


CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ROLES = ("<role>", "</role>", "<|role_end|>")
HEADERS = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
# Where released ids leave gaps, reserved tokens fill them.
TINY_TOKENS: dict[FamilyName, tuple[str, ...]] = {
    "sdar": (*CHATML, "<|MASK|>"),
    "llada2": ("<|startoftext|>", "<|endoftext|>", "<|mask|>", *ROLES),
    "llada": ("<|startoftext|>", "<|endoftext|>", "<|mdm_mask|>", *HEADERS),
    "dream": (*CHATML, "<|beginoftext|>", "<|mask|>"),
}


def _reserved(*tokens: tuple[int, str], first: int) -> tuple[str, ...]:
    """Tokens at their ids, counted from ``first``, with reserved ones between."""
    by_id = dict(tokens)
    return tuple(by_id.get(i, f"<|reserved_{i}|>") for i in range(first, max(by_id) + 1))


RELEASED_SPECIALS: dict[FamilyName, Specials] = {
    "sdar": Specials(
        first=151643,
        tokens=_reserved(
            (151643, CHATML[0]),
            (151644, CHATML[1]),
            (151645, CHATML[2]),
            (151669, "<|MASK|>"),
            first=151643,
        ),
        rows=151936,
    ),
    "llada2": Specials(
        first=156891,
        tokens=_reserved(
            (156891, "<|startoftext|>"),
            (156892, "<|endoftext|>"),
            (156895, "<|mask|>"),
            *((156899 + i, role) for i, role in enumerate(ROLES)),
            first=156891,
        ),
        rows=157184,
    ),
    "llada": Specials(
        first=126080,
        tokens=_reserved(
            (126080, "<|startoftext|>"),
            (126081, "<|endoftext|>"),
            (126336, "<|mdm_mask|>"),
            *((126346 + i, header) for i, header in enumerate(HEADERS)),
            first=126080,
        ),
        rows=126464,
    ),
    "dream": Specials(
        first=151643,
        tokens=_reserved(
            (151643, CHATML[0]),
            (151644, CHATML[1]),
            (151645, CHATML[2]),
            (151665, "<|beginoftext|>"),
            (151666, "<|mask|>"),
            first=151643,
        ),
        rows=152064,
    ),
}
MASKS = {"sdar": "<|MASK|>", "llada2": "<|mask|>", "llada": "<|mdm_mask|>", "dream": "<|mask|>"}
_CHATML_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES = {
    "sdar": _CHATML_TEMPLATE,
    "dream": _CHATML_TEMPLATE,
    "llada": (
        "{% for m in messages %}{% if loop.first %}{{ bos_token }}{% endif %}<|start_header_id|>"
        "{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
        "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
    ),
    "llada2": (
        "<role>SYSTEM</role>detailed thinking off<|role_end|>{% for m in messages %}<role>"
        "{{ 'HUMAN' if m['role'] == 'user' else m['role'] | upper }}</role>{{ m['content'] }}"
        "<|role_end|>{% endfor %}{% if add_generation_prompt %}<role>ASSISTANT</role>{% endif %}"
    ),
}


def specials_of(family: FamilyName, vocabulary: VocabularyName = "tiny") -> Specials:
    """The special tokens of a checkpoint."""
    if vocabulary == "released":
        return RELEASED_SPECIALS[family]
    tokens = TINY_TOKENS[family]
    return Specials(first=NUM_BYTES, tokens=tokens, rows=NUM_BYTES + len(tokens) + SPARE_ROWS)
