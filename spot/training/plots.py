"""Figures of calibration and diagnostics; matplotlib is an extra, and imported here alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_INCHES = (5.0, 3.5)


class PlotsMissingError(RuntimeError):
    """matplotlib is not installed; the message says how to get it."""


def require_plots() -> None:
    """Raise PlotsMissingError unless figures can be drawn; to be asked before long work."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise PlotsMissingError(
            "figures need matplotlib, which is not installed: pip install 'spotbatch[plots]', or "
            "leave --plots out"
        ) from None


def plot_reliability(rows: Sequence[Mapping[str, Any]], path: Path, *, name: str) -> None:
    """Predicted against realised probability, with the number of observations behind.

    Args:
        rows: of ``Reliability.rows``.
        path: the figure; its suffix is the format (.svg, .png).
        name: what is predicted.
    """
    figure, axes = _figure()
    filled = [row for row in rows if row["count"]]
    middle = [(row["low"] + row["high"]) / 2 for row in rows]
    behind = axes.twinx()
    behind.bar(middle, [r["count"] for r in rows], width=0.09, color="0.85", label="observations")
    behind.set_ylabel("observations")
    axes.set_zorder(behind.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.plot([0, 1], [0, 1], color="0.5", linestyle="--", label="calibrated")
    axes.plot(
        [row["predicted"] for row in filled],
        [row["realised"] for row in filled],
        marker="o",
        label="measured",
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=f"predicted {name}", ylabel="came true")
    axes.legend(loc="upper left")
    _save(figure, path)


def plot_blocks(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Accepted drafts per drafted round by block.

    Args:
        rows: the ``blocks`` of ``Diagnostics.report``.
        path: the figure; its suffix is the format.
    """
    figure, axes = _figure()
    from matplotlib.ticker import MaxNLocator

    drafted = [row for row in rows if row["drafted_rounds"]]
    axes.bar(
        [row["block"] for row in drafted], [row["accepted_per_drafted_round"] for row in drafted]
    )
    axes.set(xlabel="block", ylabel="accepted drafts per drafted round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _save(figure, path)


def _figure() -> "tuple[Figure, Axes]":
    require_plots()
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    return figure, figure.add_subplot()


def _save(figure: "Figure", path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
