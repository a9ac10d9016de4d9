"""The documents' links hold, and they say what the sources say."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, ROOT, links
from tests.test_imports import PACKAGES


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_into_the_repository_hold(path: Path) -> None:
    assert [link for link in links(path.read_text()) if not (path.parent / link).exists()] == []


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages - set(links(index)) == set()


def test_a_link_is_found_without_its_fragment() -> None:
    assert links("[a](b.md#c) and [d](https://example.org/e)") == ["b.md"]


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_the_architecture_has_one_sentence_for_each_package(package: str) -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(rf"^\| `{package}/` \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == 1
    assert re.fullmatch(r"[^.]+\.", rows[0].replace("spotbatch.py", ""))


@pytest.mark.parametrize("title", ["The life of a job", "The life of a sample"])
def test_the_architecture_tells_a_life_in_numbered_steps(title: str) -> None:
    section = (
        (ROOT / "docs/architecture.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    )
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 4


def test_the_contributing_guide_lists_every_marker() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(marker.partition(":")[0] for marker in options["markers"])


def test_the_changelog_has_an_unreleased_section() -> None:
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_licence_is_the_one_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "LICENSE").read_text()
    assert project["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
