"""The import direction between the packages, read from the source of every module.

Any import counts, wherever it stands: at the top, inside a function, under ``TYPE_CHECKING``, or
through ``importlib.import_module`` and ``__import__`` with a literal name.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = frozenset({"manifests", "schedulers", "spot", "workers", "jobs"})
OURS = PACKAGES | {"spotbatch", "tests", "examples", "benchmarks"}
# transformers imports torch.
TORCH = frozenset({"torch", "transformers"})
CLOCKS = frozenset({"time", "datetime", "sched"})
INPUT_OUTPUT = frozenset(
    {"os", "io", "pathlib", "shutil", "tempfile", "socket", "subprocess", "threading", "asyncio"}
    | {"multiprocessing", "signal", "pyarrow", "fsspec", "s3fs", "botocore"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a package may import of ours, and what it must never import or call."""

    may: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    never_calls: frozenset[str] = frozenset()


RULES = {
    "manifests": Rule(never=TORCH | {"ray"}),
    "schedulers": Rule(
        may=frozenset({"manifests"}),
        never=TORCH | CLOCKS | INPUT_OUTPUT | {"ray"},
        never_calls=frozenset({"open", "print", "input"}),
    ),
    "spot": Rule(never=frozenset({"ray"})),
    "workers": Rule(may=frozenset({"spot", "manifests"})),
    "jobs": Rule(may=PACKAGES),
    "spotbatch": Rule(may=frozenset({"jobs"})),
}


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and top-level name of every absolute import; relative ones stay in their package."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Call) and (name := _dynamic(node)):
            found.append((node.lineno, name))
    return [(line, name.partition(".")[0]) for line, name in found]


def _dynamic(call: ast.Call) -> str | None:
    if _called(call) not in ("import_module", "__import__") or not call.args:
        return None
    name = call.args[0]
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def violations(source: str, *, package: str) -> list[str]:
    """One line for each import or call that a module of the package must not contain."""
    rule, tree = RULES[package], ast.parse(source)
    found = []
    for line, name in imported(tree):
        foreign = name in OURS and name != package and name not in rule.may
        if foreign or name in rule.never:
            found.append(f"line {line}: {package} must not import {name}")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id in rule.never_calls:
            found.append(f"line {call.lineno}: {package} must not call {call.func.id}")
    return found


def modules() -> list[tuple[str, Path]]:
    """Package and path of every module of the product."""
    inside = [(name, path) for name in sorted(PACKAGES) for path in (ROOT / name).rglob("*.py")]
    return [*sorted(inside), ("spotbatch", ROOT / "spotbatch.py")]


@pytest.mark.parametrize(
    ("package", "path"), modules(), ids=lambda value: str(value).removeprefix(f"{ROOT}/")
)
def test_a_module_imports_only_what_its_package_may(package: str, path: Path) -> None:
    assert violations(path.read_text(), package=package) == []


def test_every_package_has_modules_to_check() -> None:
    assert {package for package, _ in modules()} == PACKAGES | {"spotbatch"}


@pytest.mark.parametrize(
    ("package", "source", "name"),
    [
        ("manifests", "import schedulers", "schedulers"),
        ("manifests", "def late():\n    import torch.nn", "torch"),
        ("manifests", "from ray import remote", "ray"),
        ("schedulers", "from time import monotonic", "time"),
        ("schedulers", "from pathlib import Path", "pathlib"),
        ("schedulers", "from workers.engine import Engine", "workers"),
        ("spot", "import manifests.plan as plan", "manifests"),
        ("spot", "import ray", "ray"),
        ("workers", "from jobs import planning", "jobs"),
        ("workers", "if TYPE_CHECKING:\n    from schedulers import machine", "schedulers"),
        ("workers", "importlib.import_module('jobs.cli')", "jobs"),
        ("workers", "__import__('jobs')", "jobs"),
        ("jobs", "from tests.conftest import REPOSITORY", "tests"),
        ("jobs", "import spotbatch", "spotbatch"),
        ("spotbatch", "import workers", "workers"),
    ],
)
def test_a_forbidden_import_is_found(package: str, source: str, name: str) -> None:
    assert any(line.endswith(f"import {name}") for line in violations(source, package=package))


def test_a_forbidden_call_is_found() -> None:
    source = "def read(path):\n    return open(path)"
    assert violations(source, package="schedulers") == ["line 2: schedulers must not call open"]


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("schedulers", "from manifests.errors import ManifestError"),
        ("schedulers", "from .states import State"),
        ("spot", "import torch\nfrom spot.noise import gumbel"),
        ("workers", "import ray\nfrom spot import decoder\nfrom manifests import plan"),
        ("jobs", "import workers, spot, schedulers, manifests, ray"),
        ("spotbatch", "from jobs.cli import main"),
        ("manifests", "import torchlike"),
        ("jobs", "door.open()"),
    ],
)
def test_an_allowed_import_passes(package: str, source: str) -> None:
    assert violations(source, package=package) == []
