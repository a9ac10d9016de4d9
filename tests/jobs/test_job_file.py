"""Job files and overrides: what is taken, and the sentence for what is not."""

from pathlib import Path

import pytest

from jobs.fields import all_fields, group_of
from jobs.job_file import load_job
from manifests.errors import JobFileError
from manifests.job import JobSpec

MINIMAL = "input: {uri: p.jsonl}\ntarget: {path: m}\noutput: {uri: o}\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "job.yaml"
    path.write_text(text)
    return path


def load(folder: Path, *overrides: str, more: str = "") -> JobSpec:
    return load_job(write(folder, MINIMAL + more), overrides)


def complaint(folder: Path, *overrides: str, text: str = MINIMAL, more: str = "") -> str:
    with pytest.raises(JobFileError) as caught:
        load_job(write(folder, text + more), overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_minimal_file_gets_the_defaults(tmp_path: Path) -> None:
    job = load(tmp_path)
    assert (job.decode.draft_budget, job.sampling.n, job.shards.rows) == ("auto", 1, 64)


def test_relative_paths_are_relative_to_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    job = load(tmp_path, "drafter.path=../d")
    assert job.input.uri == str(elsewhere / "p.jsonl")
    assert job.output.uri == str(elsewhere / "o")
    assert job.target.path == str(elsewhere / "m")
    assert job.drafter.path == str(elsewhere / "../d")


def test_a_file_uri_becomes_a_path_and_another_scheme_stays(tmp_path: Path) -> None:
    job = load(tmp_path, "output.uri=s3://bucket/o", "input.uri=file:///data/p.jsonl")
    assert (job.output.uri, job.input.uri) == ("s3://bucket/o", "/data/p.jsonl")


@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        ("decode.draft_budget=8", "draft_budget", 8),
        ("decode.draft_budget=auto", "draft_budget", "auto"),
        ("decode.temperature=1e-1", "temperature", 0.1),
        ("decode.temperature=1", "temperature", 1.0),
        ("decode.stop=[a, b]", "stop", ("a", "b")),
        ("decode.stop_token_ids=[1]", "stop_token_ids", (1,)),
        ("decode.ignore_eos=true", "ignore_eos", True),
        (" decode.max_tokens =5", "max_tokens", 5),
    ],
)
def test_an_override_has_the_type_of_its_field(
    tmp_path: Path, override: str, field: str, value: object
) -> None:
    assert getattr(load(tmp_path, override).decode, field) == value


def test_an_override_of_a_text_field_may_look_like_a_number(tmp_path: Path) -> None:
    assert load(tmp_path, "output.uri=123").output.uri.endswith("/123")


def test_an_override_may_take_a_value_away(tmp_path: Path) -> None:
    assert load(tmp_path, "drafter.path=null", more="drafter: {path: d}\n").drafter.path is None


def test_the_last_override_wins_over_the_file_and_over_earlier_ones(tmp_path: Path) -> None:
    job = load(tmp_path, "shards.rows=2", "shards.rows=3", more="shards: {rows: 1}\n")
    assert job.shards.rows == 3


def test_an_override_may_give_what_the_file_lacks(tmp_path: Path) -> None:
    path = write(tmp_path, "input: {uri: p.jsonl}\ntarget: {path: m}\n")
    assert load_job(path, ["output.uri=o"]).output.uri.endswith("/o")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("decode: {max_token: 5}\n", "unknown key `decode.max_token`; did you mean `decode.max_"),
        ("max_tokens: 5\n", "unknown key `max_tokens`; did you mean `decode.max_tokens`?"),
        ("shard: {rows: 5}\n", "unknown key `shard`; did you mean `shards`?"),
        ("zzz: 5\n", "unknown key `zzz`; known here: work, input, prompt, target,"),
        ("decode: {max_tokens: many}\n", "`decode.max_tokens`: input should be a valid integer"),
        ("decode: {max_tokens: true}\n", "not true"),
        ("decode: {max_tokens: 0}\n", "greater than or equal to 1, not 0"),
        ("decode: {draft_budget: some}\n", "should be 'auto' or input should be a valid integer"),
        ("decode: 3\n", "`decode`: input should be an object, not 3"),
        ("decode: {rule: loose}\n", "`decode.rule`: input should be 'strict',"),
        ("decode: {rule: threshold}\n", "decode.rule threshold needs decode.tau, a number"),
        ("decode: {tau: high}\n", "`decode.tau`: input should be a valid number"),
        ("drafter: {method: spot}\n", "drafter.method spot needs drafter.path"),
        ("drafter: {method: sets_stale}\n", "use drafter.method: spot or chain"),
        ("decode: {tau: 0.9}\n", "decode.tau belongs to the rules threshold,"),
        ("decode: {stop: x}\n", "`decode.stop`: input should be a valid array"),
        ("seed: {value: 1}\nseed: {value: 2}\n", "line 5: the key `seed` is written twice"),
        ("input.uri: x\n", "write `input.uri` as nested groups"),
    ],
)
def test_a_wrong_file_is_one_sentence_with_file_and_field(
    tmp_path: Path, more: str, words: str
) -> None:
    text = complaint(tmp_path, more=more)
    assert words in text


def test_the_file_is_named(tmp_path: Path) -> None:
    assert complaint(tmp_path, more="zzz: 1\n").startswith(str(tmp_path / "job.yaml"))


