"""Text of models and users on its way to a terminal."""


def printable(text: str, *, limit: int | None = None) -> str:
    """The text without control characters, cut after `limit` characters."""
    cut = text if limit is None or len(text) <= limit else f"{text[:limit]}..."
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in cut)
