"""What happened, for replay and for people who read an error."""

from typing import NamedTuple

from schedulers.events import Event
from schedulers.instructions import Instruction


class Step(NamedTuple):
    """One event and what followed from it."""

    event: Event
    instructions: tuple[Instruction, ...]
