"""Processes that are killed at a step: a request to the store, or one call to the system."""

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal
from unittest.mock import patch

from manifests.store import Store
from manifests.store import local as local_store

When = Literal["before", "after"]


class Killer:
    """Notes steps as they come, and kills the process at the one asked for."""

    def __init__(self, *, at: int | None = None) -> None:
        self.steps: list[str] = []
        self._at = at

    def __call__(self, step: str) -> None:
        """The step is about to be made."""
        if len(self.steps) == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.steps.append(step)

    @property
    def is_due(self) -> bool:
        """Whether the next step is the last one."""
        return len(self.steps) == self._at


class MortalStore:
    """Passes everything on; requests that change storage are steps, before and after."""

    def __init__(self, inner: Store, killer: Killer, *, when: tuple[When, ...]) -> None:
        self._inner = inner
        self._killer = killer
        self._when = when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """A step."""
        self._step(key, lambda: self._inner.put_if_absent(key, data))

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """A step, but for the plan's input, which is there before the job is."""
        put = partial(self._inner.put_file_if_absent, key, path)
        if key.startswith("input/part-r0000-"):
            put()
        else:
            self._step(key, put)

    def delete(self, key: str) -> None:
        """A step."""
        self._step(key, lambda: self._inner.delete(key))

    def _step(self, key: str, request: Callable[[], None]) -> None:
        if "before" in self._when:
            self._killer(f"before {key}")
        request()
        if "after" in self._when:
            self._killer(f"after {key}")


@contextmanager
def mortal_system(killer: Killer) -> Iterator[None]:
    """Inside, the calls by which the local store publishes are steps."""
    write, link, unlink, fsync = local_store._write_temporary, os.link, os.unlink, os.fsync

    def write_temporary(target: Path, fill: Callable[[IO[bytes]], object]) -> Path:
        killer(f"open {_folder(target)}")

        def fill_half(file: IO[bytes]) -> None:
            fill(file)
            if killer.is_due:
                file.flush()
                os.ftruncate(file.fileno(), file.tell() // 2)
            killer(f"write {_folder(target)}")

        return write(target, fill_half)

    def step(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any, **options: Any) -> Any:
            killer(name)
            return call(*arguments, **options)

        return stepping

    with (
        patch.object(local_store, "_write_temporary", write_temporary),
        patch.object(os, "link", step("link", link)),
        patch.object(os, "unlink", step("unlink", unlink)),
        patch.object(os, "fsync", step("fsync", fsync)),
    ):
        yield


def _folder(target: Path) -> str:
    return "plan" if target.name == "plan.json" else target.parent.name


def killed(action: Callable[[], object]) -> bool:
    """Run the action in a process of its own; whether it was killed, else it has ended well."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException:  # never return into pytest
            traceback.print_exc()
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the child ended with {status}; see its output"
    return status != 0
