"""The table at the end: every figure, and samples that are safe to print."""

from pathlib import Path

from jobs.report_table import Example, examples, format_example, format_lines, report_lines
from jobs.stats import job_stats
from tests.jobs.support import finished_job, prompts


def table(folder: Path, **changes: object) -> dict[str, str]:
    job = finished_job(folder, rows=[*prompts(3), {"id": "bad", "prompt": None}])
    values = job_stats(job).to_json() | changes
    return dict(report_lines(type(job_stats(job))(**values), uri=job.store.uri))


def test_the_table_has_every_figure(tmp_path: Path) -> None:
    lines = table(tmp_path, accuracy={"all": 0.5, "a": 1.0}, scorer_errors=1, decoding_s=2.0)
    assert lines["state"] == "complete"
    assert lines["rows"] == "4"
    assert lines["samples"] == "4, 3 ok"
    assert lines["errors"] == "1, 1 NullPrompt"
    assert lines["accuracy"] == "all 0.500, a 1.000; 1 without a score"
    assert lines["tokens"] == "15"
    assert lines["forwards per sample"] == (
        "3.00; draft-free decoding needs 5.00 (1.67 times as many)"
    )
    assert lines["tokens per forward"].startswith("1.67 of a sample, ")
    assert lines["rule"] == "strict, temperature 0.0, top_k 0, top_p 1.0, verifier coupled"
    assert lines["distribution"].startswith("preserved: ")
    assert lines["files"].startswith(f"{tmp_path}/out/data (2 files")


def test_constants_of_the_rule_are_in_the_table(tmp_path: Path) -> None:
    rule = {"rule": "threshold", "tau": 0.9, "temperature": 0.5, "verifier": "greedy"}
    lines = table(tmp_path, rule=rule, distribution_preserving=False, distribution_reason="why")
    assert lines["rule"] == "threshold, tau 0.9, temperature 0.5, verifier greedy"
    assert lines["distribution"] == "not preserved: why"


def test_measured_divergence_stands_behind_the_distribution(tmp_path: Path) -> None:
    fast = {"distribution_preserving": False, "distribution_reason": "fast"}
    lines = table(tmp_path, **fast, replayed=7, diverged=2)
    assert lines["distribution"] == "not preserved: fast (2 of 7 replayed samples differ)"


def test_a_table_without_output_has_dashes(tmp_path: Path) -> None:
    none = dict.fromkeys(
        ("nfe_per_sample", "tokens_per_forward", "tokens_per_second", "distribution_preserving")
    )
    lines = table(tmp_path, **none, complete=False, shards=0)
    assert lines["state"] == "2 of 2 shards missing"
    assert lines["accuracy"] == "- (not scored)"
    assert lines["forwards per sample"] == lines["tokens per second"] == "-"
    assert lines["distribution"] == "-"


def test_names_and_values_stand_in_two_columns() -> None:
    assert format_lines([("a", "1"), ("long name", "2")]) == "a          1\nlong name  2"
    assert format_lines([]) == ""


def test_examples_are_the_first_good_samples_with_their_prompts(tmp_path: Path) -> None:
    job = finished_job(tmp_path, rows=[{"id": "bad", "prompt": None}, *prompts(5)])
    assert examples(job) == [
        Example(id=f"r{i}", prompt=f"say {i}", text=f"echo: say {i}") for i in range(3)
    ]


def test_fewer_samples_give_fewer_examples(tmp_path: Path) -> None:
    assert len(examples(finished_job(tmp_path, rows=prompts(2)))) == 2


def test_control_characters_of_a_model_do_not_reach_the_terminal() -> None:
    example = Example(id="a\x07", prompt="p", text="x\x1b[2J\ny" + "z" * 1000)
    text = format_example(example)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[2J\ny" in text
    assert text.endswith("...")
