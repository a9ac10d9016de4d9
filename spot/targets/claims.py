"""What a directory claims about itself, held against its family; read without torch."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from spot.targets.family import Family, TargetError
from spot.targets.files import CONFIG, GENERATION, TOKENIZER, TOKENIZER_CONFIG, read_json


def confirm(path: Path, said: dict[str, Any], name: str, value: Any, *, of: Family) -> None:
    if said.get(name, value) != value:
        raise TargetError(
            f"{path} says {name} {said[name]!r} but {of.name}'s is {value!r}: correct the file, or "
            "use the checkpoint that it belongs to"
        )


class Claims:
    """What a directory says about itself, held against its family."""

    def __init__(self, directory: Path, config: dict[str, Any], family: Family) -> None:
        self._directory, self._config, self._family = directory, config, family
        self._path = directory / CONFIG
        rows = self.integer(family.native.settings["vocab_size"])
        # ids are known only for the released vocabulary
        self._known = family.vocabulary if rows == family.vocabulary.rows else None

    def integer(self, name: str) -> int:
        """A whole number of the configuration."""
        value = self._config.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise TargetError(f"{self._path} has no whole number {name}: add it")
        return value

    def mask_id(self) -> int:
        """The mask, which must not be an ordinary token."""
        if self._known is None:
            mask_id = self.integer("mask_token_id")
        else:
            mask_id = self._known.mask_id
            self._confirm_id("mask_token_id", mask_id)
        added = added_tokens(self._directory)
        if added and mask_id < max(added.values()) and mask_id not in added.values():
            raise TargetError(
                f"{self._path} says mask_token_id {mask_id} but the tokenizer has an ordinary "
                "token there: give the id of the mask token"
            )
        return mask_id

    def pad_id(self) -> int:
        """The padding; nothing is ever padded with it here, but it must belong to the family."""
        if self._known is None:
            return self.integer("pad_token_id")
        self._confirm_id("pad_token_id", self._known.pad_id)
        return self._known.pad_id

    def _confirm_id(self, name: str, value: int) -> None:
        for file in (CONFIG, GENERATION):
            path = self._directory / file
            said = read_json(path) if path.is_file() else {}
            if said.get(name) is not None:  # some files name the key and leave it open
                confirm(path, said, name, value, of=self._family)

    def stop_ids(self) -> tuple[int, ...]:
        """Ids that end a sample: the family's, and the end of a chat turn."""
        known, turn_end = self._known, self._family.turn_end
        ids = self._stated_stop_ids() if known is None else known.stop_ids
        found = added_tokens(self._directory).get(turn_end)
        if known is not None:
            self._confirm_stop_ids(ids)
            if known.turn_end_id is not None and found not in (None, known.turn_end_id):
                raise TargetError(
                    f"{self._directory}: the tokenizer gives {turn_end} the id {found} but "
                    f"{self._family.name}'s is {known.turn_end_id}: use the checkpoint's own "
                    "tokenizer"
                )
        return ids if found is None or found in ids else (*ids, found)

    def _confirm_stop_ids(self, ids: tuple[int, ...]) -> None:
        for file in (CONFIG, GENERATION):
            path = self._directory / file
            said = read_json(path).get("eos_token_id") if path.is_file() else None
            listed = said if isinstance(said, list) else [] if said is None else [said]
            if not set(listed) <= set(ids):
                raise TargetError(
                    f"{path} says eos_token_id {said} but {self._family.name}'s stop ids are "
                    f"{list(ids)}: correct the file"
                )

    def _stated_stop_ids(self) -> tuple[int, ...]:
        path = self._directory / GENERATION
        path = path if path.is_file() else self._path
        said = read_json(path).get("eos_token_id")
        ids = tuple(said) if isinstance(said, list) else (said,)
        if not ids or not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
            raise TargetError(f"{path} has no eos_token_id: add the stop ids")
        return ids

    def block_length(self, *, asked: int | None) -> int:
        """The block length: by the registry or the checkpoint, or else by the job."""
        family, sources = self._family, self._block_lengths()
        if not sources and asked is None and family.block_length is None:
            raise TargetError(
                f"{self._path} does not say its block length: set target.block_length "
                "(it is part of the checkpoint's name, as in -b32)"
            )
        if asked is not None:
            sources.append(("target.block_length", asked))
        for (one, here), (other, there) in pairwise(sources):
            if here != there:
                raise TargetError(
                    f"{other} is {there} but {one} says {here}: a checkpoint has one block length, "
                    "so correct the one that is wrong"
                )
        return sources[0][1] if sources else family.block_length or 0

    def _block_lengths(self) -> list[tuple[str, int]]:
        """Who says which block length, the caller left out."""
        family, found = self._family, []
        if self._known is not None and family.block_length and not family.any_block_length:
            found.append((f"the registry of {family.name}", family.block_length))
        for part in (self._directory.name, self._directory.parent.parent.name):
            named = family.block_length_of_name(part)
            if named is not None and self._known is not None:
                found.append((f"the checkpoint's name {part}", named))
        if self._config.get("block_size") is not None:
            found.append((f"block_size of {self._path}", self.integer("block_size")))
        return found


def added_tokens(directory: Path) -> dict[str, int]:
    """The tokens outside a tokenizer's ordinary vocabulary, with their ids."""
    found: dict[str, int] = {}
    path = directory / TOKENIZER
    if path.is_file():
        for token in read_json(path).get("added_tokens", []):
            found[token["content"]] = token["id"]
    path = directory / TOKENIZER_CONFIG
    if path.is_file():
        for number, token in read_json(path).get("added_tokens_decoder", {}).items():
            found.setdefault(token["content"], int(number))
    return found
