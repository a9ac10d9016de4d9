"""The page about targets names tests that exist, and values that the registry has."""

import ast
import re

import pytest

from spot.targets.families import FAMILIES
from spot.targets.family import Family
from tests.docs.documents import ROOT

PAGE = (ROOT / "docs" / "targets.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_report_has_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| \S.*#\d|\| \S.*`tests/", line)]
    assert len(rows) > 30
    assert all("::test_" in row for row in rows)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_table_has_the_registrys_ids(family: Family) -> None:
    ids = family.vocabulary
    for value in (ids.mask_id, ids.pad_id, *ids.stop_ids):
        assert str(value) in PAGE
