"""Results of a long measurement, kept part by part, so that the same command goes on with the rest.

Partial results are worth nothing to another measurement: they are dropped when its settings differ.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class PartialResults:
    """One JSON file of parts by name, replaced whole with every part."""

    def __init__(self, path: Path, *, identity: Mapping[str, Any]) -> None:
        """``identity`` says what is measured, and how."""
        self._path = path
        self._identity = json.loads(json.dumps(identity))
        self._parts: dict[str, Any] = self._stored()

    def _stored(self) -> dict[str, Any]:
        try:
            stored = json.loads(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        same = isinstance(stored, dict) and stored.get("identity") == self._identity
        return dict(stored["parts"]) if same else {}

    def get(self, name: str) -> Any:
        """A part, or None if it is still to be measured."""
        return self._parts.get(name)

    def put(self, name: str, value: Any) -> None:
        """Keep a part."""
        self._parts[name] = value
        write_json(self._path, {"identity": self._identity, "parts": self._parts})

    def remove(self) -> None:
        """The measurement is complete."""
        self._path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """A JSON file that appears whole or not at all."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """A text file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
