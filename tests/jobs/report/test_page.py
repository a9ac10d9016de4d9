"""The page: everything on it, nothing loaded, nothing from outside taken for markup."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from jobs.reading import OpenJob
from jobs.report import report_figures, report_page
from manifests.journal import write_failure
from manifests.records import Failure
from tests.jobs.support import commit, finished_job, planned_job, prompts

HOSTILE = "<script>alert(1)</script>\"'&"
# Elements without an end tag.
VOID = {"meta"}


class Reader(HTMLParser):
    """Collects elements and text, and sees that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.fixture
def job(tmp_path: Path) -> OpenJob:
    rows = [*prompts(3), {"id": HOSTILE, "prompt": None}]
    job = finished_job(tmp_path, rows=rows)
    write_failure(
        job.store,
        Failure(
            shard=1,
            attempt="0" * 16,
            kind="infrastructure",
            error_class="NodeLost",
            message=HOSTILE,
            worker="w1@h",
            time="2025-01-01T00:00:00+00:00",
        ),
    )
    return job


def test_the_page_is_well_formed_and_loads_nothing(job: OpenJob) -> None:
    page = read(report_page(report_figures(job)))
    assert page.open == []
    tags = {tag for tag, _ in page.elements}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "a"})
    assert {name for _, attrs in page.elements for name in attrs}.isdisjoint({"src", "href"})
    policy = [a.get("content") for tag, a in page.elements if tag == "meta"]
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy


def test_what_users_and_models_wrote_is_text(job: OpenJob) -> None:
    page = report_page(report_figures(job))
    assert "<script>" not in page
    assert read(page).text.count(HOSTILE) >= 2


def test_every_section_is_there(job: OpenJob) -> None:
    text = read(report_page(report_figures(job))).text
    for heading in (
        *("Summary", "Cost", "What ran", "Throughput", "Workers", "Forwards per sample"),
        *(
            "Tokens per forward",
            "Seconds per sample",
            "Failed attempts",
            "Error rows",
            "Slowest samples",
        ),
    ):
        assert heading in text
    assert "Complete. The target's distribution is preserved" in text
    assert "NodeLost" in text


def test_a_job_that_is_not_complete_says_what_is_missing(tmp_path: Path) -> None:
    planned = planned_job(tmp_path, rows=prompts(5))
    opened = OpenJob(store=planned.store, plan=planned.plan)
    assert "3 of 3 shards are missing. Nothing is committed yet." in report_page(
        report_figures(opened)
    )
    commit(planned, shards=[0])
    assert "2 of 3 shards are missing." in report_page(report_figures(opened))
