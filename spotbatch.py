"""spotbatch: offline batch generation for diffusion language models. The public face.

The five packages behind it have plain names (`jobs`, `workers`, ...), so a directory of the same
name on the import path could stand in for one of them. That is checked before any is imported: the
command says so in one sentence and exits with 2, the Python API raises `ImportError`.

The Python API is `jobs.api`; its names are loaded when they are first used.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.api import *  # noqa: F403

PACKAGES = ("jobs", "workers", "spot", "schedulers", "manifests")
_HOME = Path(__file__).resolve().parent


def foreign_package() -> str | None:
    """One sentence about the first package that would not come from this installation, or None."""
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None:
            return f"the package `{name}` of spotbatch is missing in {_HOME}; install it again"
        origin = Path(spec.origin or next(iter(spec.submodule_search_locations or ["?"])))
        folder = origin.resolve().parent if spec.origin else origin.resolve()
        if folder != _HOME / name or spec.origin is None:
            return (
                f"`{name}` would be imported from {folder} and not from the spotbatch installation "
                f"in {_HOME}; take the directory above it off the import path (PYTHONPATH)"
            )
    return None


def main() -> None:
    """The `spotbatch` command."""
    problem = foreign_package()
    if problem is not None:
        print(f"Error: {problem}", file=sys.stderr)
        sys.exit(2)
    from jobs.cli.group import cli

    cli(prog_name="spotbatch")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    problem = foreign_package()
    if problem is not None:
        raise ImportError(problem)
    api = importlib.import_module("jobs.api")
    if name not in api.__all__:
        raise AttributeError(f"module 'spotbatch' has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    return [*importlib.import_module("jobs.api").__all__, "foreign_package", "main"]


if __name__ == "__main__":
    main()
