"""A file-like view of an object that fetches ranges when they are read."""

import io
import os
from collections.abc import Callable


class RangeReader(io.RawIOBase):
    """Seekable and read-only; every read is one request, so wrap it in a buffer."""

    def __init__(self, fetch: Callable[[int, int], bytes], *, size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The position of the next read (bytes)."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move, with the meanings of `io.IOBase.seek`."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill a buffer from the position on; 0 at the end."""
        end = min(self._size, self._position + len(buffer))
        if end <= self._position:
            return 0
        data = self._fetch(self._position, end)
        buffer[: len(data)] = data
        self._position = end
        return len(data)
