"""Bad job files and bad inputs, and the words that each must be answered with."""

import gzip
import io
import json
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

INPUT = "input: {uri: p.jsonl}\n"
REST = "target: {path: target}\noutput: {uri: out}\n"
GOOD = b'{"id": "a", "prompt": "x"}\n{"id": "b", "prompt": "y"}\n'


class Bad(NamedTuple):
    """A job file with the files beside it, and the words of the sentence."""

    words: str
    job: str | bytes
    files: dict[str, bytes] = {"p.jsonl": GOOD}  # noqa: RUF012 - never changed


def setting(text: str, words: str) -> Bad:
    """A job file that is good but for these lines."""
    return Bad(words, INPUT + REST + text)


def source(text: str, words: str, **files: bytes) -> Bad:
    """A job over these files; their names have `_` for the dot."""
    named = {name.replace("_", "."): data for name, data in files.items()}
    return Bad(words, f"input: {{{text}}}\n{REST}", named or {"p.jsonl": GOOD})


def parquet(**columns: list[object]) -> bytes:
    """A Parquet file."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def lines(*values: object) -> bytes:
    """JSONL."""
    return "".join(json.dumps(value) + "\n" for value in values).encode()


JOB_FILES = {
    "no YAML": Bad("; correct the YAML there", "input: [\n"),
    "a tab": Bad("indent with spaces", "input:\n\turi: p.jsonl\n"),
    "empty": Bad("a job file is a mapping", ""),
    "a list": Bad("a job file is a mapping", "- input\n"),
    "a text": Bad("a job file is a mapping", "input\n"),
    "no UTF-8": Bad("a job file is UTF-8 text, and this is not; save it so", b"input: \xff\n"),
    "a tag": Bad(
        "has no meaning here; write a plain value", "input: !!python/object:os.system {}\n"
    ),
    "a key twice": setting("input: {uri: q}\n", "the key `input` is written twice; keep one"),
    "a key that is a number": setting("1: 2\n", "the key 1 is not text; quote it"),
    "a dotted key": setting("decode.max_tokens: 4\n", "write `decode.max_tokens` as nested groups"),
    "no input": Bad("`input` is missing", REST),
    "no target": Bad("`target` is missing", INPUT + "output: {uri: out}\n"),
    "no output": Bad("`output` is missing", INPUT + "target: {path: target}\n"),
    "no uri": Bad("`input.uri` is missing", "input: {limit: 3}\n" + REST),
    "an unknown group": setting("decoding: {max_tokens: 4}\n", "did you mean `decode`?"),
    "an unknown key": setting("decode: {max_token: 4}\n", "did you mean `decode.max_tokens`?"),
    "a key of another group": setting("temperature: 1\n", "did you mean `decode.temperature`?"),
    "a group that is a number": setting("decode: 4\n", "`decode`: input should be an object"),
    "text for a number": setting("decode: {max_tokens: many}\n", "should be a valid integer"),
    "a number in quotes": setting('decode: {max_tokens: "4"}\n', "should be a valid integer"),
    "a negative number": setting("decode: {max_tokens: -4}\n", "greater than or equal to 1"),
    "an infinite number": setting(
        "decode: {temperature: .inf}\n", "is not a finite number; write one"
    ),
    "an unknown rule": setting("decode: {rule: loose}\n", "input should be 'strict', "),
    "tau without its rule": setting("decode: {tau: 0.9}\n", "belongs to the rules threshold"),
    "a rule without its tau": setting("decode: {rule: threshold}\n", "needs decode.tau"),
    "top-p at temperature 0": setting("decode: {top_p: 0.5}\n", "no effect at temperature 0"),
    "least above most": setting("decode: {min_tokens: 9, max_tokens: 8}\n", "is larger than"),
    "a drafter without files": setting("drafter: {method: spot}\n", "needs drafter.path"),
    "files without a drafter": setting("drafter: {path: nowhere}\n", "nowhere"),
    "a template without columns": setting("prompt: {template: hello}\n", "names no column"),
    "a template with a lone brace": setting("prompt: {template: 'a {'}\n", "a lone { at"),
    "a system message without a template": setting(
        "prompt: {system: s, chat_template: none}\n", "prompt.system needs a chat template"
    ),
    "an argument that is never read": setting(
        "prompt: {chat_template_args: {enable_thinkin: false}}\n", "did you mean `enable_thinking`"
    ),
    "an argument that is not the template's": setting(
        "prompt: {chat_template_args: {tokenize: true}}\n", "is not a variable of a template"
    ),
    "no target directory": Bad(
        "is not a directory: give a model directory",
        INPUT + "target: {path: nowhere}\noutput: {uri: out}\n",
    ),
    "a scorer that is not there": setting("stats: {scorer: 'absent:score'}\n", "absent"),
}

INPUTS = {
    "a missing file": source("uri: q.jsonl", "q.jsonl: there is no such file"),
    "a glob without a match": source('uri: "*.csv"', "no file matches"),
    "an empty list": source("uri: []", "input.uri is an empty list"),
    "a file twice": source("uri: [p.jsonl, p.jsonl]", "the file is listed twice"),
    "a directory": source("uri: target", "is a directory, and not a saved dataset"),
    "an unknown ending": source("uri: p.txt", "the name must end in one of", p_txt=GOOD),
    "another scheme": source("uri: 'ftp://host/p.jsonl'", "ftp://host/p.jsonl"),
    "an empty file": source("uri: p.jsonl", "the file is empty", p_jsonl=b""),
    "blank lines": source("uri: p.jsonl", "there is no row in it", p_jsonl=b"\n \n\n"),
    "no JSON at all": source(
        "uri: p.jsonl", "; mend the rows, or set the input.format", p_jsonl=b"plain\ntext\n"
    ),
    "a JSON list": source("uri: p.jsonl", "not a JSON object", p_jsonl=b"[1]\n[2]\n"),
    "a JSON file in one piece": source(
        "uri: p.jsonl", "no row can be used", p_jsonl=json.dumps([{"a": 1}], indent=1).encode()
    ),
    "UTF-16": source("uri: p.jsonl", "no row can be used", p_jsonl=GOOD.decode().encode("utf-16")),
    "no prompt column": source(
        "uri: p.jsonl",
        "no row has a column `prompt`; did you mean `promt`",
        p_jsonl=lines({"promt": "a"}),
    ),
    "no id column": source("uri: p.jsonl, columns: {id: key}", "no row has a column `key`"),
    "no column of settings": source(
        "uri: p.jsonl, columns: {max_tokens: n}", "input.columns.max_tokens: no row has"
    ),
    "requests as rows": source(
        "uri: p.jsonl",
        "no row has a column `prompt`",
        p_jsonl=lines({"custom_id": "a", "body": {"messages": []}}),
    ),
    "rows as requests": source(
        "uri: p.jsonl, format: openai", "no row can be used; the first, p.jsonl, line 1: "
    ),
    "requests of another kind": source(
        "uri: p.jsonl, format: openai",
        "only POST /v1/chat/completions can be served",
        p_jsonl=lines({"custom_id": "a", "url": "/v1/embeddings", "body": {}}),
    ),
    "columns of requests": source(
        "uri: p.jsonl, format: openai, columns: {id: id}", "input.columns.id has no effect"
    ),
    "two sources of prompts": source(
        "uri: p.jsonl, columns: {prompt: prompt, messages: m}", "`messages` replaces `prompt`"
    ),
    "a torn archive": source(
        "uri: p.jsonl.gz",
        "it cannot be read: Truncated compressed stream; fetch it again",
        p_jsonl_gz=gzip.compress(GOOD)[:-9],
    ),
    "no archive": source("uri: p.jsonl.gz", "it cannot be read", p_jsonl_gz=GOOD),
    "packed Parquet": source("uri: p.parquet.gz", "compressed inside", p_parquet_gz=GOOD),
    "no Parquet": source(
        "uri: p.parquet", "cannot be read as Parquet; write it again", p_parquet=GOOD
    ),
    "torn Parquet": source(
        "uri: p.parquet",
        "cannot be read as Parquet; write it again",
        p_parquet=parquet(prompt=["a"])[:-20],
    ),
    "Parquet without the column": source(
        "uri: p.parquet",
        "p.parquet has no column `prompt`; it has text",
        p_parquet=parquet(text=["a"]),
    ),
    "Parquet with numbers": source(
        "uri: p.parquet",
        "holds int64, not text; name a column with text",
        p_parquet=parquet(prompt=[1]),
    ),
    "Parquet without rows": source(
        "uri: p.parquet",
        "there is no row in it",
        p_parquet=parquet(prompt=[]),
    ),
    "CSV without a header": source("uri: p.csv", "no column `prompt`", p_csv=b"1,hello\n2,you\n"),
    "CSV with a header twice": source("uri: p.csv", "it names `a` twice", p_csv=b"a,a\n1,2\n"),
    "CSV with an open quote": source(
        "uri: p.csv", "p.csv, line 2: a quote that is opened", p_csv=b'prompt\n"hello\nyou\n'
    ),
    "CSV of only a header": source("uri: p.csv", "there is no row in it", p_csv=b"prompt\n"),
    "a filter that is none": source("uri: p.jsonl, filter: 'id ='", "it is no expression"),
    "a filter with code": source(
        "uri: p.jsonl, filter: \"__import__('os').getcwd() == id\"", "cannot be used here"
    ),
    "a filter over no column": source(
        "uri: p.jsonl, filter: \"idd == 'a'\"", "input.filter: no row has a column `idd`"
    ),
    "a filter of other types": source("uri: p.jsonl, filter: id > 3", "it cannot be evaluated"),
    "a filter that drops all": source(
        "uri: p.jsonl, filter: \"id == 'z'\"", "is true for none of the 2 rows"
    ),
    "a carried column that is not there": Bad(
        "output.carry: no row has a column `x`",
        INPUT + "target: {path: target}\noutput: {uri: out, carry: [x]}\n",
    ),
}

# These rows are errors of a good job: the sentence is told, and the job goes on.
ROWS = {
    "broken JSON": source(
        "uri: p.jsonl", "p.jsonl, line 3: the line is not JSON", p_jsonl=GOOD + b'{"a": \n'
    ),
    "not a number": source(
        "uri: p.jsonl", "NaN is not a JSON number", p_jsonl=GOOD + b'{"prompt": "a", "x": NaN}\n'
    ),
    "bad bytes": source(
        "uri: p.jsonl",
        "p.jsonl, line 3: the line is not UTF-8 text",
        p_jsonl=GOOD + b'{"prompt": "\xff"}\n',
    ),
    "a lone surrogate": source(
        "uri: p.jsonl", "a lone surrogate at character 0", p_jsonl=GOOD + b'{"prompt": "\\ud800"}\n'
    ),
    "a null prompt": source(
        "uri: p.jsonl", "column `prompt` is null", p_jsonl=GOOD + lines({"prompt": None})
    ),
    "an empty prompt": source(
        "uri: p.jsonl", "column `prompt` is empty", p_jsonl=GOOD + lines({"prompt": ""})
    ),
    "a number for a prompt": source(
        "uri: p.jsonl", "must be text, not a number", p_jsonl=GOOD + lines({"prompt": 3})
    ),
    "an id twice": source(
        "uri: p.jsonl, columns: {id: id}",
        "id `a` belongs to row 0",
        p_jsonl=GOOD + lines({"id": "a", "prompt": "z"}),
    ),
    "no id": source(
        "uri: p.jsonl, columns: {id: id}",
        "column `id` holds no id",
        p_jsonl=GOOD + lines({"prompt": "z"}),
    ),
    "a budget of zero": source(
        "uri: p.csv, columns: {max_tokens: n}",
        "column `n` is 0, and must",
        p_csv=b"prompt,n\na,5\nb,0\n",
    ),
    "a warm temperature": source(
        "uri: p.csv, columns: {temperature: t}",
        "column `t` must be a number",
        p_csv=b"prompt,t\na,1\nb,warm\n",
    ),
    "too many fields": source(
        "uri: p.csv", "p.csv, line 3: the row has 2 fields, the header 1", p_csv=b"prompt\na\nb,c\n"
    ),
    "messages without content": source(
        "uri: p.jsonl, columns: {messages: m}",
        "message 0 of column `m` needs a text `content`",
        p_jsonl=lines({"m": [{"role": "user", "content": "a"}]}, {"m": [{"role": "user"}]}),
    ),
}
