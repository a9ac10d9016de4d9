"""Cost tables of simulated clocks: what a forward and the drafter take on a machine not at hand.

A table lies in ``benchmarks/clocks`` and says where its figures come from. A forward takes what its
positions take (interpolated, then along the last slope) and a share for each attention pair and
masked row.
"""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from benchmarks.document import DocumentError
from workers.costs import ForwardCost

FOLDER = Path(__file__).parents[1] / "clocks"
Seconds = Annotated[float, Field(ge=0.0)]


class DrafterTable(BaseModel):
    """Seconds of the drafter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    call_s: Seconds
    level_s: Seconds
    draft_s: Seconds


class ClockTable(BaseModel):
    """Seconds of everything that a simulated clock counts; host time is not among it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    source: Literal["modelled", "measured"]
    note: str
    positions: tuple[float, ...] = Field(min_length=2)
    seconds: tuple[Seconds, ...]
    pair_s: Seconds
    row_s: Seconds
    drafter: DrafterTable

    @model_validator(mode="after")
    def _fits(self) -> "ClockTable":
        if len(self.positions) != len(self.seconds) or list(self.positions) != sorted(
            set(self.positions)
        ):
            raise ValueError("positions must ascend and have one entry of seconds each")
        return self

    def forward_cost(self) -> ForwardCost:
        """The forward's part."""
        return ForwardCost(
            positions=np.array(self.positions),
            seconds=np.array(self.seconds),
            pair_s=self.pair_s,
            row_s=self.row_s,
        )


def clock_names() -> list[str]:
    """Tables that come with the benchmark."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def read_clock(name: str) -> ClockTable:
    """A table by its name, or any file.

    Raises:
        DocumentError: there is no such table, or it is not of this format.
    """
    path = FOLDER / f"{name}.json" if name in clock_names() else Path(name)
    if not path.is_file():
        known = ", ".join(clock_names())
        raise DocumentError(f"there is no clock {name}: name a file or one of {known}")
    try:
        return ClockTable.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DocumentError(f"{path} is not a cost table ({where}: {first['msg']})") from None
