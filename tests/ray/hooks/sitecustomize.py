"""Python runs this at the start of every process that finds it on its path; workers do in tests.

It lets a test make the worker misbehave, through files in the folder that `HOOKS_FOLDER` names:

- `poison-ROWID` holds what happens when that row is decoded: raise, exit, hang or memory;
- `slow` holds seconds that every row takes;
- `store-delay` holds seconds that every call of the store takes;
- while `hold-commits` is there, commit records wait; the worker's process id is in `held-commits`.

It changes modules when they are imported, and imports none itself.
"""

import importlib.abc
import importlib.machinery
import os
import resource
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(os.environ["HOOKS_FOLDER"])
ROOM_BYTES = 256 * 1024 * 1024


def setting(name: str) -> float:
    path = FOLDER / name
    return float(path.read_text()) if path.exists() else 0.0


def use_up_memory() -> None:
    """As a row may whose worker has a limit: set here, since only this row is to meet it."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, hard))
    try:
        bytearray(16 * ROOM_BYTES)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def misbehave(row_id: str) -> None:
    poison = FOLDER / f"poison-{row_id}"
    kind = poison.read_text() if poison.exists() else ""
    if kind == "raise":
        raise ValueError("poison on purpose")
    if kind == "exit":
        os._exit(3)
    while kind == "hang":
        time.sleep(0.1)
    if kind == "memory":
        use_up_memory()


def change_work(module: Any) -> None:
    check = module.raise_staged_error

    def checked(staged: Any) -> None:
        check(staged)
        time.sleep(setting("slow"))
        misbehave(staged.id)

    module.raise_staged_error = checked


def change_store(module: Any) -> None:
    names = ("put_if_absent", "put_file_if_absent", "get", "list", "open_local", "delete")
    for name in names:
        setattr(module.LocalStore, name, delayed(getattr(module.LocalStore, name)))


def delayed(method: Any) -> Any:
    def call(self: Any, key: str, *arguments: Any) -> Any:
        if method.__name__ == "put_if_absent" and key.startswith("commits/"):
            hold = FOLDER / "hold-commits"
            if hold.exists():
                (FOLDER / "held-commits").write_text(str(os.getpid()))
            while hold.exists():
                time.sleep(0.02)
        time.sleep(setting("store-delay"))
        return method(self, key, *arguments)

    return call


CHANGES = {"workers.work": change_work, "manifests.store.local": change_store}


class Finder(importlib.abc.MetaPathFinder):
    """Changes a module when it has been executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            CHANGES[name](module)

        loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
