"""Jobs whose target looks both ways, so that it has no exact prefix: LLaDA-8B and Dream-7B.

Such a target is decoded over a canvas whose keys and values are frozen while a block is open. The
job file says what of them stays visible, so that its outputs are never taken for the target's own.
"""

from typing import Any, Literal

CacheContext = Literal["prefix", "prefix+suffix"]

# Nothing of the sort exists without exact pages.
WITHOUT_PAGES = {"full_drafts": "drop", "fused_store": False, "padded": False}


def without_pages(settings: Any) -> Any:
    """Raw `decode` settings; those about pages are off, unless they are set, in a canvas job."""
    if isinstance(settings, dict) and settings.get("cache_context") is not None:
        return WITHOUT_PAGES | settings
    return settings


def require_no_pages(context: CacheContext | None, **settings: object) -> None:
    """Raise ValueError if a canvas job asks for something that needs exact pages."""
    for name, off in WITHOUT_PAGES.items():
        if context is not None and settings[name] != off:
            raise ValueError(
                f"decode.{name} {settings[name]} needs exact prefix pages, which a job with "
                "decode.cache_context has none of; remove it"
            )


def require_context(
    context: CacheContext | None, *, target: str, family: str, exact_prefix: bool
) -> None:
    """Raise ValueError unless a job says what stays visible exactly where its target needs that."""
    if not exact_prefix and context is None:
        raise ValueError(
            f"target.path {target} is of the {family} family, which looks both ways and has no "
            "exact prefix cache; set decode.cache_context to prefix (Fast-dLLM's prefix cache) or "
            "prefix+suffix (the masked suffix stays visible too); outputs are then recorded as not "
            "distribution preserving"
        )
    if exact_prefix and context is not None:
        raise ValueError(
            f"decode.cache_context {context} has no meaning for target.path {target}, of the "
            f"{family} family, whose prefix cache is exact; remove it"
        )


def why_not_preserving(context: CacheContext) -> str:
    """Why samples of a canvas job do not follow the target's own distribution."""
    return (
        f"decode.cache_context is {context}, so keys and values outside a block are frozen when "
        "it opens, which only approximates a target that looks both ways"
    )
