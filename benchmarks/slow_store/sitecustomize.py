"""Python runs this when a worker starts: its local stores wait before every call."""

import importlib.abc
import importlib.machinery
import os
import sys
import time

DELAY_S = float(os.environ["STORE_DELAY_S"])
CALLS = ("put_if_absent", "put_file_if_absent", "put_advisory", "get", "list", "open_local")


def delayed(method):
    def call(*arguments):
        time.sleep(DELAY_S)
        return method(*arguments)

    return call


class Finder(importlib.abc.MetaPathFinder):
    """Changes the module of the local store when it has been executed."""

    def find_spec(self, name, path, target=None):
        if name != "manifests.store.local":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            for call in CALLS:
                setattr(module.LocalStore, call, delayed(getattr(module.LocalStore, call)))

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
