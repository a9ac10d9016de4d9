"""The chat template of a model directory, looked at before anything is started.

Every row goes through it, so what is wrong with it is wrong with all of them: there is none, or the
job sets variables that it never reads.
"""

import json
import re
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta

from jobs.fields import nearest_name
from manifests.errors import JobFileError
from manifests.job import JobSpec

_FILE = "chat_template.jinja"
_CONFIG = "tokenizer_config.json"
# Tags of the library that renders templates; they only mark what an assistant said.
_MARKS = re.compile(r"\{%-?\s*(?:end)?generation\s*-?%\}")


def check_chat_template(job: JobSpec) -> None:
    """Raise `JobFileError` unless the target has the template that the job needs."""
    if job.prompt.chat_template == "none" or job.work == "null":
        return
    source = read_template(Path(job.target.path))
    if source is None:
        raise JobFileError(
            f"target.path {job.target.path}: its tokenizer has no chat template ({_FILE}); add it, "
            "or set prompt.chat_template to none for prompts that need none"
        )
    unread = sorted(job.prompt.chat_template_args.keys() - variables(source))
    if unread:
        known = sorted(variables(source))
        raise JobFileError(
            f"prompt.chat_template_args: the target's chat template reads no `{unread[0]}`"
            f"{nearest_name(unread[0], known)}; remove it"
        )


def read_template(directory: Path) -> str | None:
    """The template's source, or None where there is none."""
    if (directory / _FILE).is_file():
        return (directory / _FILE).read_text("utf-8")
    if not (directory / _CONFIG).is_file():
        return None
    return _configured(directory / _CONFIG)


def _configured(path: Path) -> str | None:
    """What an older tokenizer's configuration says: one template, or several with names."""
    try:
        found: Any = json.loads(path.read_text("utf-8")).get("chat_template")
    except (ValueError, AttributeError) as error:
        raise JobFileError(f"{path}: it does not hold a JSON object ({error}); mend it") from None
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found}
        found = named.get("default")
    return found if isinstance(found, str) else None


def variables(source: str) -> frozenset[str]:
    """The variables that a template reads; `JobFileError` where it is none."""
    environment = jinja2.Environment(  # noqa: S701 - parsed, never rendered
        extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do"]
    )
    try:
        tree = environment.parse(_MARKS.sub("", source))
    except jinja2.TemplateSyntaxError as error:
        raise JobFileError(
            f"the target's chat template cannot be read (line {error.lineno}: {error.message}); "
            "save the tokenizer again"
        ) from None
    return frozenset(jinja2.meta.find_undeclared_variables(tree))
