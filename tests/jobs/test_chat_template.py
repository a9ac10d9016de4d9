"""The target's chat template: there, readable, and told nothing that it does not read."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.chat_template import check_chat_template, read_template, variables
from manifests.errors import JobFileError
from tests.jobs.inputs.support import job_over


def check(folder: Path, **groups: Any) -> None:
    check_chat_template(job_over("/p.jsonl", target={"path": str(folder)}, **groups))


def test_a_template_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    check(tmp_path)


@pytest.mark.parametrize(
    "configured",
    [
        "{{ old }}",
        [{"name": "tool", "template": "x"}, {"name": "default", "template": "{{ old }}"}],
    ],
)
def test_a_template_in_the_tokenizers_configuration_is_found(
    tmp_path: Path, configured: object
) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"chat_template": configured}))
    assert read_template(tmp_path) == "{{ old }}"


@pytest.mark.parametrize("config", [None, {}, {"chat_template": []}])
def test_a_target_without_one_needs_prompts_that_need_none(
    tmp_path: Path, config: object | None
) -> None:
    if config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(
        JobFileError, match=r"has no chat template .* prompt\.chat_template to none"
    ):
        check(tmp_path)
    check(tmp_path, prompt={"chat_template": "none"})
    check(tmp_path, work="null")


def test_an_argument_that_the_template_never_reads_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{% if enable_thinking %}{% endif %}")
    check(tmp_path, prompt={"chat_template_args": {"enable_thinking": False}})
    with pytest.raises(JobFileError, match=r"reads no `thinking` \(did you mean `enable_thinking`"):
        check(tmp_path, prompt={"chat_template_args": {"thinking": False}})


def test_marks_and_loop_controls_of_real_templates_are_read() -> None:
    source = (
        "{%- for m in messages %}{%- if loop.last %}{%- break %}{%- endif %}"
        "{%- generation %}{{ m.content }}{%- endgeneration %}{%- endfor %}{{ extra }}"
    )
    assert variables(source) == {"messages", "extra"}


def test_a_template_that_cannot_be_parsed_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{% for %}")
    with pytest.raises(JobFileError, match=r"cannot be read \(line 1: "):
        check(tmp_path)


def test_a_configuration_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("[")
    with pytest.raises(JobFileError, match=r"tokenizer_config\.json: it does not hold"):
        check(tmp_path)
