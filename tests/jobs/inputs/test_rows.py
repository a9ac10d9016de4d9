"""What a row must hold: each kind of trouble, and that the job goes on around it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.inputs.base import RawRow, Trouble
from jobs.inputs.row_form import RowForm, row_form
from jobs.inputs.rows import stage_rows
from manifests.job_input import Columns
from manifests.staged import StagedRow, staged_table
from tests.jobs.inputs.support import job_over


def stage_form(values: Sequence[Any], form: RowForm) -> list[StagedRow]:
    raw = [
        RawRow(file="p.jsonl", index=i, place=f"line {i + 1}", values=value)
        for i, value in enumerate(values)
    ]
    return list(stage_rows(raw, form=form))


def stage(values: Sequence[Any], **columns: Any) -> list[StagedRow]:
    return stage_form(values, RowForm(columns=Columns(**columns)))


def stage_one(values: Any, **columns: Any) -> StagedRow:
    (row,) = stage([values], **columns)
    return row


def test_a_prompt_is_kept_as_it_is_and_other_columns_are_carried() -> None:
    row = stage_one({"prompt": " hé ", "family": "a", "n": 1})
    assert (row.prompt, row.messages, row.error_class) == (" hé ", None, None)
    assert row.carried == '{"family": "a", "n": 1}'


def test_nothing_is_carried_where_there_is_nothing() -> None:
    assert stage_one({"prompt": "a"}).carried is None


def test_ids_are_made_from_file_and_row_without_an_id_column() -> None:
    assert [row.id for row in stage([{"prompt": "a"}] * 2)] == ["p.jsonl:0", "p.jsonl:1"]


def test_an_id_column_gives_ids_and_whole_numbers_become_text() -> None:
    rows = stage([{"k": "x", "prompt": "a"}, {"k": 7, "prompt": "a"}], id="k")
    assert [row.id for row in rows] == ["x", "7"]
    assert rows[0].carried is None


def test_rows_are_numbered_from_zero_in_order() -> None:
    assert [row.row for row in stage([{"prompt": "a"}, {}, {"prompt": "b"}])] == [0, 1, 2]


@pytest.mark.parametrize(
    ("values", "error_class", "words"),
    [
        ({"text": "a", "x": 1}, "MissingPrompt", "no column `prompt`; it has text, x"),
        ({}, "MissingPrompt", "it has none"),
        ({"prompt": None}, "NullPrompt", "column `prompt` is null"),
        ({"prompt": ""}, "EmptyPrompt", "column `prompt` is empty"),
        ({"prompt": 3}, "WrongType", "must be text, not a number"),
        ({"prompt": True}, "WrongType", "must be text, not true or false"),
        ({"prompt": ["a"]}, "WrongType", "must be text, not a list"),
        ({"prompt": {"a": 1}}, "WrongType", "must be text, not an object"),
        ({"prompt": "ab\ud800"}, "LoneSurrogate", "lone surrogate at character 2"),
    ],
)
def test_a_bad_prompt_makes_an_error_row_that_says_where(
    values: dict[str, Any], error_class: str, words: str
) -> None:
    good, bad, after = stage([{"prompt": "a"}, values, {"prompt": "b"}])
    assert (good.error_class, after.error_class) == (None, None)
    assert bad.error_class == error_class
    assert bad.error_message is not None
    assert bad.error_message.startswith("line 2: ")
    assert words in bad.error_message
    assert (bad.prompt, bad.messages) == (None, None)


@pytest.mark.parametrize(
    ("value", "error_class"),
    [
        (None, "MissingId"),
        ("", "MissingId"),
        (1.5, "WrongType"),
        (True, "WrongType"),
        (["a"], "WrongType"),
        ("\udfff", "LoneSurrogate"),
    ],
)
def test_a_bad_id_makes_an_error_row_with_a_made_id(value: Any, error_class: str) -> None:
    row = stage_one({"k": value, "prompt": "a"}, id="k")
    assert (row.id, row.error_class) == ("p.jsonl:0", error_class)


def test_a_row_without_the_id_column_is_an_error_row() -> None:
    assert stage_one({"prompt": "a"}, id="k").error_class == "MissingId"


def test_the_second_and_later_rows_with_an_id_are_error_rows() -> None:
    rows = stage([{"k": k, "prompt": "a"} for k in ("x", "y", "x", "x")], id="k")
    assert [row.error_class for row in rows] == [None, None, "DuplicateId", "DuplicateId"]
    assert [row.id for row in rows] == ["x", "y", "x", "x"]
    assert rows[3].error_message == "line 4: id `x` belongs to row 0 (counted from 0)"


def test_an_error_row_keeps_its_carried_columns() -> None:
    assert stage_one({"prompt": None, "family": "a"}).carried == '{"family": "a"}'


def test_trouble_of_the_reader_passes_through() -> None:
    row = stage_one(Trouble(error_class="InvalidJson", message="not JSON"))
    assert (row.error_class, row.error_message) == ("InvalidJson", "line 1: not JSON")


def test_messages_are_stored_as_json_without_null_members() -> None:
    messages = [{"role": "user", "content": "hé", "name": None}]
    row = stage_one({"m": messages, "prompt": "carried"}, messages="m")
    assert row.messages == '[{"role": "user", "content": "hé"}]'
    assert (row.prompt, row.carried) == (None, '{"prompt": "carried"}')


@pytest.mark.parametrize(
    ("value", "error_class", "words"),
    [
        (None, "NullPrompt", "is null"),
        ([], "EmptyPrompt", "holds no message"),
        (3, "WrongType", "must be a list, not a number"),
        ("hi", "WrongType", "must be a list of messages, or its JSON text"),
        ('{"a": 1}', "WrongType", "must be a list, not an object"),
        ([3], "WrongType", "message 0 of column `m` must be an object"),
        ([{"role": "user"}], "WrongType", "message 0 of column `m` needs a text `content`"),
        ([{"role": "user", "content": "a"}, {"content": "a"}], "WrongType", "message 1 "),
        ([{"role": "user", "content": "\ud800"}], "LoneSurrogate", "lone surrogate"),
    ],
)
def test_bad_messages_make_an_error_row(value: Any, error_class: str, words: str) -> None:
    row = stage_one({"m": value}, messages="m")
    assert row.error_class == error_class
    assert words in str(row.error_message)


def test_messages_may_be_json_text() -> None:
    row = stage_one({"m": '[{"role": "user", "content": "a"}]'}, messages="m")
    assert row.messages == '[{"role": "user", "content": "a"}]'


def stage_job(values: dict[str, Any], **groups: Any) -> StagedRow:
    (row,) = stage_form([values], row_form(job_over("/p.jsonl", **groups)))
    return row


def test_a_template_makes_the_prompt_and_its_columns_are_carried() -> None:
    row = stage_job({"a": "x", "b": 2}, prompt={"template": "{a}, {b}"})
    assert (row.prompt, row.carried) == ("x, 2", '{"a": "x", "b": 2}')


def test_a_template_that_fills_to_nothing_is_an_empty_prompt() -> None:
    assert stage_job({"a": ""}, prompt={"template": "{a}"}).error_class == "EmptyPrompt"


def test_a_system_message_turns_a_prompt_into_messages() -> None:
    row = stage_job({"prompt": "hi"}, prompt={"system": "be brief"})
    assert row.prompt is None
    assert json.loads(row.messages or "") == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ]


@pytest.mark.parametrize(
    ("carry", "carried"),
    [
        ("all", '{"x": 1, "y": 2}'),
        ("none", None),
        (["y", "prompt"], '{"y": 2, "prompt": "a"}'),
        (["z"], '{"z": null}'),
    ],
)
def test_what_is_carried_can_be_chosen(carry: Any, carried: str | None) -> None:
    values = {"prompt": "a", "x": 1, "y": 2, "n": 3}
    output = {"uri": "/o", "carry": carry}
    assert stage_job(values, output=output, columns={"max_tokens": "n"}).carried == carried


def test_a_row_may_have_its_own_budget_temperature_and_seed() -> None:
    row = stage_one(
        {"prompt": "a", "n": 5, "t": 0.5, "s": 7}, max_tokens="n", temperature="t", seed="s"
    )
    assert (row.max_tokens, row.temperature, row.seed, row.carried) == (5, 0.5, 7, None)


def test_a_budget_that_cannot_be_is_an_error_row() -> None:
    assert stage_one({"prompt": "a", "n": 0}, max_tokens="n").error_class == "OutOfRange"


def test_carried_values_that_json_has_not_got_take_a_plain_form() -> None:
    values = {
        "prompt": "a",
        "nan": float("nan"),
        "list": [float("inf"), {"x": float("nan")}],
        "when": datetime(2024, 1, 2, tzinfo=UTC),
        "bytes": b"\x00\xff",
        "decimal": Decimal("1.50"),
    }
    assert json.loads(stage_one(values).carried or "") == {
        "nan": None,
        "list": [None, {"x": None}],
        "when": "2024-01-02T00:00:00+00:00",
        "bytes": "AP8=",
        "decimal": "1.50",
    }


def test_a_lone_surrogate_in_a_carried_column_is_carried_escaped() -> None:
    row = stage_one({"prompt": "a", "x": "\ud800"})
    assert row.error_class is None
    assert row.carried == '{"x": "\\ud800"}'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from(["id", "prompt", "m", "x"]), JSON), max_size=6))
def test_any_rows_can_be_staged_and_each_is_good_or_an_error(rows: list[dict[str, Any]]) -> None:
    for columns in ({"id": "id"}, {"id": "id", "messages": "m"}):
        staged = stage(rows, **columns)
        assert [row.row for row in staged] == list(range(len(rows)))
        for row in staged:
            good = row.prompt is not None or row.messages is not None
            assert good == (row.error_class is None)
        assert staged_table(staged).num_rows == len(rows)


def test_names_with_lone_surrogates_do_not_reach_a_message() -> None:
    staged_table(stage([{"\ud800": 1}]))
