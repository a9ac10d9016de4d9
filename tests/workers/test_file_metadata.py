"""What a lone data file says about the decoding that made it."""

import json
from pathlib import Path
from typing import Any

import pytest

from manifests import columns
from tests.manifests.builders import make_job
from tests.workers.builders import empty_assembly
from workers.file_metadata import file_metadata

THRESHOLD = {"rule": "threshold", "tau": 0.9, "temperature": 0.7, "top_k": 5, "top_p": 0.8}


def said(folder: Path, **decode: Any) -> dict[str, str]:
    job = make_job(folder, decode=decode)
    assembly = empty_assembly(job)
    return file_metadata(
        job.plan, job=job.plan.job, assembly=assembly, plan_sha256="0" * 64, versions={"torch": "2"}
    )


def test_the_rule_is_there_with_its_constants_and_verifier(tmp_path: Path) -> None:
    rule = json.loads(said(tmp_path, **THRESHOLD, verifier="uncoupled")[columns.METADATA_RULE])
    expected = THRESHOLD | {"verifier": "uncoupled"}
    assert {name: rule[name] for name in expected} == expected


def test_a_released_loops_rule_is_there_with_what_it_calls_confidence(tmp_path: Path) -> None:
    decode = {"rule": "low_confidence_dynamic", "tau": 0.85, "denoising_steps": 4}
    metadata = said(tmp_path, **decode)
    rule = json.loads(metadata[columns.METADATA_RULE])
    assert {name: rule[name] for name in decode} == decode
    assert metadata[columns.METADATA_CONFIDENCE].startswith("probability of the position's drawn")


def test_our_own_rules_call_the_untempered_top_probability_confidence(tmp_path: Path) -> None:
    assert said(tmp_path)[columns.METADATA_CONFIDENCE].startswith("untempered probability")


@pytest.mark.parametrize(
    ("decode", "words"),
    [
        ({"temperature": 1.0}, "true: a drafted state counts only"),
        ({"temperature": 1.0, "verifier": "uncoupled"}, "true: a drafted state counts only"),
        ({"temperature": 1.0, "verifier": "greedy"}, "false: decode.verifier is greedy"),
        ({"numerics": "fast"}, "false: decode.numerics is fast"),
    ],
)
def test_the_file_says_whether_the_distribution_is_kept(
    tmp_path: Path, decode: dict[str, Any], words: str
) -> None:
    assert said(tmp_path, **decode)[columns.METADATA_DISTRIBUTION_PRESERVING].startswith(words)
