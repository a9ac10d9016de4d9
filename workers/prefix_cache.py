"""Prefix pages, shared between samples by the chain of their blocks.

A page holds the keys and values of one finished block and is named by (parent page, tokens), so two
samples with equal prefixes hold equal pages. A page is *in flight* from its acquisition until the
forward that writes it has run; only clean pages are reused later, and a page without holders stays
until its place is needed (least recently used first, leaves first).

Invariants, recomputed by ``check``: every page is free, in flight or clean; in-flight pages have
holders; a page's parent is present; holders and children are counted right.
"""

from collections import OrderedDict
from dataclasses import dataclass

NO_PAGE = -1


class CacheFullError(RuntimeError):
    """No page is free or unused; admission must prevent this."""


@dataclass(slots=True, kw_only=True)
class Page:
    """One page in use."""

    parent: int
    tokens: bytes
    holders: int = 0
    children: int = 0
    clean: bool = False


class PrefixCache:
    """Hands out page numbers of a fixed pool; the keys and values live elsewhere."""

    def __init__(self, num_pages: int) -> None:
        self._num_pages = num_pages
        self._free = list(range(num_pages - 1, -1, -1))
        self._pages: dict[int, Page] = {}
        self._by_name: dict[tuple[int, bytes], int] = {}
        self._unused: OrderedDict[int, None] = OrderedDict()  # clean, no holders; oldest first
        self.hits = 0
        self.misses = 0

    @property
    def num_available(self) -> int:
        """Pages that can be handed out now."""
        return len(self._free) + len(self._unused)

    @property
    def num_held(self) -> int:
        """Pages that some sample holds."""
        return len(self._pages) - len(self._unused)

    def acquire(self, parent: int, tokens: bytes) -> tuple[int, bool]:
        """Hold the page of a block behind ``parent`` (-1: the first block).

        Returns:
            The page, and whether the caller must have it written.
        """
        found = self._by_name.get((parent, tokens))
        if found is not None:
            self._hold(found)
            self.hits += 1
            return found, False
        self.misses += 1
        page = self._take()
        self._pages[page] = Page(parent=parent, tokens=tokens, holders=1)
        self._by_name[parent, tokens] = page
        if parent != NO_PAGE:
            self._pages[parent].children += 1
        return page, True

    def mark_clean(self, page: int) -> None:
        """The forward that writes the page has run."""
        self._pages[page].clean = True

    def is_clean(self, page: int) -> bool:
        """Whether the page can be read."""
        return self._pages[page].clean

    def release(self, pages: list[int]) -> None:
        """Let go of a chain of pages, given first block first."""
        for page in reversed(pages):
            entry = self._pages[page]
            entry.holders -= 1
            if entry.holders == 0 and entry.clean:
                self._unused[page] = None
            elif entry.holders == 0:
                self._drop(page)

    def _hold(self, page: int) -> None:
        self._pages[page].holders += 1
        self._unused.pop(page, None)

    def _take(self) -> int:
        if not self._free:
            self._evict()
        return self._free.pop()

    def _evict(self) -> None:
        leaf = next((p for p in self._unused if self._pages[p].children == 0), None)
        if leaf is None:
            raise CacheFullError(f"all {self._num_pages} prefix pages are held")
        self._drop(leaf)

    def _drop(self, page: int) -> None:
        entry = self._pages.pop(page)
        del self._by_name[entry.parent, entry.tokens]
        self._unused.pop(page, None)
        if entry.parent != NO_PAGE:
            self._pages[entry.parent].children -= 1
        self._free.append(page)

    def check(self) -> None:
        """Recompute every invariant; raises AssertionError with what is wrong."""
        assert sorted([*self._free, *self._pages]) == list(range(self._num_pages)), "lost pages"
        assert len(self._by_name) == len(self._pages), "names and pages differ"
        children = dict.fromkeys(self._pages, 0)
        for page, entry in self._pages.items():
            assert self._by_name[entry.parent, entry.tokens] == page, f"page {page} misnamed"
            assert entry.holders > 0 or entry.clean, f"page {page} in flight without holders"
            assert (entry.holders == 0) == (page in self._unused), f"page {page} miscounted"
            if entry.parent != NO_PAGE:
                children[entry.parent] += 1
        for page, entry in self._pages.items():
            assert entry.children == children[page], f"page {page} counts wrong children"
