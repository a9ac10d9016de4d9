"""Charts as SVG text: histograms, a line over time, bars by name, and the workers' time lines.

Everything is drawn in a box of `WIDTH` units that scales with the page. Marks have a `title`, which
browsers show under the pointer.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

import numpy as np
from numpy.typing import NDArray

WIDTH = 720
HEIGHT = 200
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 10, 34
NUM_BINS = 40
LANE = 22
_PLOT_WIDTH = WIDTH - LEFT - RIGHT
_PLOT_HEIGHT = HEIGHT - TOP - BOTTOM
Floats = NDArray[np.float64]
Mark = tuple[float, float, str, str]
"""Start, end, title and class of one mark on a lane."""


def histogram(values: Sequence[float], *, name: str) -> str:
    """How often values fall into equal bins, from the smallest to the largest."""
    data = np.asarray(values, float)
    counts, edges = np.histogram(data, bins=_edges(data))
    low, high = float(edges[0]), float(edges[-1])
    bars = [
        (edge, next_edge, int(count))
        for edge, next_edge, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    top = max(1, int(counts.max(initial=0)))
    marks = "".join(_bar(bar, low=low, high=high, top=top) for bar in bars if bar[2])
    ticks = _x_ticks(low=low, high=high, y=TOP + _PLOT_HEIGHT, name=name, whole=_is_whole(data))
    axes = "".join([*_y_ticks(top, name="samples", whole=True), *ticks])
    return _svg(axes + marks, height=HEIGHT, label=f"distribution of {name}")


def _is_whole(data: Floats) -> bool:
    return bool((data == np.round(data)).all())


def _edges(data: Floats) -> Floats:
    """Edges of equal bins; bins of whole numbers hold equally many of them."""
    if not len(data):
        return np.array([0.0, 1.0])
    low, high = float(data.min()), float(data.max())
    if _is_whole(data):
        step = ceil((high - low + 1) / NUM_BINS)
        return low + step * np.arange(ceil((high - low + 1) / step) + 1, dtype=float)
    return np.linspace(low, high if high > low else low + 1.0, NUM_BINS + 1)


def _bar(bar: tuple[float, float, int], *, low: float, high: float, top: float) -> str:
    start, end, count = bar
    x, x_end = (_x(value, low=low, high=high) for value in (start, end))
    tall = _PLOT_HEIGHT * count / top
    title = f"{_number(start)} to {_number(end)}: {count}"
    return _rect(x, TOP + _PLOT_HEIGHT - tall, max(0.5, x_end - x - 1), tall, title=title)


def slices(values: Sequence[float], *, end: float, x_name: str, y_name: str) -> str:
    """Values of equal slices of the time from 0 to `end`, as an area of steps."""
    end = end if end > 0.0 else 1.0
    top = max(values, default=0.0) or 1.0
    wide = _PLOT_WIDTH / max(1, len(values))
    base = TOP + _PLOT_HEIGHT
    places = [(float(LEFT), float(base))]
    for index, value in enumerate(values):
        y = base - _PLOT_HEIGHT * value / top
        places += [(LEFT + index * wide, y), (LEFT + (index + 1) * wide, y)]
    places.append((places[-1][0], float(base)))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    ticks = _x_ticks(low=0.0, high=end, y=base, name=x_name)
    axes = "".join([*_y_ticks(top, name=y_name), *ticks])
    area = f'<polygon class="area" points="{path}"/>' if values else ""
    return _svg(axes + area, height=HEIGHT, label=f"{y_name} over {x_name}")


def lanes(rows: Mapping[str, Iterable[Mark]], *, end: float, x_name: str) -> str:
    """One lane per name, with its marks on a common axis from 0 to `end`."""
    end = end or 1.0
    height = TOP + LANE * max(1, len(rows)) + BOTTOM
    parts = []
    for index, (name, marks) in enumerate(rows.items()):
        y = TOP + LANE * index
        parts.append(
            f'<text class="lane" x="{LEFT - 6}" y="{y + 15}">{escape(_short(name))}</text>'
        )
        for start, stop, title, kind in marks:
            x, x_end = (_x(value, low=0.0, high=end) for value in (start, stop))
            wide = max(4.0 if kind == "failed" else 1.5, x_end - x - 0.5)
            parts.append(_rect(x, y + 3, wide, LANE - 6, title=title, kind=kind))
    parts += _x_ticks(low=0.0, high=end, y=height - BOTTOM, name=x_name)
    return _svg("".join(parts), height=height, label="workers over time")


def columns(values: Sequence[tuple[str, float]], *, x_name: str, y_name: str) -> str:
    """One column per name."""
    top = max((value for _, value in values), default=0.0) or 1.0
    wide = _PLOT_WIDTH / max(1, len(values))
    step = ceil(len(values) / 16) or 1
    parts = _y_ticks(top, name=y_name)
    for index, (name, value) in enumerate(values):
        x, tall = LEFT + index * wide, _PLOT_HEIGHT * value / top
        title = f"{name}: {_number(value)}"
        parts.append(_rect(x, TOP + _PLOT_HEIGHT - tall, max(0.5, wide - 2), tall, title=title))
        if index % step == 0:
            parts.append(_text(x + wide / 2, TOP + _PLOT_HEIGHT + 14, name))
    parts.append(_text(LEFT + _PLOT_WIDTH / 2, HEIGHT - 4, x_name))
    return _svg("".join(parts), height=HEIGHT, label=f"{y_name} by {x_name}")


def _svg(content: str, *, height: float, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{content}</svg>"
    )


def _x(value: float, *, low: float, high: float) -> float:
    return LEFT + _PLOT_WIDTH * (value - low) / (high - low)


def _rect(x: float, y: float, wide: float, tall: float, *, title: str, kind: str = "mark") -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _text(x: float, y: float, text: str, *, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _x_ticks(*, low: float, high: float, y: float, name: str, whole: bool = False) -> list[str]:
    values = _round(low, high, whole=whole)
    ticks = [_text(_x(v, low=low, high=high), y + 14, _number(v)) for v in values]
    axis = f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
    return [axis, *ticks, _text(LEFT + _PLOT_WIDTH / 2, y + 29, name)]


def _y_ticks(top: float, *, name: str, whole: bool = False) -> list[str]:
    """Numbers beside lines that lie behind the marks, and the axis's name."""
    parts = []
    for value in _round(0.0, top, whole=whole):
        y = TOP + _PLOT_HEIGHT * (1 - value / top)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_text(LEFT - 6, y + 4, _number(value), kind="lane"))
    middle = TOP + _PLOT_HEIGHT / 2
    turned = (
        f'<text class="tick" transform="translate(12 {middle}) rotate(-90)">{escape(name)}</text>'
    )
    return [*parts, turned]


def _round(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers between the ends, four to nine of them; fewer if they are to be whole."""
    power = 10.0 ** floor(log10((high - low) / 4))
    step = max(s * power for s in (1.0, 2.0, 5.0) if s * power <= (high - low) / 4)
    step = max(step, 1.0) if whole else step
    return [step * i for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"


def _short(name: str) -> str:
    return name if len(name) <= 12 else f"{name[:11]}\N{HORIZONTAL ELLIPSIS}"