@pytest.mark.parametrize("text", ["", "- a\n", "text\n"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    assert "a job file is a mapping" in complaint(tmp_path, text=text)


def test_a_missing_group_says_what_it_is(tmp_path: Path) -> None:
    text = complaint(tmp_path, text="input: {uri: p}\noutput: {uri: o}\n")
    assert "`target` is missing; `target` is: The diffusion language model" in text


def test_a_missing_field_says_what_it_is(tmp_path: Path) -> None:
    text = complaint(tmp_path, text="input: {}\ntarget: {path: m}\noutput: {uri: o}\n")
    assert "`input.uri` is missing; `input.uri` is: a file, a glob" in text


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("decode.max_tokens", "write it as name=value"),
        ("=3", "write it as name=value"),
        ("decode.max_tokn=3", "did you mean `decode.max_tokens`?"),
        ("decode=3", "`decode` is a group"),
        ("decode.max_tokens=many", "input should be a valid integer; `decode.max_tokens` is:"),
        ("decode.stop=[a", "expected ',' or ']'"),
        ("shards.rows=1.5", "input should be a valid integer"),
    ],
)
def test_a_wrong_override_is_one_sentence_that_repeats_it(
    tmp_path: Path, override: str, words: str
) -> None:
    text = complaint(tmp_path, override)
    assert text.startswith(f"--set {override}: ")
    assert words in text


def test_a_missing_job_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"nothing\.yaml: there is no such job file"):
        load_job(tmp_path / "nothing.yaml")


def test_a_directory_is_no_job_file(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match="is a directory"):
        load_job(tmp_path)


def test_a_binary_file_is_no_job_file(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JobFileError, match="UTF-8"):
        load_job(path)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["input.columns.prompt=p", "input.columns.messages=m"], "`messages` replaces `prompt`"),
        (["input.columns.prompt=p", "prompt.template={a}"], "both say what the prompt is"),
        (["input.columns.messages=m", "prompt.template={a}"], "both say what the prompt is"),
        (["input.format=openai", "prompt.template={a}"], "input.format openai both say"),
        (["input.format=openai", "input.columns.id=k"], "input.columns.id has no effect"),
        (["input.columns.messages=m", "prompt.chat_template=none"], "need a chat template"),
        (["input.format=openai", "prompt.chat_template=none"], "need a chat template"),
        (["prompt.system=s", "prompt.chat_template=none"], "prompt.system needs a chat template"),
        (
            ["prompt.chat_template_args={a: 1}", "prompt.chat_template=none"],
            "prompt.chat_template_args needs a chat template",
        ),
        (["prompt.chat_template_args={tokenize: true}"], "`tokenize` is not a variable"),
        (["prompt.template=no column"], "names no column"),
        (["prompt.template={a"], "a lone { at character 0"),
        (["prompt.template=a {}"], "the braces at character 2 name no column"),
        (["input.filter=a ="], "it is no expression"),
        (["input.filter=a.b == 1"], "`a.b` cannot be used here"),
        (["input.uri=[]"], "input.uri is an empty list"),
        (["input.delimiter=;;"], "input.delimiter is ';;'; give one ASCII character"),
        (["input.delimiter='\"'"], "neither a quote nor a line break"),
        (["input.delimiter=;", "input.format=jsonl"], "has no effect with input.format jsonl"),
        (
            ["input.columns.temperature=t", "decode.verifier=greedy"],
            "decode.verifier greedy takes one temperature",
        ),
    ],
)
def test_settings_of_the_input_that_contradict_each_other_are_refused(
    tmp_path: Path, overrides: list[str], words: str
) -> None:
    assert words in complaint(tmp_path, *overrides)


def test_an_input_may_be_a_list_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = load(tmp_path, "input.uri=[a.jsonl, b/*.parquet]")
    assert job.input.uri == (f"{tmp_path}/a.jsonl", f"{tmp_path}/b/*.parquet")


def test_the_environment_wins_over_the_file_and_an_override_over_both(tmp_path: Path) -> None:
    path = write(tmp_path, MINIMAL + "decode: {max_tokens: 1, min_tokens: 1}\n")
    environment = {
        "SPOTBATCH__DECODE__MAX_TOKENS": "2",
        "SPOTBATCH__DECODE__STOP": "[a]",
        "SPOTBATCH__WORK": "null",
        "SPOTBATCH_OTHER": "3",
    }
    job = load_job(path, ["decode.max_tokens=4", "work=collect"], environment=environment)
    assert (job.decode.max_tokens, job.decode.min_tokens, job.decode.stop) == (4, 1, ("a",))
    assert load_job(path, environment=environment).decode.max_tokens == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("SPOTBATCH__DECODE__MAX_TOKEN", "2", "did you mean `decode.max_tokens`?"),
        ("SPOTBATCH__DECODE", "2", "`decode` is a group"),
        ("SPOTBATCH__DECODE__MAX_TOKENS", "two", "input should be a valid integer"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(JobFileError) as caught:
        load_job(write(tmp_path, MINIMAL), environment={name: text})
    assert str(caught.value).startswith(f"environment {name}={text}: ")
    assert words in str(caught.value)


def test_the_name_of_a_resolved_job_can_be_read_again(tmp_path: Path) -> None:
    job = load(tmp_path, "input.columns.messages=m", "input.columns.seed=s")
    assert JobSpec.model_validate_json(job.model_dump_json()) == job


def test_messages_alone_are_enough(tmp_path: Path) -> None:
    assert load(tmp_path, "input.columns.messages=m").input.columns.messages == "m"


def test_every_setting_describes_itself() -> None:
    undescribed = [
        name
        for name, field in all_fields().items()
        if not group_of(field) and not field.description
    ]
    assert undescribed == []


def test_lists_of_a_job_file_are_read_and_their_items_stay_strict(tmp_path: Path) -> None:
    decode = load(tmp_path, more="decode: {stop: [a, b], stop_token_ids: [7]}\n").decode
    assert (decode.stop, decode.stop_token_ids) == (("a", "b"), (7,))
    assert "decode.stop_token_ids" in complaint(tmp_path, "decode.stop_token_ids=[true]")
