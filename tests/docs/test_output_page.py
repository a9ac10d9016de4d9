"""The page about the output has the format's columns and metadata, and nothing else."""

import re

import pyarrow as pa

from manifests import columns
from manifests.columns import output_schema
from tests.docs.documents import page

PAGE = page("output.md")
COLUMN = re.compile(r"^\| `(\w+)` \| ([\w ]+) \| (yes|no) \|", re.MULTILINE)


def told(field: pa.Field) -> tuple[str, str, str]:
    """A column as the page writes it."""
    kind = field.type
    text = f"list of {kind.value_type}" if pa.types.is_list(kind) else str(kind)
    return field.name, text, "yes" if field.nullable else "no"


def test_the_columns_are_those_of_the_files_in_their_order() -> None:
    assert COLUMN.findall(PAGE) == [told(field) for field in output_schema("commits")]


def test_the_columns_of_token_traces_come_first() -> None:
    names = [name for name, _, _ in COLUMN.findall(PAGE)]
    assert names[: len(output_schema("tokens"))] == output_schema("tokens").names


def test_the_metadata_keys_are_those_of_the_files() -> None:
    keys = {value for name, value in vars(columns).items() if name.startswith("METADATA_")}
    section = PAGE.partition("## What a file says about itself")[2]
    assert set(re.findall(r"`(spotbatch\.\w+)`", section)) == keys
