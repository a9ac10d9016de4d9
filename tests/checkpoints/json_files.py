"""JSON files as released repositories have them."""

import json
from pathlib import Path


def write_json(path: Path, value: object) -> None:
    """Write a value with indents."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
