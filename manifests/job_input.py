"""The groups of a job file that say what is decoded: `input` and `prompt`."""

from typing import Literal

from pydantic import model_validator

from manifests.settings import Group, Positive, semantic

InputFormat = Literal["auto", "jsonl", "parquet", "csv", "openai", "dataset"]
# Arguments of `apply_chat_template` that are not the template's.
_RESERVED_ARGUMENTS = frozenset(
    {"conversation", "messages", "tokenize", "add_generation_prompt", "chat_template", "padding"}
    | {"truncation", "max_length", "return_tensors", "return_dict", "tokenizer_kwargs", "tools"}
    | {"documents", "continue_final_message", "return_assistant_tokens_mask"}
)


class Columns(Group):
    """Which input columns hold what."""

    id: str | None = semantic(
        None, "column with the row id; without it ids are made from file name and row number"
    )
    prompt: str | None = semantic(
        None, "column with the prompt text; `prompt` unless messages or a template are used"
    )
    messages: str | None = semantic(
        None, "column with chat messages (list of {role, content}, or its JSON text)"
    )
    max_tokens: str | None = semantic(
        None, "column with the row's own output budget (tokens); null takes decode.max_tokens"
    )
    temperature: str | None = semantic(
        None, "column with the row's own temperature; null takes decode.temperature"
    )
    seed: str | None = semantic(
        None,
        "column with the row's own seed; such a row is decoded as in a job with this seed.value "
        "and seed.scope row; null takes the job's",
    )

    @property
    def named(self) -> dict[str, str]:
        """The columns that are named, by the field that names them."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


class Input(Group):
    """The prompt dataset."""

    uri: str | tuple[str, ...] = semantic(
        ...,
        "a file, a glob such as `data/*.jsonl`, a saved dataset's directory, or a list of these; "
        "rows are taken in this order, the files of a glob by name",
    )
    format: InputFormat = semantic(
        "auto",
        "`auto` goes by the name (.jsonl, .ndjson, .parquet, .csv, .tsv, text also .gz or .zst; a "
        "directory is a saved Hugging Face dataset); `openai` is OpenAI batch JSONL",
    )
    delimiter: str | None = semantic(
        None,
        "what divides the fields of CSV files (one character); without it a comma, or a tab where "
        "the name says .tsv",
    )
    columns: Columns = semantic(Columns(), "column mapping")
    filter: str | None = semantic(
        None,
        "keep only rows for which this is true, as in `lang == 'en' and length(prompt) < 2000`",
    )
    limit: Positive | None = semantic(
        None, "use only the first rows (count), after the filter, over all files"
    )

    @property
    def uris(self) -> tuple[str, ...]:
        """`uri` as a tuple."""
        return (self.uri,) if isinstance(self.uri, str) else self.uri

    @model_validator(mode="after")
    def _supported(self) -> "Input":
        if not self.uris:
            raise ValueError("input.uri is an empty list; name at least one file")
        if self.format == "openai" and (named := self.columns.named):
            raise ValueError(
                f"input.columns.{next(iter(named))} has no effect with input.format openai, which "
                "says itself where everything is; remove it"
            )
        if self.columns.prompt is not None and self.columns.messages is not None:
            raise ValueError("input.columns: `messages` replaces `prompt`; remove one of the two")
        if self.delimiter is not None:
            _require_delimiter(self.delimiter, format_=self.format)
        return self


def _require_delimiter(delimiter: str, *, format_: InputFormat) -> None:
    if format_ not in ("auto", "csv"):
        raise ValueError(f"input.delimiter has no effect with input.format {format_}; remove it")
    if len(delimiter) != 1 or delimiter in '"\r\n\0' or not delimiter.isascii():
        raise ValueError(
            f"input.delimiter is {delimiter!r}; give one ASCII character that is neither a quote "
            "nor a line break, as ; or a tab"
        )


class Prompt(Group):
    """How a row becomes what the target reads."""

    template: str | None = semantic(
        None,
        "prompt text with columns as {column}; {{ and }} are braces. Without it the prompt or "
        "messages column is taken as it is",
    )
    system: str | None = semantic(
        None, "system message put before rows that have none of their own"
    )
    chat_template: Literal["tokenizer", "none"] = semantic(
        "tokenizer",
        "`tokenizer`: a text prompt is one user message of the tokenizer's chat template; `none`: "
        "the text goes to the tokenizer as it is",
    )
    chat_template_args: dict[str, str | bool | int | float | None] = semantic(
        {}, "variables for the chat template, as in {enable_thinking: false}"
    )

    @model_validator(mode="after")
    def _supported(self) -> "Prompt":
        if self.chat_template == "none":
            for name, value in (
                ("system", self.system),
                ("chat_template_args", self.chat_template_args or None),
            ):
                if value is not None:
                    raise ValueError(
                        f"prompt.{name} needs a chat template, and prompt.chat_template is none; "
                        "remove one of the two"
                    )
        for name in self.chat_template_args.keys() & _RESERVED_ARGUMENTS:
            raise ValueError(
                f"prompt.chat_template_args: `{name}` is not a variable of a template; remove it"
            )
        return self


def require_prompt_source(source: Input, prompt: Prompt) -> None:
    """Raise ValueError unless exactly one setting says where prompts come from."""
    columns = source.columns
    has_messages = columns.messages is not None or source.format == "openai"
    if prompt.template is not None and (has_messages or columns.prompt is not None):
        other = "input.format openai" if source.format == "openai" else "input.columns"
        raise ValueError(
            f"prompt.template and {other} both say what the prompt is; remove one of the two"
        )
    if prompt.chat_template == "none" and has_messages:
        raise ValueError(
            "messages need a chat template, and prompt.chat_template is none; give text prompts, "
            "or remove the setting"
        )
