"""`input.filter`: a simple expression over columns, evaluated by pyarrow compute.

The grammar is a small part of Python's: columns by name, literals, comparisons, `in`, `and`, `or`,
`not`, `+ - * /`, and the functions below. Nothing is ever executed: the parsed text is translated,
node by node. Null compares to nothing, so a row with a null where a value is asked for is dropped.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.inputs.base import RawRow, Trouble
from jobs.inputs.opening import reason
from manifests.errors import InputError, JobFileError

BATCH_ROWS = 512
_ROW = "\0row"  # no column of an input is called so

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMBINE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_OF_COLUMN: dict[str, Callable[[Any], Any]] = {
    "length": pc.utf8_length,
    "lower": pc.utf8_lower,
    "is_null": lambda value: value.is_null(),
    "number": lambda value: value.cast(pa.float64()),
}
_OF_COLUMN_AND_TEXT: dict[str, Callable[[Any, str], Any]] = {
    "contains": pc.match_substring,
    "starts_with": pc.starts_with,
    "ends_with": pc.ends_with,
    "matches": pc.match_substring_regex,
}
FUNCTIONS = (*_OF_COLUMN, *_OF_COLUMN_AND_TEXT, "column")


@dataclass(slots=True, kw_only=True)
class Filter:
    """A parsed expression, and how many rows it has dropped."""

    text: str
    expression: Any
    columns: frozenset[str]
    num_dropped: int = field(default=0)

    def keep(self, rows: Iterable[RawRow]) -> Iterator[RawRow]:
        """The rows for which the expression is true; rows in trouble pass, to be reported."""
        iterator = iter(rows)
        while batch := list(islice(iterator, BATCH_ROWS)):
            kept = self._kept(batch)
            self.num_dropped += len(batch) - len(kept)
            yield from (batch[index] for index in kept)

    def _kept(self, batch: list[RawRow]) -> list[int]:
        good = [i for i, raw in enumerate(batch) if not isinstance(raw.values, Trouble)]
        troubled = [i for i, raw in enumerate(batch) if isinstance(raw.values, Trouble)]
        try:
            table = pa.table(
                {**self._arrays([batch[i] for i in good]), _ROW: pa.array(good, pa.int64())}
            )
            chosen = table.filter(self.expression)[_ROW].to_pylist()
        except pa.ArrowException as error:
            raise InputError(
                f"input.filter: it cannot be evaluated from {batch[0].place} on: {reason(error)}; "
                "compare text with quoted text, and turn text into numbers with number(column)"
            ) from None
        return sorted([*chosen, *troubled])

    def _arrays(self, rows: list[RawRow]) -> dict[str, pa.Array]:
        values = [raw.values for raw in rows if not isinstance(raw.values, Trouble)]
        return {name: pa.array([value.get(name) for value in values]) for name in self.columns}


def parse_filter(text: str) -> Filter:
    """The filter that `text` spells; `JobFileError` where it is not one."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = error.msg if isinstance(error, SyntaxError) else error
        raise JobFileError(f"input.filter `{text}`: it is no expression: {what}") from None
    translator = _Translator(text)
    try:
        expression = translator.condition(tree.body)
    except (pa.ArrowException, RecursionError, TypeError) as error:
        raise JobFileError(f"input.filter `{text}`: {reason(error)}") from None
    if not translator.columns:
        raise JobFileError(f"input.filter `{text}`: it names no column, so it is the same for all")
    return Filter(text=text, expression=expression, columns=frozenset(translator.columns))


class _Translator:
    """From Python's syntax tree to an expression of pyarrow, noting the columns on the way."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.columns: set[str] = set()

    def condition(self, node: ast.expr) -> Any:
        """What is true or false."""
        if isinstance(node, ast.BoolOp):
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            first, *others = [self.condition(value) for value in node.values]
            for other in others:
                first = join(first, other)
            return first
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.condition(node.operand)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Name | ast.Call):
            return self._value(node)
        raise self._refused(node)

    def _comparison(self, node: ast.Compare) -> Any:
        sides = [node.left, *node.comparators]
        parts = [
            self._compared(left, kind, right)
            for left, kind, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        return whole

    def _compared(self, left: ast.expr, kind: ast.cmpop, right: ast.expr) -> Any:
        if isinstance(kind, ast.In | ast.NotIn):
            inside = self._value(left).isin(self._literals(right))
            return inside if isinstance(kind, ast.In) else ~inside
        compare = _COMPARE.get(type(kind))
        if compare is None:
            raise self._refused(right)
        if any(isinstance(s, ast.Constant) and s.value is None for s in (left, right)):
            raise JobFileError(
                f"input.filter `{self._text}`: nothing equals null; write is_null(column)"
            )
        return compare(self._value(left), self._value(right))

    def _literals(self, node: ast.expr) -> list[Any]:
        if not isinstance(node, ast.List | ast.Tuple) or not all(
            isinstance(item, ast.Constant) for item in node.elts
        ):
            raise JobFileError(
                f"input.filter `{self._text}`: behind `in` stands a list of values, as in "
                "['a', 'b']"
            )
        return [item.value for item in node.elts if isinstance(item, ast.Constant)]

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self._column(node.id)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            return pc.scalar(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return pc.scalar(0) - self._value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _COMBINE:
            return _COMBINE[type(node.op)](self._value(node.left), self._value(node.right))
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._refused(node)

    def _call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        constants = [a.value for a in node.args if isinstance(a, ast.Constant)]
        texts = [value for value in constants if isinstance(value, str)]
        if node.keywords or name not in FUNCTIONS:
            raise self._refused(node)
        if name == "column" and len(node.args) == len(texts) == 1:
            return self._column(texts[0])
        if name in _OF_COLUMN and len(node.args) == 1:
            return _OF_COLUMN[name](self._value(node.args[0]))
        if name in _OF_COLUMN_AND_TEXT and len(node.args) == 2 and len(texts) == 1:
            return _OF_COLUMN_AND_TEXT[name](self._value(node.args[0]), texts[0])
        raise self._refused(node)

    def _column(self, name: str) -> Any:
        self.columns.add(name)
        return pc.field(name)

    def _refused(self, node: ast.expr) -> JobFileError:
        return JobFileError(
            f"input.filter `{self._text}`: `{ast.unparse(node)}` cannot be used here; there are "
            f"columns, values, comparisons, in, and, or, not, and the functions "
            f"{', '.join(FUNCTIONS)}"
        )
