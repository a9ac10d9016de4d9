from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from manifests.job_input import Prompt
from manifests.staged import StagedRow
from tests.twins import TEMPLATE, write_tokenizer
from workers.errors import RowError
from workers.tokenization import Tokenization


@pytest.fixture(scope="module")
def tokenization(tmp_path_factory: pytest.TempPathFactory) -> Tokenization:
    folder = Path(tmp_path_factory.mktemp("tokenizer"))
    write_tokenizer(folder)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    return Tokenization(tokenizer, max_positions=100, max_tokens=20, length=8)


def _ids(tokenization: Tokenization, text: str) -> tuple[int, ...]:
    return tuple(tokenization._tokenizer.encode(text, add_special_tokens=False))


def test_a_prompt_is_one_user_message(tokenization: Tokenization) -> None:
    text = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    row = StagedRow(row=0, id="a", prompt="hi")
    assert tokenization.encode(row) == _ids(tokenization, text)


def test_messages_go_through_the_template_as_they_are(tokenization: Tokenization) -> None:
    messages = '[{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}]'
    text = (
        "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )
    row = StagedRow(row=0, id="a", messages=messages)
    assert tokenization.encode(row) == _ids(tokenization, text)


def test_a_prompt_that_is_too_long_names_row_and_remedy(tokenization: Tokenization) -> None:
    with pytest.raises(RowError, match=r"row a9: .* lower decode\.max_tokens") as caught:
        tokenization.encode(StagedRow(row=9, id="a9", prompt="x" * 60))
    assert caught.value.error_class == "PromptTooLong"


def test_the_longest_prompt_that_fits_is_taken(tokenization: Tokenization) -> None:
    around = len(tokenization.encode(StagedRow(row=0, id="a", prompt="x"))) - 1
    longest = 96 - 20 - around  # 96: whole blocks of 8 within 100 positions
    assert len(tokenization.encode(StagedRow(row=0, id="a", prompt="x" * longest))) == 76
    with pytest.raises(RowError):
        tokenization.encode(StagedRow(row=0, id="a", prompt="x" * (longest + 1)))


def test_messages_that_the_template_refuses_are_a_row_error(tokenization: Tokenization) -> None:
    with pytest.raises(RowError) as caught:
        tokenization.encode(StagedRow(row=0, id="a", messages="5"))
    assert caught.value.error_class == "ChatTemplateError"


def test_the_first_stop_string_cuts_text_and_tokens(tokenization: Tokenization) -> None:
    ids = _ids(tokenization, "one. two; three.")
    assert tokenization.cut(ids, (";", ".")) == ("one", 3)
    assert tokenization.cut(ids, ("!",)) is None


def test_a_character_of_several_tokens_is_kept_whole(tokenization: Tokenization) -> None:
    ids = _ids(tokenization, "aé;b")
    assert tokenization.cut(ids, (";",)) == ("aé", 3)


def test_the_rows_own_budget_counts_against_the_positions(tokenization: Tokenization) -> None:
    tokenization.encode(StagedRow(row=0, id="a", prompt="x" * 50, max_tokens=2))
    with pytest.raises(RowError, match=r"with its max_tokens of 90 the target takes 6; shorten"):
        tokenization.encode(StagedRow(row=0, id="a", prompt="x", max_tokens=90))


def test_without_a_chat_template_a_prompt_is_encoded_as_it_is(tokenization: Tokenization) -> None:
    plain = with_prompt(tokenization, Prompt(chat_template="none"))
    assert plain.encode(StagedRow(row=0, id="a", prompt="hi")) == _ids(tokenization, "hi")


def test_arguments_reach_the_chat_template(tokenization: Tokenization) -> None:
    args = {"add_generation_prompt": False}
    with pytest.raises(ValueError, match="is not a variable"):
        Prompt(chat_template_args=args)
    tokenization._tokenizer.chat_template = "{{ messages[0].content }}{{ suffix }}"
    try:
        made = with_prompt(tokenization, Prompt(chat_template_args={"suffix": " /think"}))
        ids = made.encode(StagedRow(row=0, id="a", prompt="hi"))
    finally:
        tokenization._tokenizer.chat_template = TEMPLATE
    assert ids == _ids(tokenization, "hi /think")


def with_prompt(tokenization: Tokenization, prompt: Prompt) -> Tokenization:
    return Tokenization(
        tokenization._tokenizer, max_positions=100, max_tokens=20, length=8, prompt=prompt
    )
