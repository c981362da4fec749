"""Augmenters of tsaug as steps of a spec. The arguments of a function are those of the class, with its defaults."""

from __future__ import annotations

from pipegen.spec.peers import converting as c

TITLE = "tsaug"
IGNORED = frozenset({"seed"})  # arguments that change nothing here


def add_noise(
    loc=0.0, scale=0.1, distr="gaussian", kind="additive", per_channel=True, normalize=True, repeats=1, prob=1.0
) -> c.Steps:  # fmt: skip
    nearest = c.step("random_jitter", prob, std=c.span(*c.one_or_pair("scale", scale if c.is_pair(scale) else abs(scale), 0)))
    c.only("loc", loc, 0, why="noise has the mean 0")
    c.only("distr", distr, "gaussian", why="noise is normal")
    c.only("kind", kind, "additive", why="noise is added; `random_scale` multiplies")
    c.only("per_channel", per_channel, True, why="the noise of each value is its own")
    _once(repeats)
    if normalize is not False:
        c.refuse("tsaug's `scale` is a share of the range of each channel, and `std` is in the units of the values", "normalize", nearest)
    return nearest


def resize(size, repeats=1, prob=1.0) -> c.Steps:
    _once(repeats)
    return c.step("resample", prob, length=c.whole("size", size))


def _once(repeats: int) -> None:
    c.only("repeats", repeats, 1, why="each epoch draws anew")
