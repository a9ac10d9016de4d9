"""The page as a browser shows it: readable, in itself, wide and narrow, light and dark."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from jobs.report import ReportFigures, report_figures, report_page
from jobs.report.figures import Bar, BlockFigures
from manifests.records import Failure
from tests.jobs.report.browser import running_browser
from tests.jobs.support import finished_job, prompts

pytestmark = [pytest.mark.cli, pytest.mark.timeout(300)]
HEADINGS = [
    *("Summary", "Cost", "What ran", "Throughput", "Workers", "Forwards per sample"),
    *("Tokens per forward", "Seconds per sample", "Accepted drafts per round, by block"),
    *("Failed attempts", "Error rows", "Slowest samples"),
]
NUM_CHARTS = 6
NUM_WORKERS = 9
WIDTHS = (1280, 400)
SMALLEST_TEXT_PX = 9.0

# Boxes of all visible texts and marks of one drawing, and of the drawing itself.
BOXES = """svg => {
  const box = e => {
    const r = e.getBoundingClientRect();
    return [r.left, r.top, r.right, r.bottom];
  };
  const all = query => [...svg.querySelectorAll(query)].map(box);
  return {svg: box(svg), texts: all("text"), marks: all("rect, polygon")};
}"""
SPILLED = """() => [...document.querySelectorAll("td, th")]
  .filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)"""
Box = tuple[float, float, float, float]


def busy(figures: ReportFigures) -> ReportFigures:
    """The figures of a long job on many workers, with trouble and long words."""
    assert figures.began is not None
    dice = random.Random(1)
    figures.samples.nfe[:] = [round(dice.gauss(93, 20)) for _ in range(400)]
    figures.samples.tokens_per_forward[:] = [dice.uniform(0.7, 6.0) for _ in range(400)]
    figures.samples.wall_s[:] = [dice.expovariate(0.4) for _ in range(400)]
    figures.samples.errors[:] = [
        {
            "id": f"prompts-{'x' * 60}-{index}",
            "sample": 0,
            "shard": index,
            "error_class": "NullPrompt",
            "error_message": "prompts.jsonl, line 4: column `prompt` is null " * 4,
        }
        for index in range(3)
    ]
    failures = tuple(
        Failure(
            shard=index,
            attempt=f"{index:016x}",
            kind="infrastructure",
            error_class="WorkerLost",
            message="RayActorError: the actor died <unexpectedly> " * 3,
            worker=f"worker-{index:04d}@a-node-with-a-long-name.example.org",
            time=(figures.began + timedelta(seconds=900 + 90 * index)).isoformat(),
        )
        for index in (1, 4)
    )
    bars = [bar for worker in range(NUM_WORKERS) for bar in bars_of(worker, dice)]
    blocks = tuple(BlockFigures(block=b, rounds=100, accepted=300 - 7 * b) for b in range(40))
    return replace(figures, bars=tuple(bars), failures=failures, blocks=blocks)


def bars_of(worker: int, dice: random.Random) -> Iterator[Bar]:
    """Seven shards, one after the other."""
    time_s = dice.uniform(0, 60)
    for shard in range(7):
        end_s = time_s + dice.uniform(200, 400)
        name = f"worker-{worker:04d}@node{worker}"
        yield Bar(shard=worker * 7 + shard, worker=name, start_s=time_s, end_s=end_s, tokens=230000)
        time_s = end_s + 3


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(tmp_path_factory.mktemp("report"))
    rows = [*prompts(5), {"id": "bad", "prompt": None}]
    path = folder / "report.html"
    path.write_text(report_page(busy(report_figures(finished_job(folder, rows=rows)))))
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The page in the browser, and what it did."""

    page: Page
    width: int
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(
    scope="module",
    params=list(product(WIDTHS, ("light", "dark"))),
    ids=lambda chosen: f"{chosen[0]}px-{chosen[1]}",
)
def shown(browser: Browser, report: Path, request: pytest.FixtureRequest) -> Iterator[Shown]:
    """The page, wide and narrow, light and dark."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown = Shown(page=page, width=width)
    page.on("console", lambda message: shown.complaints.append(message.text))
    page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    page.on("request", lambda asked: shown.requests.append(asked.url))
    page.goto(report.as_uri())
    yield shown
    page.close()


def drawings(shown: Shown) -> list[dict[str, Any]]:
    return [svg.evaluate(BOXES) for svg in shown.page.locator("svg").all()]


def is_inside(box: Box, outer: Box) -> bool:
    left, top, right, bottom = outer
    return left - 1 <= box[0] and top - 1 <= box[1] and box[2] <= right + 1 and box[3] <= bottom + 1


def overlap(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def test_nothing_is_loaded_and_nothing_complains(shown: Shown, report: Path) -> None:
    assert shown.requests == [report.as_uri()]
    assert shown.complaints == []


def test_every_heading_is_visible_on_the_page(shown: Shown) -> None:
    headings = shown.page.locator("h2")
    assert headings.all_inner_texts() == HEADINGS
    for heading in headings.all():
        box = heading.bounding_box()
        assert box is not None
        assert box["height"] > 0
        assert 0 <= box["x"] <= box["x"] + box["width"] <= shown.width


def test_the_page_is_never_wider_than_the_window(shown: Shown) -> None:
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= shown.width


def test_every_chart_has_marks_and_clips_nothing(shown: Shown) -> None:
    found = drawings(shown)
    assert len(found) == NUM_CHARTS
    for drawing in found:
        assert any(right > left and bottom > top for left, top, right, bottom in drawing["marks"])
        assert all(is_inside(box, drawing["svg"]) for box in drawing["texts"] + drawing["marks"])


def test_tables_keep_words_inside_their_cells(shown: Shown) -> None:
    spilled = shown.page.evaluate(SPILLED)
    assert spilled == []


def test_labels_can_be_read(shown: Shown) -> None:
    for drawing in drawings(shown):
        texts = drawing["texts"]
        assert min(bottom - top for _, top, _, bottom in texts) >= SMALLEST_TEXT_PX
        pairs = [(a, b) for i, a in enumerate(texts) for b in texts[i + 1 :] if overlap(a, b)]
        assert pairs == []
