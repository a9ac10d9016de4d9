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
        charts.slices([], end=0.0, x_name="s", y_name="t"),
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


def ticks(svg: str) -> list[float]:
    """The numbers below an x axis."""
    found = re.findall(r'<text class="tick" x="[\d.]+" y="180.0">([^<]+)</text>', svg)
    return [float(tick.replace(",", "")) for tick in found]


def levels(svg: str) -> list[float]:
    """The numbers beside a y axis."""
    found = re.findall(r'<text class="lane" x="78.0" y="[\d.]+">([^<]+)</text>', svg)
    return [float(level.replace(",", "")) for level in found]


@pytest.mark.parametrize("end", [57.3, 1.5, 0.003, 1e7])
def test_ticks_are_round_and_inside(end: float) -> None:
    numbers = ticks(charts.slices([1.0, 2.0], end=end, x_name="s", y_name="t"))
    assert 4 <= len(numbers) <= 10
    assert numbers[0] == 0.0
    assert all(number <= end + 1e-9 for number in numbers)


def test_numbers_of_samples_are_whole() -> None:
    assert levels(charts.histogram([1, 1, 1, 2], name="x")) == [0.0, 1.0, 2.0, 3.0]
    assert ticks(charts.histogram([3, 4], name="x")) == [3.0, 4.0, 5.0]


def test_levels_are_round_and_reach_no_higher_than_the_marks() -> None:
    numbers = levels(charts.slices([1422.0, 3.0], end=9.0, x_name="s", y_name="t"))
    assert numbers == [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0, 1200.0, 1400.0]


def test_slices_are_steps_from_the_beginning_to_the_end() -> None:
    svg = charts.slices([1.0, 2.0], end=4.0, x_name="s", y_name="t")
    points = re.findall(r"([\d.]+),([\d.]+)", svg.partition('points="')[2])
    places = [float(x) for x, _ in points]
    assert (places[0], places[-1]) == (charts.LEFT, charts.WIDTH - charts.RIGHT)
    heights = [round(166.0 - float(y)) for _, y in points]
    assert heights == [0, 78, 78, 156, 156, 0]
