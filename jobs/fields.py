"""The names of a job file's settings, and the one a mistyped name was meant to be."""

import difflib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from manifests.job import JobSpec


def _walk(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}", field
        if group := group_of(field):
            yield from _walk(group, f"{prefix}{name}.")


def group_of(field: FieldInfo) -> type[BaseModel] | None:
    """The group that `field` holds, or None when it is a setting."""
    kind: Any = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


@cache
def all_fields() -> dict[str, FieldInfo]:
    """Every group and setting by its dotted name."""
    return dict(_walk(JobSpec, ""))


def nearest_name(name: str, known: Iterable[str]) -> str:
    """A question about the one of `known` that `name` was meant to be, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""


def unknown_key(name: str) -> str:
    """One sentence about the dotted `name` that no setting has, with the nearest one."""
    known = list(all_fields())
    group, _, last = name.rpartition(".")
    siblings = {key.rpartition(".")[2]: key for key in known if key.rpartition(".")[0] == group}
    near = [siblings[match] for match in difflib.get_close_matches(last, siblings, n=1)]
    same = [key for key in known if key.rpartition(".")[2] == last]
    near = near or sorted(same, key=lambda key: key.count("."))[:1]
    near = near or difflib.get_close_matches(name, known, n=1)
    if near:
        return f"unknown key `{name}`; did you mean `{near[0]}`?"
    return f"unknown key `{name}`; known here: {', '.join(siblings) or 'nothing'}"
