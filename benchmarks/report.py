"""Markdown tables from a result, without torch; a pure function of the result.

Settings are compared on the samples that both have: the first ones, as the smaller one counts them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from benchmarks.document import Document, Machine, Options, Row

BASELINES = ("chain", "confidence_tree", "spiffy")
LOOKING_THROUGH: Options = {"full_drafts": "look_through"}
NOTHING = "-"


class Group(NamedTuple):
    """Rows with one reference among them: the same protocol, rule, tau and temperature."""

    title: str
    rows: list[Row]

    def find(self, method: str, budget: int, options: Options | None = None) -> Row | None:
        """The row of a method; by default the one of its recipe."""
        for row in self.rows:
            fits = _is_recipe(row) if options is None else row.options == options
            if fits and (row.method, row.budget) == (method, budget):
                return row
        return None

    def budgets(self, *methods: str) -> list[int]:
        """Budgets at which any of the methods was measured."""
        return sorted({row.budget for row in self.rows if row.method in methods})


def _is_recipe(row: Row) -> bool:
    """Whether no part of the method is changed; ``spot_gamma`` may name its floor."""
    return row.method == "spot_gamma" or not row.options


def report(document: Document) -> str:
    """All tables, each under a heading; a table of which nothing was measured is left out."""
    groups = _groups(document.rows)
    parts = [_machine(document.machine)]
    for title, section in SECTIONS.items():
        blocks = [f"{group.title}\n\n{text}" for group in groups if (text := section(group))]
        if blocks:
            parts.append("\n".join([f"### {title}\n", *blocks]))
    return "\n" + "\n".join(parts) + "\n"


def _groups(rows: Iterable[Row]) -> list[Group]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        rule = row.rule if row.tau is None else f"{row.rule} {row.tau:g}"
        title = f"`{row.protocol}`, {rule}, temperature {row.temperature:g}:"
        groups.setdefault(title, []).append(row)
    return [Group(title, found) for title, found in groups.items()]


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table, empty without rows; numbers to the right."""
    lines = ["| " + " | ".join(cells) + " |\n" for cells in body]
    if not lines:
        return ""
    rule = "|---" + "|---:" * (len(head) - 1) + "|\n"
    return "".join(["| " + " | ".join(head) + " |\n", rule, *lines])


def shared_nfe(row: Row, other: Row) -> float:
    """Mean forwards of ``row`` on the samples that both have."""
    num = min(row.samples, other.samples)
    return sum(row.sample_nfe[:num]) / num


def _machine(machine: Machine) -> str:
    return (
        f"Measured on {machine.date} with {machine.processor}, {machine.cores} cores, "
        f"{machine.memory_gib:g} GiB memory, torch {machine.torch}, {machine.threads} thread(s) to "
        "a process.\n"
    )


def _forwards(group: Group) -> str:
    """Forwards of every method by budget."""
    if group.rows[0].rule != "strict":
        return ""
    methods = list(dict.fromkeys(r.method for r in group.rows if _is_recipe(r)))
    budgets = group.budgets(*methods)
    body = []
    for method in methods:
        rows = [group.find(method, budget) for budget in budgets]
        body.append([_name(rows), *map(_nfe, rows), _samples(rows), _identical(rows)])
    head = ["method", *(f"D = {b}" if b else "no drafts" for b in budgets)]
    return table([*head, "samples", "identical"], body)


def _name(rows: Iterable[Row | None]) -> str:
    row = next(row for row in rows if row)
    return f"`{row.method}`" + (f" (gamma {row.gamma:g})" if row.gamma else "")


def _nfe(row: Row | None) -> str:
    if row is None:
        return NOTHING
    return f"{row.nfe:.1f} ({row.reduction:.2f}x)" if row.budget else f"{row.nfe:.1f}"


def _samples(rows: Iterable[Row | None]) -> str:
    return ", ".join(dict.fromkeys(str(row.samples) for row in rows if row))


def _identical(rows: Iterable[Row | None]) -> str:
    return "yes" if all(row.identical for row in rows if row) else "no"


