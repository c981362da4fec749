"""The hash is SciPy's DCT, the search finds what comparing all finds, and edited photographs are found as often as claimed."""

from __future__ import annotations

import numpy as np
import pytest
from quality_pictures import encoded, photos

from benchmarks.leaks import EDITS
from pipegen.quality.leaks import distance, near_pairs
from pipegen.quality.looks import decode, frequencies, gray, phash, shrink


def test_the_frequencies_are_those_of_scipy() -> None:
    from scipy.fft import dctn

    grays = np.random.default_rng(0).uniform(0, 255, (32, 32)).astype(np.float32)
    low = frequencies(grays)
    np.testing.assert_allclose(low, dctn(grays.astype(np.float64), type=2)[:8, :8] / 4, rtol=1e-9, atol=1e-7)
    median = np.median(low.ravel()[1:])
    bits = [low.ravel()[0] / 1024 > 128, *(low.ravel()[1:] > median)]
    assert phash(low)[0] == int("".join("01"[int(bit)] for bit in bits), 2)


def test_the_mirror_hash_is_the_hash_of_the_mirror_image() -> None:
    for picture in photos()[:6]:
        luma = gray(np.asarray(picture.resize((32, 32)), np.float32))
        assert phash(frequencies(luma))[1] == phash(frequencies(luma[:, ::-1]))[0]


def test_distances_count_bits() -> None:
    a = np.array([0, 0, 2**64 - 1, 0b1011], np.uint64)
    assert distance(a, np.array([0, 2**64 - 1, 2**63, 0b1110], np.uint64)).tolist() == [0, 64, 63, 2]


@pytest.mark.parametrize("most", [0, 4, 8])
def test_the_search_by_bands_finds_every_pair_once(most: int) -> None:
    rng = np.random.default_rng(most)
    some = rng.integers(0, 2**64, 300, dtype=np.uint64)
    near = [some ^ np.bitwise_or.reduce(np.uint64(1) << rng.integers(0, 64, (n, 300), dtype=np.uint64), axis=0) for n in (1, 4, 8, 9)]
    hashes = np.unique(np.concatenate([some, *near]))
    wanted = np.argwhere(np.triu(distance(hashes[:, None], hashes[None]) <= most, 1))
    found = [tuple(pair) for block in near_pairs(hashes, most) for pair in block.tolist()]
    assert len(found) == len(set(found))
    assert set(found) == {tuple(pair) for pair in wanted.tolist()}


def test_edited_photographs_are_found_and_others_are_not() -> None:
    def hashes(data: bytes) -> tuple[int, int]:
        return phash(frequencies(shrink(gray(decode(data).small), 32)))

    originals = photos()
    own = np.array([hashes(encoded(picture, quality=95)) for picture in originals], np.uint64)
    others = np.triu(np.ones((len(own), len(own)), bool), 1)
    for column in (0, 1):
        assert not (distance(own[:, None, 0], own[None, :, column]) <= 8)[others].any()
    least = {
        "JPEG, quality 50": (0.98, 0.99),
        "half size": (0.94, 0.99),
        "cut 3 %": (0.1, 0.55),
        "brighter 1.3": (0.78, 0.9),
        "mirrored": (0.94, 0.99),
    }
    for name, (at_4, at_8) in least.items():
        edited = np.array([hashes(encoded(EDITS[name](picture))) for picture in originals], np.uint64)[:, 0]
        far = distance(edited, own[:, 1 if name == "mirrored" else 0])
        assert (far <= 4).mean() >= at_4, name
        assert (far <= 8).mean() >= at_8, name
