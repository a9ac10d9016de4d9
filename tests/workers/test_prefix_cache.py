import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.prefix_cache import NO_PAGE, CacheFullError, PrefixCache


def _chain(cache: PrefixCache, names: str) -> list[int]:
    """Hold and fill the pages of a chain of blocks."""
    pages: list[int] = []
    for name in names:
        page, is_new = cache.acquire(pages[-1] if pages else NO_PAGE, name.encode())
        if is_new:
            cache.mark_clean(page)
        pages.append(page)
    return pages


def test_equal_chains_share_pages_and_others_do_not() -> None:
    cache = PrefixCache(8)
    first, second = _chain(cache, "abc"), _chain(cache, "abd")
    assert first[:2] == second[:2]
    assert first[2] != second[2]
    assert (cache.hits, cache.misses) == (2, 4)
    cache.check()


def test_equal_blocks_behind_other_prefixes_are_other_pages() -> None:
    cache = PrefixCache(8)
    assert _chain(cache, "ab")[1] != _chain(cache, "cb")[1]


def test_released_pages_are_found_again() -> None:
    cache = PrefixCache(4)
    pages = _chain(cache, "ab")
    cache.release(pages)
    assert cache.num_available == 4
    assert _chain(cache, "ab") == pages
    cache.check()


def test_the_least_recently_used_leaf_makes_room() -> None:
    cache = PrefixCache(3)
    old, new = _chain(cache, "a"), _chain(cache, "bc")
    cache.release(old)
    cache.release(new)
    _chain(cache, "d")
    assert cache.acquire(NO_PAGE, b"b") == (new[0], False)
    cache.check()


def test_a_full_pool_says_so() -> None:
    cache = PrefixCache(2)
    _chain(cache, "ab")
    with pytest.raises(CacheFullError, match="all 2 prefix pages are held"):
        cache.acquire(NO_PAGE, b"c")


def test_a_page_that_nobody_holds_and_nobody_wrote_is_forgotten() -> None:
    cache = PrefixCache(2)
    page, _ = cache.acquire(NO_PAGE, b"a")
    cache.release([page])
    assert cache.acquire(NO_PAGE, b"a")[1]
    cache.check()


@given(st.lists(st.tuples(st.booleans(), st.text("ab", min_size=1, max_size=4)), max_size=40))
def test_every_invariant_holds_after_every_step(steps: list[tuple[bool, str]]) -> None:
    cache, held = PrefixCache(9), []
    for take, names in steps:
        if take and cache.num_available >= len(names):
            held.append(_chain(cache, names))
        elif held:
            cache.release(held.pop(0))
        cache.check()
    for pages in held:
        cache.release(pages)
    cache.check()
    assert cache.num_available == 9
