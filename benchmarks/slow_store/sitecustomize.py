"""Python runs this when a worker starts: its local stores wait before every call."""

import importlib.abc
import importlib.machinery
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

DELAY_S = float(os.environ["STORE_DELAY_S"])
CALLS = ("put_if_absent", "put_file_if_absent", "put_advisory", "get", "list", "open_local")


def delayed(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same call after a pause."""

    def call(*arguments: object) -> Any:
        time.sleep(DELAY_S)
        return method(*arguments)

    return call


class Finder(importlib.abc.MetaPathFinder):
    """Changes the module of the local store when it has been executed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The spec of the one module that is changed."""
        if name != "manifests.store.local":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            for call in CALLS:
                store = module.LocalStore
                setattr(store, call, delayed(getattr(store, call)))

        vars(spec.loader)["exec_module"] = exec_module
        return spec


sys.meta_path.insert(0, Finder())
