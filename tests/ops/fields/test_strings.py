"""Texts in one block of bytes: they stand for a tuple of `str`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.ops.fields.strings import ALIGNED, Collector, Strings, aligned, as_places, as_sizes, encode

texts = st.lists(st.text(st.sampled_from("ab/.-_0é日\U0001f600\udcff\0"), max_size=20), max_size=40)


@given(texts, st.data())
def test_they_read_as_a_tuple_does(given_: list[str], data: st.DataObject) -> None:
    held = Strings.hold(given_)
    assert held == tuple(given_)
    assert (len(held), list(held)) == (len(given_), given_)
    assert [held[i] for i in range(-len(given_), len(given_))] == given_ * 2
    assert held[1::2] == given_[1::2]
    assert [text for block in held.blocks() for text in block] == [encode(text) for text in given_]
    places = data.draw(st.lists(st.integers(0, len(given_) - 1), max_size=9)) if given_ else []
    taken = held.take(np.array(places, int)).take(np.arange(len(places))[::-1])
    assert taken == taken.packed() == [given_[i] for i in reversed(places)]


@given(texts)
def test_their_order_is_that_of_python(given_: list[str]) -> None:
    held = Strings.hold(given_)
    order = held.order()
    assert (held if order is None else held.take(order)) == sorted(given_)
    assert Strings.hold(sorted(given_)).order() is None
    several = Strings.join([held.below("b/"), held.below("a")])
    order = several.order()
    assert (several if order is None else several.take(order)) == sorted(several)


def test_what_stands_before_them_is_held_once() -> None:
    names = Strings.hold(["x.jpg", "y.jpg"])
    below, other = names.below("/data/"), Strings.hold(["z.jpg"]).below("/else/")
    assert below.blob is names.blob
    joined = Strings.join([below, other, below.take([1])])
    assert joined == ("/data/x.jpg", "/data/y.jpg", "/else/z.jpg", "/data/y.jpg")
    assert joined.take([3, 2]).packed().below("file:") == ("file:/data/y.jpg", "file:/else/z.jpg")
    assert bytes(joined.blob[: joined.bounds[-1]]) == b"x.jpgy.jpgz.jpgy.jpg"
    assert Strings.join([]) == ()


def test_they_are_as_small_as_they_can_be() -> None:
    collected = Collector()
    collected.add(["a" * 9] * 5)
    collected.add_bytes([b"b"])
    held = collected.strings()
    assert held == (*["a" * 9] * 5, "b")
    assert held.bounds.dtype == np.uint32
    assert held.blob.ctypes.data % ALIGNED == aligned([np.zeros((3, 2))]).ctypes.data % ALIGNED == 0
    assert (as_sizes([1, 2**32 - 1]).dtype, as_sizes([2**32]).dtype) == (np.uint32, np.int64)
    assert (as_places((), 5).dtype, as_places([1], 2**31).dtype) == (np.int32, np.int64)


def test_beyond_their_end_there_is_none() -> None:
    held = Strings.hold(["a"])
    assert held != "a"
    for place in (1, -2):
        with pytest.raises(IndexError, match="1 texts"):
            held[place]
