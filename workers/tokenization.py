"""From a staged row to prompt ids, and from output ids to text."""

import json
from typing import Any

from manifests.job_input import Prompt
from manifests.staged import StagedRow
from spot.targets.family import Grid
from workers.errors import RowError


class Tokenization:
    """A target's tokenizer with the job's limits and its chat template's variables.

    A text prompt becomes one user message of the chat template, unless the job goes without one;
    messages go through it as they are.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        max_positions: int,
        max_tokens: int,
        length: int,
        grid: Grid = "sequence",
        prompt: Prompt | None = None,
    ) -> None:
        """``length`` is that of a block; blocks begin where the ``grid`` does."""
        self._tokenizer = tokenizer
        self._prompt = prompt or Prompt()
        self._max_tokens = max_tokens
        self._max_positions, self._length, self._grid = max_positions, length, grid

    def encode(self, row: StagedRow) -> tuple[int, ...]:
        """Prompt ids of a row.

        Raises:
            RowError: the prompt cannot be rendered or is too long.
        """
        ids = tuple(self._ids(row))
        budget = row.max_tokens or self._max_tokens
        if len(ids) > self._room(budget):
            setting = "its max_tokens" if row.max_tokens else "decode.max_tokens"
            raise RowError(
                "PromptTooLong",
                f"row {row.id}: the prompt has {len(ids)} tokens, with {setting} of {budget} the "
                f"target takes {max(0, self._room(budget))}; shorten the prompt or lower {setting}",
            )
        return ids

    def _room(self, budget: int) -> int:
        """Longest prompt: the last block is decoded whole, so the grid's end must fit too."""
        length = self._length
        if self._grid == "prompt":
            return self._max_positions - -(-budget // length) * length
        return self._max_positions // length * length - budget

    def _ids(self, row: StagedRow) -> list[int]:
        if self._prompt.chat_template == "none":
            return list(self._tokenizer.encode(row.prompt))
        text = self._render(row)
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _render(self, row: StagedRow) -> str:
        messages = (
            json.loads(row.messages)
            if row.messages is not None
            else [{"role": "user", "content": row.prompt}]
        )
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    messages,
                    tokenize=False,
                    add_generation_prompt=True,
                    **self._prompt.chat_template_args,
                )
            )
        except Exception as error:  # templates are the checkpoint's own code and raise anything
            raise RowError("ChatTemplateError", f"row {row.id}: {error}") from error

    def decode(self, token_ids: tuple[int, ...]) -> str:
        """Output text; special tokens are left out, lone surrogates cannot arise."""
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def cut(self, token_ids: tuple[int, ...], stop: tuple[str, ...]) -> tuple[str, int] | None:
        """Where the first stop string cuts the output.

        Returns:
            The text before it and the number of tokens that are needed for that text, or None
            where no stop string occurs.
        """
        text = self.decode(token_ids)
        found = [place for place in (text.find(s) for s in stop) if place >= 0]
        if not found:
            return None
        kept = text[: min(found)]
        low, high = 0, len(token_ids)
        while low < high:  # fewest tokens whose text reaches the cut, the last character whole
            middle = (low + high) // 2
            enough = self.decode(token_ids[:middle]).startswith(kept)
            low, high = (low, middle) if enough else (middle + 1, high)
        return kept, low
