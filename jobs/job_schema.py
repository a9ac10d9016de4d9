"""The job file described: a JSON schema for editors, and the reference page for people.

Both are made from the fields of `manifests.job.JobSpec`, so that they cannot differ from it.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from jobs.fields import all_fields, group_of
from manifests.job import JobSpec

PAGE = "docs/job-file.md"
_COMMAND = "spotbatch schema --markdown > docs/job-file.md"
_INTRODUCTION = f"""<!-- made by `{_COMMAND}`; change the descriptions in manifests/ instead -->

# The job file

A job file is YAML: groups of settings, of which `input`, `target` and `output` are required.

```yaml
input:
  uri: data/*.parquet
  columns: {{id: key}}
prompt:
  template: "Translate into {{language}}:\\n{{text}}"
target: {{path: models/sdar}}
output: {{uri: out/translations}}
```

A setting is taken from the first of these that has it: `--set group.key=value`, the environment
variable `SPOTBATCH__GROUP__KEY`, the job file, the default. Values on the command line and in the
environment are YAML and have the type of the setting. A name that is no setting is an error, and so
is a setting that would have no effect.

A *semantic* setting can change an output: it belongs to the job's fingerprint, and a planned job is
refused where it differs. An *operational* one changes only cost, speed or place, and may differ
from run to run. A *drafting* one is about drafts: operational, but semantic where drafts can change
outputs (`decode.verifier` greedy or rejection, `decode.numerics` fast).

What an input may be, and what templates and filters can say, is told in [inputs.md](inputs.md).
`spotbatch schema` prints this page as a JSON schema, with which editors complete and check job
files.
"""


@cache
def job_schema() -> dict[str, Any]:
    """The JSON schema of a job file; each setting has its `kind`."""
    schema = JobSpec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def reference_page() -> str:
    """Every setting of a job file, as Markdown."""
    parts = [_INTRODUCTION]
    fields = all_fields()
    top = [(name, field) for name, field in fields.items() if "." not in name]
    settings = [name for name, field in top if not group_of(field)]
    parts.append("\n".join(["## At the top", "", *_table(settings)]))
    parts += [_section(name, field) for name, field in top if group_of(field)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _section(name: str, field: FieldInfo) -> str:
    group = group_of(field)
    assert group is not None, "a section is about a group"
    names = [key for key, leaf in all_fields().items() if key.startswith(f"{name}.")]
    leaves = [key for key in names if not group_of(all_fields()[key])]
    return "\n".join([f"## {name}", "", str(group.__doc__), "", *_table(leaves)])


def _table(names: list[str]) -> Iterator[str]:
    yield "| setting | takes | default | kind | meaning |"
    yield "|---|---|---|---|---|"
    for name in names:
        yield f"| {' | '.join(_cells(name, all_fields()[name]))} |"


def _cells(name: str, field: FieldInfo) -> list[str]:
    extra = field.json_schema_extra
    assert isinstance(extra, dict), "every setting says what kind it is"
    default = "required" if field.is_required() else f"`{_shown(field.default)}`"
    meaning = (field.description or "").replace("|", "\\|")
    return [f"`{name}`", _type(name), default, str(extra["kind"]), meaning]


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _type(name: str) -> str:
    """What a setting takes, from its JSON schema."""
    node = job_schema()
    definitions = node["$defs"]
    for part in name.split("."):
        node = _resolved(node, definitions)["properties"][part]
    return _words(node).replace("|", "\\|")


def _resolved(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref") or next((n["$ref"] for n in node.get("allOf", ())), None)
    if reference is None:
        return node
    found: dict[str, Any] = definitions[str(reference).rpartition("/")[2]]
    return found


def _words(node: dict[str, Any]) -> str:
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(_words(option) for option in node["anyOf"]))
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    kind = str(node.get("type", "anything"))
    if kind == "array":
        return f"list of {_words(node.get('items', {}))}"
    if kind == "object":
        return "mapping of names to values"
    return _names[kind] + _bounds(node)


_names = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "anything": "anything",
}


def _bounds(node: dict[str, Any]) -> str:
    signs = (
        ("minimum", ">="),
        ("exclusiveMinimum", ">"),
        ("maximum", "<="),
        ("exclusiveMaximum", "<"),
    )
    said = [f"{sign} {node[key]:g}" for key, sign in signs if key in node and node[key] < 2**53]
    return f" {', '.join(said)}" if said else ""
