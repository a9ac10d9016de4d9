"""YAML scalars and keys, as a job file's author means them."""

import pytest
import yaml

from jobs.yaml_core import parse_yaml, problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-7", -7),
        ("010", 10),
        ("true", True),
        ("null", None),
        ("", None),
        ("~", None),
        ("yes", "yes"),
        ("no", "no"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("[1, a]", [1, "a"]),
    ],
)
def test_a_plain_scalar_means_what_it_looks_like(text: str, value: object) -> None:
    parsed = parse_yaml(text)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: the key `a` is written twice"),
        ("1: a", "line 1: the key 1 is not text"),
        ("a: .inf", "line 1: .inf is not a finite number"),
        ("a: !!python/name:os.system x", "has no meaning here; write a plain value"),
        ("a: [", "line 1: "),
    ],
)
def test_a_problem_is_one_line_that_says_where(text: str, words: str) -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        parse_yaml(text)
    assert words in problem(caught.value)
    assert "\n" not in problem(caught.value)
