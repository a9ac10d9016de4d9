"""Reading YAML the way a job file's author means it.

PyYAML follows YAML 1.1, in which `1e-3` is text, `12:30` is a number and `no` is false, and in
which a key written twice silently keeps the last value. This loader is the safe loader with the
plain scalars of YAML 1.2's core schema, and a repeated key is an error.
"""

import math
import re
from collections.abc import Hashable
from typing import Any

import yaml

_REMEDY = "correct the YAML there: indent with spaces, close brackets and quotes"
_SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.nan",
        list("-+.0123456789"),
    ),
}


class CoreLoader(yaml.SafeLoader):
    """The safe loader with core-schema scalars and unique keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse a key that is written twice, and keys that are not text."""
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key!r} is not text; quote it", problem_mark=node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key `{key}` is written twice; keep one of them",
                    problem_mark=key_node.start_mark,
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node)).lower().replace(".inf", "inf").replace(".nan", "nan")
    value = float(text)
    if not math.isfinite(value):
        raise yaml.constructor.ConstructorError(
            problem=f"{node.value} is not a finite number; write one", problem_mark=node.start_mark
        )
    return value


def _unknown(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    raise yaml.constructor.ConstructorError(
        problem=f"the tag {node.tag} has no meaning here; write a plain value",
        problem_mark=node.start_mark,
    )


for _name, (_pattern, _first) in _SCALARS.items():
    CoreLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(rf"^(?:{_pattern})$"), _first
    )
CoreLoader.add_constructor("tag:yaml.org,2002:int", _integer)
CoreLoader.add_constructor("tag:yaml.org,2002:float", _float)
CoreLoader.add_constructor(None, _unknown)


def parse_yaml(text: str) -> Any:
    """The value that `text` holds; `yaml.YAMLError` when it is not YAML."""
    return yaml.load(text, Loader=CoreLoader)  # noqa: S506 - a SafeLoader subclass


def problem(error: yaml.YAMLError) -> str:
    """`error` as one line: what is wrong, and on which line."""
    mark = getattr(error, "problem_mark", None)
    where = "" if mark is None else f"line {mark.line + 1}: "
    told = f"{where}{getattr(error, 'problem', None) or str(error).splitlines()[0]}"
    is_syntax = isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError)
    return f"{told}; {_REMEDY}" if is_syntax else told
