"""Which row an id came with first: 64-bit hashes in memory, the ids themselves in a local file.

24 to 48 bytes of memory per row. A hash that is met again is confirmed by the id in the
file, so that two ids with one hash are not taken for each other.
"""

import hashlib
import struct
import tempfile
from array import array
from types import TracebackType

_EMPTY = 0
_RECORD = struct.Struct("<qI")  # row, bytes of the id that follows


class IdIndex:
    """A hash table with open addressing; `first_row` looks up and enters in one."""

    def __init__(self, *, slots: int = 1 << 12) -> None:
        """`slots` is a power of two."""
        self._hashes = array("Q", bytes(8 * slots))
        self._places = array("Q", bytes(8 * slots))
        self._count = 0
        self._end = 0
        self._file = tempfile.TemporaryFile(prefix="spotbatch-ids-")  # noqa: SIM115 - __exit__ closes it

    def __enter__(self) -> "IdIndex":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def first_row(self, row_id: str, row: int) -> int:
        """The row that came with this id first, which is `row` if none did."""
        data = row_id.encode()
        code = self._hash(data)
        slot = self._slot(code)
        while self._hashes[slot] != _EMPTY:
            if self._hashes[slot] == code:
                first, known = self._read(self._places[slot])
                if known == data:
                    return first
            slot = (slot + 1) & (len(self._hashes) - 1)
        self._hashes[slot], self._places[slot] = code, self._append(row, data)
        self._count += 1
        if 3 * self._count > 2 * len(self._hashes):
            self._grow()
        return row

    def _hash(self, data: bytes) -> int:
        return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") or 1

    def _slot(self, code: int) -> int:
        return code & (len(self._hashes) - 1)

    def _append(self, row: int, data: bytes) -> int:
        place = self._end
        self._file.write(_RECORD.pack(row, len(data)) + data)
        self._end += _RECORD.size + len(data)
        return place

    def _read(self, place: int) -> tuple[int, bytes]:
        self._file.seek(place)
        row, size = _RECORD.unpack(self._file.read(_RECORD.size))
        data = self._file.read(size)
        self._file.seek(self._end)
        return row, data

    def _grow(self) -> None:
        hashes, places = self._hashes, self._places
        self._hashes = array("Q", bytes(16 * len(hashes)))
        self._places = array("Q", bytes(16 * len(hashes)))
        last = len(self._hashes) - 1
        for code, place in zip(hashes, places, strict=True):
            if code != _EMPTY:
                slot = code & last
                while self._hashes[slot] != _EMPTY:
                    slot = (slot + 1) & last
                self._hashes[slot], self._places[slot] = code, place
