"""Charts: marks for what there is, in the box, whatever the values."""

import re
from xml.etree import ElementTree

import pytest

from jobs.report import charts


def rects(svg: str) -> list[dict[str, float]]:
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return [
        {name: float(rect.attrib[name]) for name in ("x", "y", "width", "height")}
        for rect in root.iter("rect")
    ]


def titles(svg: str) -> list[str]:
    return [t.text or "" for t in ElementTree.fromstring(svg).iter("title")]  # noqa: S314


@pytest.mark.parametrize(
    "values", [[1, 2, 2, 9], [5], [0.25, 0.5], [3.0, 3.0], list(range(500)), [1e-6, 1e9]]
)
def test_a_histogram_counts_every_value_inside_its_box(values: list[float]) -> None:
    svg = charts.histogram(values, name="forwards")
    assert sum(int(title.rpartition(": ")[2]) for title in titles(svg)) == len(values)
    for rect in rects(svg):
        assert charts.LEFT - 1 <= rect["x"] <= rect["x"] + rect["width"] <= charts.WIDTH
        assert rect["y"] >= charts.TOP - 1


def test_whole_numbers_have_a_bin_each() -> None:
    assert titles(charts.histogram([3, 3, 4], name="x")) == ["3 to 4: 2", "4 to 5: 1"]


def test_nothing_can_be_drawn() -> None:
    for svg in (
        charts.histogram([], name="x"),
        charts.line([], x_name="s", y_name="t"),
        charts.columns([], x_name="b", y_name="a"),
        charts.lanes({}, end=0.0, x_name="s"),
    ):
        assert rects(svg) == []


def test_names_are_escaped_and_cut() -> None:
    svg = charts.lanes({"<w>" * 9: [(0.0, 1.0, "<t>", "mark")]}, end=1.0, x_name="s")
    assert titles(svg) == ["<t>"]
    assert "\N{HORIZONTAL ELLIPSIS}" in svg


def test_a_column_is_as_tall_as_its_value() -> None:
    low, high = rects(charts.columns([("0", 1.0), ("1", 2.0)], x_name="b", y_name="a"))
    assert high["height"] == pytest.approx(2 * low["height"], abs=0.2)


@pytest.mark.parametrize(("low", "high"), [(0.0, 57.3), (64.0, 130.0), (0.001, 0.004), (0.0, 1e7)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    svg = charts.line([(low, 1.0), (high, 1.0)], x_name="s", y_name="t")
    ticks = re.findall(r'<text class="tick" x="[\d.]+" y="180.0">([^<]+)</text>', svg)
    numbers = [float(tick.replace(",", "")) for tick in ticks]
    assert 4 <= len(numbers) <= 10
    assert all(low - 1e-9 <= number <= high + 1e-9 for number in numbers)
