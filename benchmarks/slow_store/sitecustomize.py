"""Python runs this when a worker starts: its local stores wait before every call."""

import importlib.abc
import importlib.machinery
import os
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

DELAY_S = float(os.environ["STORE_DELAY_S"])
CALLS = ("put_if_absent", "put_file_if_absent", "put_advisory", "get", "list", "open_local")


def delayed(method: Any) -> Any:
    def call(*arguments: Any) -> Any:
        time.sleep(DELAY_S)
        return method(*arguments)

    return call


class Finder(importlib.abc.MetaPathFinder):
    """Changes the module of the local store when it has been executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "manifests.store.local":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        loader: Any = spec.loader if spec else None
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            for call in CALLS:
                setattr(module.LocalStore, call, delayed(getattr(module.LocalStore, call)))

        loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
