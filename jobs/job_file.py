"""Reading a job file, the environment and `--set` overrides into one validated `JobSpec`.

An override wins over the environment, that over the file, and that over the defaults.

Every complaint is one sentence that names the file or the option, the field and the remedy.
Relative paths are relative to the current directory; `load_job` makes them absolute.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from jobs.fields import all_fields, group_of, unknown_key
from jobs.inputs.template import parse_template
from jobs.yaml_core import parse_yaml, problem
from manifests.errors import JobFileError
from manifests.job import JobSpec
from manifests.job_input import Input

# Settings in the environment; two underscores stand for the dot.
_VARIABLE = "SPOTBATCH__"


def load_job(
    path: Path, overrides: Sequence[str] = (), *, environment: Mapping[str, str] | None = None
) -> JobSpec:
    """The job that `path` describes; paths in it become absolute.

    Args:
        path: the job file.
        overrides: settings as `a.b=value`; the last one wins.
        environment: variables, of which those named `SPOTBATCH__A__B` are settings `a.b`.

    Raises:
        JobFileError: a setting is unknown, wrong, or does not go together with another.
    """
    return job_from_values(_read(path), overrides, source=str(path), environment=environment or {})


def job_from_values(
    values: dict[str, Any],
    overrides: Sequence[str] = (),
    *,
    source: str,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> JobSpec:
    """The job in the nested mapping `values`, which is changed; `source` is for messages.

    Raises `JobFileError`.
    """
    _refuse_unknown(values, source=source)
    for name, text in sorted(environment.items()):
        if name.startswith(_VARIABLE):
            key = name.removeprefix(_VARIABLE).replace("__", ".").lower()
            _set(values, key, text=text, source=f"environment {name}={text}")
    for override in overrides:
        _apply(values, override)
    job = _validate(values, source=source)
    _parse_expressions(job)
    return _absolute(job)


def override_job(job: JobSpec, overrides: Sequence[str]) -> JobSpec:
    """A planned job after `overrides`, as `load_job` applies them; raises `JobFileError`."""
    values = job.model_dump(mode="json")
    for override in overrides:
        _apply(values, override)
    return _absolute(_validate(values, source="--set"))


def _parse_expressions(job: JobSpec) -> None:
    """Raise `JobFileError` now where a template or a filter could not be read later."""
    if job.prompt.template is not None:
        parse_template(job.prompt.template)
    if job.input.filter is not None:
        from jobs.inputs.filter import parse_filter  # pyarrow, where it is needed

        parse_filter(job.input.filter)


def _read(path: Path) -> dict[str, Any]:
    try:
        values = parse_yaml(path.read_text("utf-8"))
    except FileNotFoundError:
        raise JobFileError(f"{path}: there is no such job file") from None
    except IsADirectoryError:
        raise JobFileError(f"{path} is a directory; name the job file in it") from None
    except UnicodeDecodeError:
        raise JobFileError(
            f"{path}: a job file is UTF-8 text, and this is not; save it so"
        ) from None
    except yaml.YAMLError as error:
        raise JobFileError(f"{path}: {problem(error)}") from None
    if not isinstance(values, dict):
        raise JobFileError(f"{path}: a job file is a mapping with the groups input, target, output")
    return values


def _refuse_unknown(values: dict[str, Any], *, source: str, prefix: str = "") -> None:
    for key, value in values.items():
        if "." in key:
            raise JobFileError(f"{source}: write `{key}` as nested groups, without the dot")
        field = all_fields().get(f"{prefix}{key}")
        if field is None:
            raise JobFileError(f"{source}: {unknown_key(f'{prefix}{key}')}")
        if group_of(field) and isinstance(value, dict):
            _refuse_unknown(value, source=source, prefix=f"{prefix}{key}.")


def _apply(values: dict[str, Any], override: str) -> None:
    name, equals, text = override.partition("=")
    if not equals or not name.strip():
        raise JobFileError(f"--set {override}: write it as name=value, as in decode.max_tokens=64")
    _set(values, name.strip(), text=text, source=f"--set {override}")


def _set(values: dict[str, Any], name: str, *, text: str, source: str) -> None:
    """Set the dotted `name` in place."""
    field = all_fields().get(name)
    if field is None:
        raise JobFileError(f"{source}: {unknown_key(name)}")
    if group_of(field):
        raise JobFileError(f"{source}: `{name}` is a group; set one of the keys in it")
    *groups, last = name.split(".")
    for group in groups:
        if not isinstance(values.get(group), dict):
            values[group] = {}
        values = values[group]
    values[last] = _typed(field, name=name, text=text, source=source)


def _typed(field: FieldInfo, *, name: str, text: str, source: str) -> Any:
    """`text` as YAML where the field takes that, else as it stands where the field takes text."""
    annotation: Any = field.annotation
    adapter = TypeAdapter[Any](annotation, config=ConfigDict(strict=True))
    try:
        value = parse_yaml(text)
        adapter.validate_json(json.dumps(value))
    except (yaml.YAMLError, ValidationError) as error:
        try:
            return adapter.validate_python(text)
        except ValidationError:
            reason = problem(error) if isinstance(error, yaml.YAMLError) else _reasons(error)
            raise JobFileError(f"{source}: {reason}; {_expected(name)}") from None
    return value


def _expected(name: str) -> str:
    field = all_fields()[name]
    group = group_of(field)
    return f"`{name}` is: {field.description or (group.__doc__ if group else None)}"


def _reasons(error: ValidationError) -> str:
    reasons = dict.fromkeys(details["msg"] for details in error.errors())
    return " or ".join(reason[0].lower() + reason[1:] for reason in reasons)


def _validate(values: dict[str, Any], *, source: str) -> JobSpec:
    # Through JSON, since pydantic's strict mode takes a list for a tuple only there.
    try:
        return JobSpec.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise JobFileError(f"{source}: {_sentence(error)}") from None


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong."""
    details = error.errors()[0]
    name = _field_of(details)
    if details["type"] == "value_error":
        return details["msg"].removeprefix("Value error, ")
    if details["type"] == "missing":
        return f"`{name}` is missing; {_expected(name)}"
    same = [other for other in error.errors() if _field_of(other) == name]
    reasons = " or ".join(other["msg"][0].lower() + other["msg"][1:] for other in same)
    return f"`{name}`: {reasons}, not {json.dumps(details['input'])[:60]}; {_expected(name)}"


def _field_of(details: ErrorDetails) -> str:
    # Members of a union and indices end a location; the field is its longest known prefix.
    parts = [str(part) for part in details["loc"]]
    while parts and ".".join(parts) not in all_fields():
        parts.pop()
    return ".".join(parts)


def _absolute(job: JobSpec) -> JobSpec:
    drafter = job.drafter.path
    return job.model_copy(
        update={
            "input": job.input.model_copy(update={"uri": _absolute_input(job.input)}),
            "target": job.target.model_copy(update={"path": absolute(job.target.path)}),
            "drafter": job.drafter.model_copy(
                update={"path": None if drafter is None else absolute(drafter)}
            ),
            "output": job.output.model_copy(update={"uri": absolute(job.output.uri)}),
        }
    )


def _absolute_input(source: Input) -> str | tuple[str, ...]:
    if isinstance(source.uri, str):
        return absolute(source.uri)
    return tuple(map(absolute, source.uri))


def absolute(uri: str) -> str:
    """`uri` as an absolute local path; a URI with a scheme other than file:// stays as it is."""
    uri = uri.removeprefix("file://")
    return uri if "://" in uri else str(Path(uri).expanduser().absolute())
