"""What the first rank tells the others: an operation and arrays of whole numbers, over a pipe."""

import json
from typing import BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spot.targets.base import Canvas, CanvasUnit, Unit

Ints = NDArray[np.int64]
Operation = Literal["pages", "hidden", "open", "states", "logits", "free", "stop"]


class Message(NamedTuple):
    """One operation that all ranks carry out together."""

    operation: Operation
    arrays: tuple[Ints, ...]


def send(stream: BinaryIO, message: Message) -> None:
    """Write a message: one line that says what follows, then the arrays' bytes."""
    shapes = [list(array.shape) for array in message.arrays]
    header = json.dumps({"operation": message.operation, "shapes": shapes})
    stream.write(header.encode() + b"\n")
    for array in message.arrays:
        stream.write(np.ascontiguousarray(array, np.int64).tobytes())
    stream.flush()


def receive(stream: BinaryIO) -> Message | None:
    """Read a message; None when the writer is gone."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    header = json.loads(line)
    arrays = []
    for shape in header["shapes"]:
        num_bytes = 8 * int(np.prod(shape, dtype=np.int64))
        data = stream.read(num_bytes)
        if len(data) != num_bytes:
            return None
        arrays.append(np.frombuffer(data, np.int64).reshape(shape).copy())
    return Message(header["operation"], tuple(arrays))


def pack_units(units: list[Unit]) -> tuple[Ints, ...]:
    """Units as states [U, L], (start, write, table length) [U, 3] and all tables one by one."""
    states = np.stack([unit.state for unit in units])
    rows = np.array([[u.start, u.write, len(u.pages)] for u in units], np.int64)
    tables = np.array([page for u in units for page in u.pages], np.int64)
    return states, rows, tables


def unpack_units(states: Ints, rows: Ints, tables: Ints) -> list[Unit]:
    """The units that ``pack_units`` was given."""
    units, first = [], 0
    for state, (start, write, num) in zip(states, rows.tolist(), strict=True):
        pages = tuple(tables[first : first + num].tolist())
        units.append(Unit(state=state, start=start, pages=pages, write=write))
        first += num
    return units


def pack_canvases(canvases: list[Canvas]) -> tuple[Ints, ...]:
    """Canvases as (start, length) [C, 2] and all tokens one behind the other."""
    rows = np.array([[canvas.start, len(canvas.tokens)] for canvas in canvases], np.int64)
    return rows, np.concatenate([canvas.tokens for canvas in canvases])


def unpack_canvases(rows: Ints, tokens: Ints) -> list[Canvas]:
    """The canvases that ``pack_canvases`` was given."""
    parts = np.split(tokens, np.cumsum(rows[:-1, 1]))
    return [Canvas(part, start) for part, start in zip(parts, rows[:, 0].tolist(), strict=True)]


def pack_states(units: list[CanvasUnit]) -> Ints:
    """The states of units, [U, L]; what was frozen for them goes by numbers."""
    return np.stack([unit.state for unit in units])
