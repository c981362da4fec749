"""Quarter turns and transpositions: exact copies of pixels, as NumPy has them, alone and among other geometric steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipegen.errors import SpecError
from pipegen.ops.registry import transforms

pytestmark = pytest.mark.tf

SQUARE, WIDE = (24, 24), (24, 32)


def images(size: tuple[int, int], count: int = 48) -> Any:
    return np.random.default_rng(5).integers(0, 256, (count, *size, 3)).astype(np.uint8)


def build(steps: list[Any], size: tuple[int, int] = SQUARE, jit: str = "never", *, masks: bool = False) -> tuple[Any, dict[str, Any]]:
    import pipegen

    given = {"image": images(size)}
    features: dict[str, Any] = {"image": {"kind": "image"}}
    output: dict[str, Any] = {"x": "image", "dtype": "uint8"}
    if masks:
        given["mask"] = given["image"][..., 0] % 7
        features["mask"] = {"kind": "mask", "classes": 7, "of": "image"}
        output["y"] = "mask"
    spec = {
        "pipegen": 1, "source": {"arrays": {"features": features}}, "splits": {"parts": {"train": 47, "validation": 1}}, "shuffle": "none",
        "transforms": steps, "batch": {"size": 8, "remainder": "keep"}, "output": output,
    }  # fmt: skip
    return pipegen.build(spec, data=given, runtime={"jit": jit, "cache": "none"}), given


def train(pipe: Any) -> list[Any]:
    got = [batch if isinstance(batch, tuple) else (batch,) for batch in pipe.dataset("train", epoch=0).as_numpy_iterator()]
    return [np.concatenate(part) for part in zip(*got, strict=True)]


def ways(image: Any) -> list[Any]:
    """The eight, in the order of the draws of `random_d4`."""
    return [np.rot90(m, k) for m in (image, image[:, ::-1]) for k in range(4)]


@pytest.mark.parametrize(("step", "which"), [
    ({"rotate_90": {"turns": 3}}, 3), ("transpose", 5),
    pytest.param("rotate_90", 1, marks=pytest.mark.nightly), pytest.param({"rotate_90": {"turns": 2}}, 2, marks=pytest.mark.nightly),
], ids=str)  # fmt: skip
def test_images_that_are_no_squares_swap_their_sides(step: Any, which: int) -> None:
    pipe, given = build([step], WIDE, masks=True)
    image, mask = train(pipe)
    keys = list(map(int, pipe._engine.manifest.keys("train")))
    np.testing.assert_array_equal(image, [ways(given["image"][k])[which] for k in keys])
    np.testing.assert_array_equal(mask.reshape(image.shape[:3]), [ways(given["mask"][k])[which] for k in keys])


@pytest.mark.parametrize("jit", ["never", pytest.param("always", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("step", "among"), [
    ("random_d4", range(8)),
    pytest.param("random_rotate_90", (0, 1, 2, 3), marks=pytest.mark.nightly),
    pytest.param("random_transpose", (0, 5), marks=pytest.mark.nightly),
    ({"one_of": {"steps": ["transpose", {"rotate_90": {"turns": 3}}]}}, (3, 5)),
], ids=str)  # fmt: skip
def test_each_way_comes_up_and_is_a_copy(step: Any, among: Any, jit: str) -> None:
    pipe, given = build([step], jit=jit, masks=True)
    image, mask = train(pipe)
    seen = []
    for key, one, its in zip(map(int, pipe._engine.manifest.keys("train")), image, mask.reshape(-1, *SQUARE), strict=True):
        (which,) = (k for k, way in enumerate(ways(given["image"][key])) if np.array_equal(way, one))
        np.testing.assert_array_equal(its, ways(given["mask"][key])[which])
        seen.append(which)
    assert set(seen) == set(among)


def test_a_run_of_turns_and_mirrors_is_one_copy() -> None:
    from pipegen.plan import stages as s

    steps = [{"flip": {"axis": "vertical"}}, "rotate_90", "transpose", {"flip": {"axis": "both"}}, {"rotate_90": {"turns": 3}}]
    pipe, given = build(steps)
    (warp,) = (st for n in pipe._engine.executor("train").plan.nodes for st in getattr(n, "stages", ()) if isinstance(st, s.Warp))
    assert warp.turns
    assert len(warp.refs) == 5
    (image,) = train(pipe)
    want = [np.rot90(np.rot90(given["image"][int(k)][::-1]).swapaxes(0, 1)[::-1, ::-1], 3) for k in pipe._engine.manifest.keys("train")]
    np.testing.assert_array_equal(image, want)


@pytest.mark.nightly
@pytest.mark.parametrize("size", [pytest.param(SQUARE, marks=pytest.mark.nightly), WIDE])
def test_among_resampling_steps_it_is_part_of_their_matrix(size: tuple[int, int]) -> None:
    """A zoom about the centre and a quarter turn commute, so that the bits are those of the turned zoom."""
    zoom = {"zoom": {"factor": 1.5, "fill": {"constant": 0}}}
    turn = {"rotate_90": {"fill": {"constant": 0}}}
    plain, _ = build([zoom], size)
    turned, _ = build([zoom, turn], size)
    np.testing.assert_array_equal(train(turned)[0], np.rot90(train(plain)[0], axes=(1, 2)))
    assert sum(type(st).__name__ == "Warp" for n in turned._engine.executor("train").plan.nodes for st in getattr(n, "stages", ())) == 1


@pytest.mark.parametrize(("steps", "says"), [
    (["random_rotate_90"], "makes some images 32×24, and leaves others 24×32"),
    ([{"one_of": {"steps": ["transpose", "random_invert"]}}], "a policy does it to some examples only"),
])  # fmt: skip
def test_some_images_of_another_shape_are_a_finding(steps: list[Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        build(steps, WIDE)


def test_a_size_that_is_not_known_is_a_finding() -> None:
    from pipegen.errors import OpError
    from pipegen.ops.traits import ANY_IMAGE

    for name in ("rotate_90", "transpose", "random_d4"):
        with pytest.raises(OpError, match="they differ from image to image"):
            transforms()[name]().infer(ANY_IMAGE)