def _margins(group: Group) -> str:
    """SPOT against the best baseline and against the position oracle."""
    head = ["budget", "best baseline", "its forwards", "`spot`", "fewer", "share of oracle"]
    body = []
    for budget in group.budgets("spot"):
        spot = group.find("spot", budget)
        found = [row for name in BASELINES if (row := group.find(name, budget))]
        if spot is None or not found:
            continue
        best = min(found, key=lambda row: shared_nfe(row, spot) / shared_nfe(spot, row))
        ours, theirs = shared_nfe(spot, best), shared_nfe(best, spot)
        oracle = group.find("oracle_position", budget, LOOKING_THROUGH)
        share = NOTHING
        if oracle is not None:
            share = f"{shared_nfe(oracle, spot) / shared_nfe(spot, oracle):.0%}"
        forwards = [f"{theirs:.1f}", f"{ours:.1f}", f"{1 - ours / theirs:.1%}"]
        body.append([str(budget), f"`{best.method}`", *forwards, share])
    return table(head, body)


def _threshold(group: Group) -> str:
    """Sets by budget, against draft-free decoding under the same rule."""
    methods = ("spot_sets", "sets_stale")
    free = group.find("draft_free", 0)
    if free is None:
        return ""
    body = []
    for budget in group.budgets(*methods):
        rows = [group.find(method, budget) for method in methods]
        control = next(shared_nfe(free, row) for row in rows if row)
        body.append([str(budget), f"{control:.1f}", *map(_nfe, rows)])
    return table(["budget", "`draft_free`", *(f"`{m}`" for m in methods)], body)


def _left_out(group: Group) -> str:
    """SPOT with one part changed."""
    changed = [row for row in group.rows if row.method == "spot" and row.options]
    body = []
    for options in _distinct(row.options for row in changed):
        for budget in group.budgets("spot"):
            row, whole = group.find("spot", budget, options), group.find("spot", budget)
            if row is None or whole is None:
                continue
            ours, reference = shared_nfe(row, whole), shared_nfe(whole, row)
            numbers = [f"{reference:.1f}", f"{ours:.1f}", f"{ours / reference - 1:+.1%}"]
            costs = [f"{row.store_forwards:.1f}", f"{row.positions:.0f}"]
            body.append([_options(options), str(budget), *numbers, *costs])
    head = ["changed", "budget", "whole", "changed", "forwards", "only storing", "positions"]
    return table(head, body)


def _oracles(group: Group) -> str:
    """What a perfect drafter of one kind would need."""
    oracles = [row for row in group.rows if row.method.startswith("oracle_")]
    budgets = sorted({row.budget for row in oracles})
    body = []
    for method in dict.fromkeys(row.method for row in oracles):
        for options in _distinct(row.options for row in oracles):
            cells = [_nfe(group.find(method, budget, options)) for budget in budgets]
            body.append([f"`{method}`", _options(options), *cells])
    return table(["oracle", "options", *(f"D = {budget}" for budget in budgets)], body)


def _walls(group: Group) -> str:
    """Seconds of draft-free decoding over the method's."""
    body = [
        [f"`{r.method}`", str(r.budget), f"{r.wall_ratio:.2f}x", f"{r.drafter_seconds_share:.0%}"]
        for r in group.rows
        if r.wall_ratio is not None and r.drafter_seconds_share is not None
    ]
    return table(["method", "budget", "as fast", "drafter's share of the time"], body)


def _distinct(found: Iterable[Options]) -> list[Options]:
    distinct: list[Options] = []
    for options in found:
        if options not in distinct:
            distinct.append(options)
    return distinct


def _options(options: Options) -> str:
    return "`" + ", ".join(f"{name}={value}" for name, value in options.items()) + "`"


SECTIONS: dict[str, Callable[[Group], str]] = {
    "Forwards": _forwards,
    "SPOT against the best baseline and the position oracle": _margins,
    "Commit sets under the threshold rule": _threshold,
    "SPOT with one part changed": _left_out,
    "Oracles": _oracles,
    "Seconds, one sample at a time": _walls,
}
