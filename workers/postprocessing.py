"""The user's own last word on a sample: `output.postprocess`, a function by its import path.

It gets a finished sample as a dictionary (`id`, `sample`, `text`, `finish_reason`, `tokens`,
`prompt`, `messages`, `carried`) and returns the text to keep, or None to filter the sample out,
which makes it an error row of class `Filtered`. What it raises makes an error row of that sample
alone. Token ids stay those that were decoded.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from manifests.plan import ShardPlan
from manifests.staged import StagedRow
from workers.errors import WorkerError
from workers.samples import OutputSample
from workers.work import Work

Postprocess = Callable[[dict[str, Any]], Any]
_MESSAGE_CHARACTERS = 300


class PostprocessError(WorkerError):
    """The function cannot be loaded; the message names it and the remedy."""


def load_postprocess(name: str) -> Postprocess:
    """The function behind `package.module:function`; raises `PostprocessError`."""
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise PostprocessError(
            f"output.postprocess `{name}` cannot be loaded on a worker ({error}); it is "
            "`package.module:function` of a package that is installed on every node, or of a "
            "directory in cluster.py_modules"
        ) from error
    if not callable(function):
        raise PostprocessError(f"output.postprocess `{name}` is no function")
    loaded: Postprocess = function
    return loaded


class PostprocessedWork:
    """Some work whose samples pass through a function before they are kept."""

    def __init__(self, inner: Work, function: Postprocess, *, num_samples: int) -> None:
        self._inner = inner
        self._function = function
        self._num_samples = num_samples
        self._rows: dict[tuple[int, int], tuple[StagedRow, int]] = {}
        """Rows by shard and index, with the number of samples still to come."""

    @property
    def dtype(self) -> str | None:
        """What is computed in."""
        return self._inner.dtype

    def admit(self, shard: ShardPlan, rows: Sequence[StagedRow]) -> list[OutputSample]:
        """Take rows; a row is kept until its last sample has come out."""
        for staged in rows:
            self._rows[shard.shard, shard.index_of(staged.row)] = (staged, self._num_samples)
        return [self._pass_on(sample) for sample in self._inner.admit(shard, rows)]

    def step(self) -> list[OutputSample]:
        """Go on a little."""
        return [self._pass_on(sample) for sample in self._inner.step()]

    def has_work(self) -> bool:
        """Whether a sample is outstanding."""
        return self._inner.has_work()

    def counters(self) -> dict[str, int]:
        """What has been spent so far."""
        return self._inner.counters()

    def _pass_on(self, sample: OutputSample) -> OutputSample:
        place = (sample.shard, sample.row)
        staged, outstanding = self._rows.pop(place)
        if outstanding > 1:
            self._rows[place] = (staged, outstanding - 1)
        return sample if sample.error_class is not None else self._processed(sample, staged)

    def _processed(self, sample: OutputSample, staged: StagedRow) -> OutputSample:
        try:
            text = self._function(_values(sample, staged))
            if text is not None and not isinstance(text, str):
                raise TypeError(f"it returned {type(text).__name__}, and not a text or None")
            if text is not None:
                text.encode()  # a lone surrogate would fail the whole file, and not this sample
        except Exception as error:  # foreign code; its sample is what fails
            reason = f"{type(error).__name__}: {error}"[:_MESSAGE_CHARACTERS]
            return _failed(sample, "PostprocessFailed", reason)
        if text is None:
            return _failed(sample, "Filtered", "output.postprocess filtered the sample out")
        return replace(sample, text=text)


def _values(sample: OutputSample, staged: StagedRow) -> dict[str, Any]:
    return {
        "id": staged.id,
        "sample": sample.sample,
        "text": sample.text,
        "finish_reason": sample.finish_reason,
        "tokens": sample.num_tokens,
        "prompt": staged.prompt,
        "messages": staged.messages,
        "carried": staged.carried,
    }


def _failed(sample: OutputSample, error_class: str, message: str) -> OutputSample:
    return OutputSample(
        shard=sample.shard,
        row=sample.row,
        sample=sample.sample,
        key=sample.key,
        error_class=error_class,
        error_message=message.encode(errors="replace").decode(),
    )
