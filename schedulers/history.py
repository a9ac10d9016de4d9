"""What happened, for replay and for people who read an error."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from schedulers.events import Event
from schedulers.instructions import Instruction

MAX_STEPS = 100_000


class Step(NamedTuple):
    """One event and what followed from it."""

    event: Event
    instructions: tuple[Instruction, ...]


class History:
    """The last `MAX_STEPS` steps, so that a long job does not fill the driver's memory.

    While `is_complete`, replaying the events on a scheduler that was made alike gives the same
    instructions.
    """

    def __init__(self, *, max_steps: int = MAX_STEPS) -> None:
        self._steps: deque[Step] = deque(maxlen=max_steps)
        self.num_steps = 0

    @property
    def is_complete(self) -> bool:
        """Whether no step was dropped."""
        return self.num_steps == len(self._steps)

    def append(self, step: Step) -> None:
        """Note a step."""
        self._steps.append(step)
        self.num_steps += 1

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)
