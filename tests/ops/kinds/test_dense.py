"""Dense maps: geometry resamples them with their image, vectors turn and scale, and colour leaves them alone."""

from __future__ import annotations

import json
from pathlib import Path
from pipes import at
from typing import Any

import numpy as np
import pytest

from pipegen.errors import SpecError

COUNT, HEIGHT, WIDTH = 16, 40, 48
FILL = {"fill": {"constant": 0}}
FLIP, TURN = {"flip": {"axis": "horizontal"}}, "rotate_90"
MOVES: list[Any] = [
    {"random_flip": {"axis": "both", **FILL}},
    {"random_affine": {"degrees": 25, "x": 0.05, "factor": [0.8, 1.3], **FILL}},
    {"random_crop": {"size": [32, 40]}},
]
POLICY = {"one_of": {"steps": [{"random_rotation": {"degrees": 30, **FILL}}, {"random_shear": {"degrees": 20, **FILL}}, {"flip": FILL}]}}


def places() -> Any:
    """Images whose pixel (x, y) is the colour (x, y, 255)."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return np.stack([np.stack([x, y, np.full_like(x, 255)], -1)] * COUNT).astype(np.float32)


def flows() -> Any:
    """A vector for each record, the same at all of its pixels."""
    vectors = np.random.default_rng(2).uniform(-6, 6, (COUNT, 1, 1, 2))
    return np.broadcast_to(vectors, (COUNT, HEIGHT, WIDTH, 2)).astype(np.float32)


def spec(steps: list[Any], features: dict[str, Any], **sections: Any) -> dict[str, Any]:
    image = {"image": {"kind": "image", "range": [0, 255]}}
    return {
        "pipegen": 1, "source": {"arrays": {"features": {**image, **features}}}, "splits": {"parts": {"train": COUNT - 4, "validation": 4}},
        "shuffle": "none", "transforms": steps, "batch": {"size": 6, "remainder": "keep"}, "output": {"x": "image", "y": [*features]},
        **sections,
    }  # fmt: skip


def build(steps: list[Any], features: dict[str, Any], data: dict[str, Any], jit: str = "never", **sections: Any) -> Any:
    import pipegen

    return pipegen.build(spec(steps, features, **sections), data={"image": places(), **data}, runtime={"jit": jit, "cache": "none"})


def stream(pipe: Any, epoch: int = 0) -> tuple[Any, ...]:
    batches = list(at(pipe, epoch).as_numpy_iterator())
    return tuple(np.concatenate([part[i] for part in ([x, *y] for x, y in batches)]) for i in range(1 + len(batches[0][1])))


def records(pipe: Any) -> list[int]:
    return [int(Path(key).stem) for key in pipe._engine.manifest.keys("train")]


@pytest.mark.by_day(2)
@pytest.mark.tf
@pytest.mark.parametrize("jit", ["never", pytest.param("always", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("steps", [
    MOVES, [POLICY],
    *(pytest.param(steps, marks=pytest.mark.nightly) for steps in (
        [{"random_resized_crop": {"size": [36, 30]}}],
        [{"resize": {"size": [40, 48]}}, {"random_resized_crop": {"size": [40, 48], "probability": 0.5}}],
        [{"center_crop": {"size": 40}}, "random_d4"],
        [{"random_perspective": {"x": 0.1, "y": 0.1, **FILL}}],
        [{"random_elastic": {"alpha": 40, "sigma": 6, "probability": 0.7, **FILL}}],
        [{"random_thin_plate_spline": {"x": 0.05, "y": 0.05, **FILL}}],
    )),
], ids=["moves", "one_of", "resized_crop", "sometimes", "d4", "perspective", "elastic", "spline"])  # fmt: skip
def test_vectors_point_from_where_a_place_is_seen_to_where_their_end_is(steps: list[Any], jit: str) -> None:
    """The image says which place each pixel shows; the place at the end of its vector is the one that lay there before."""
    pipe = build(steps, {"flow": {"kind": "dense", "values": "vectors"}}, {"flow": flows()}, jit)
    seen = 0
    for image, flow, was in zip(*stream(pipe), flows()[records(pipe), 0, 0], strict=True):
        height, width = image.shape[:2]
        clear = image[..., 2] > 254.9
        for y, x in np.argwhere(clear)[:: max(1, clear.sum() // 40)]:
            to = flow[y, x] + (x, y)
            left, top = int(np.floor(to[0])), int(np.floor(to[1]))
            if not (0 <= left < width - 1 and 0 <= top < height - 1 and clear[top : top + 2, left : left + 2].all()):
                continue
            across, down = to - (left, top)
            rows = image[top, left : left + 2] * (1 - down) + image[top + 1, left : left + 2] * down
            end = (rows[0] * (1 - across) + rows[1] * across)[:2]
            np.testing.assert_allclose(end - image[y, x, :2], was, atol=0.4)
            seen += 1
    assert seen > 60


@pytest.mark.tf
@pytest.mark.parametrize(("step", "then"), [
    (FLIP, lambda flow: flow[:, :, ::-1] * (-1, 1)),
    ("transpose", lambda flow: flow.transpose(0, 2, 1, 3)[..., ::-1]),
    ({"resize": {"size": [20, 96]}}, lambda flow: np.broadcast_to(flow[:, :1, :1] * (2, 0.5), (COUNT, 20, 96, 2))),
    ({"center_crop": {"size": 20}}, lambda flow: flow[:, 10:30, 14:34]),
])  # fmt: skip
def test_numpy_says_each_number(step: Any, then: Any) -> None:
    pipe = build([step], {"flow": {"kind": "dense", "values": "vectors"}}, {"flow": flows()})
    np.testing.assert_array_equal(stream(pipe)[1], then(flows())[records(pipe)].astype(np.float32))


@pytest.mark.tf
def test_numbers_are_those_of_a_mask_or_of_an_image_and_colour_leaves_them_alone() -> None:
    """At the nearest pixel a map is what a mask is, and bilinearly what an image is that moves with it; a step that names it changes it."""
    ids = np.random.default_rng(1).integers(0, 200, (COUNT, HEIGHT, WIDTH), np.uint8)
    steps = [*MOVES, {"resize": {"size": [24, 30]}}, {"random_brightness": {"factor": 0.5}}]
    features: dict[str, Any] = {
        "mask": {"kind": "mask"}, "near": {"kind": "dense", "interpolation": "nearest"}, "depth": {"kind": "dense"},
        "other": {"kind": "image", "of": "image", "range": [0, 255]}, "scaled": {"kind": "dense"},
    }  # fmt: skip
    data = dict.fromkeys(features, ids) | {"other": ids[..., None].astype(np.float32)}
    steps.append({"rescale": {"scale": 0.5, "offset": 1, "feature": "scaled"}})
    for epoch in (0, 1):
        _, mask, near, depth, other, scaled = stream(build(steps, features, data), epoch)
        assert near.dtype == depth.dtype == np.float32
        np.testing.assert_array_equal(near, mask)
        np.testing.assert_array_equal(depth, other)
        np.testing.assert_array_equal(scaled, depth * np.float32(0.5) + 1)


@pytest.mark.tf
def test_files_of_each_form(tmp_path: Path) -> None:
    """A `.flo`, a `.npy` and a 16-bit PNG hold what an array holds; a file of another size than its image is named."""
    from PIL import Image

    import pipegen
    from pipegen.errors import DataError

    depth = np.random.default_rng(0).integers(0, 60_000, (COUNT, HEIGHT, WIDTH), np.uint16)
    for name in ("image", "flo", "npy", "deep", "map"):
        (tmp_path / name).mkdir()
    for i, flow in enumerate(flows()):
        Image.fromarray(places()[i].astype(np.uint8)).save(tmp_path / f"image/{i:02}.png")
        (tmp_path / f"flo/{i:02}.flo").write_bytes(b"PIEH" + np.array([WIDTH, HEIGHT], "<i4").tobytes() + flow.astype("<f4").tobytes())
        np.save(tmp_path / f"npy/{i:02}.npy", flow)
        Image.fromarray(depth[i]).save(tmp_path / f"deep/{i:02}.png")
        np.save(tmp_path / f"map/{i:02}.npy", depth[i])
    features = {
        "image": {"kind": "image", "path": "image"}, "a": {"kind": "dense", "path": "flo/*.flo", "format": "flo", "values": "vectors"},
        "b": {"kind": "dense", "path": "npy/*.npy", "values": "vectors"}, "c": {"kind": "dense", "path": "deep/*.png", "bits": 16},
        "d": {"kind": "dense", "path": "map/*.npy", "format": "npy"},
    }  # fmt: skip
    features = {name: {**feature, "path": str(tmp_path / feature["path"])} for name, feature in features.items()}
    steps = [FLIP, {"resize": {"size": [20, 24]}}]
    made = spec(steps, {}, output={"x": "image", "y": ["a", "b", "c", "d"]}) | {"source": {"files": {"features": features}}}
    pipe = pipegen.build(made, runtime={"jit": "never"})
    _, a, b, c, d = stream(pipe)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(c, d)
    _, held = stream(build(steps, {"flow": {"kind": "dense", "values": "vectors"}}, {"flow": flows()}))
    np.testing.assert_array_equal(a[:, 0, 0], flows()[records(pipe), 0, 0] * np.float32([-0.5, 0.5]))
    assert held.shape == a.shape
    np.save(tmp_path / "map/03.npy", depth[0, :10])
    with pytest.raises(DataError, match="03"):
        stream(pipegen.build(made | {"splits": {"parts": {"train": COUNT}}}, runtime={"jit": "never"}))


@pytest.mark.tf
def test_a_preview_and_an_export_show_them(tmp_path: Path) -> None:
    features = {"depth": {"kind": "dense"}, "flow": {"kind": "dense", "values": "vectors"}}
    depth = np.broadcast_to(np.arange(WIDTH, dtype=np.float32), (COUNT, HEIGHT, WIDTH))
    pipe = build(["random_flip"], features, {"depth": depth, "flow": flows()})
    assert np.asarray(pipe.preview(rows=2, draws=1, cell=60)).std() > 10
    done = pipe.export(tmp_path / "out", split="validation", examples=None)
    batches = list(pipe.validation.as_numpy_iterator())
    depths, seen = (np.concatenate([y[i] for _, y in batches]) for i in range(2))
    lines = [json.loads(line) for line in done.table.read_text().splitlines()]
    for name, maps in (("depth", depths), ("flow", seen)):
        written = [np.load(tmp_path / "out" / line[f"{name}_file_name"]) for line in lines]
        np.testing.assert_array_equal(written, maps)


@pytest.mark.tf
@pytest.mark.parametrize(
    "runtime",
    [{"cache": "memory"}, *(pytest.param(r, marks=pytest.mark.nightly) for r in ({"jit": "always"}, {"cache": {"disk": "kept"}}))],
    ids=str,
)
def test_every_plan_gives_the_same_maps_and_a_run_goes_on(runtime: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipegen

    monkeypatch.chdir(tmp_path)
    features = {"flow": {"kind": "dense", "values": "vectors"}, "depth": {"kind": "dense", "interpolation": "nearest"}}
    data = {"image": places(), "flow": flows(), "depth": places()[..., 0]}
    made = spec([{"resize": {"size": [24, 30]}}, *MOVES[:2]], features)
    plain, pipe = (pipegen.build(made, data=data, runtime={"jit": "never", "cache": "none", **own}) for own in ({}, runtime))
    for epoch in (0, 1, 1):
        for one, other in zip(stream(plain, epoch), stream(pipe, epoch), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4 if "jit" in runtime else 0)
    pipe.seek(1, 1)
    (_, (flow, depth)), *_ = pipe.train.as_numpy_iterator()
    np.testing.assert_array_equal(flow, stream(pipe, 1)[1][6:])
    np.testing.assert_array_equal(depth, stream(pipe, 1)[2][6:])


@pytest.mark.tf
def test_a_store_holds_them(tmp_path: Path) -> None:
    """Shrunk images shrink their vectors, too."""
    import pipegen

    np.savez(tmp_path / "a.npz", image=places().astype(np.uint8), flow=flows())
    made = spec([{"random_crop": {"size": 16}}], {"flow": {"kind": "dense", "values": "vectors"}})
    made["source"]["arrays"] |= {"path": str(tmp_path / "a.npz")}
    made["source"]["arrays"]["features"]["image"] = {"kind": "image"}
    whole = pipegen.build(made, runtime={"jit": "never"})
    for side, factor in ((None, 1.0), (20, 0.5)):
        pipegen.prepare(made, tmp_path / str(side), shorter_side=side)
        pipe = pipegen.build(tmp_path / str(side) / "prepared.pipegen.yaml", runtime={"jit": "never"})
        image, flow = stream(pipe)
        np.testing.assert_allclose(flow[:, 0, 0], flows()[records(whole), 0, 0] * factor, rtol=1e-6)
        assert side is not None or (image == stream(whole)[0]).all()


def test_vectors_turn_with_every_step_that_moves_pixels_or_it_is_a_finding() -> None:
    """Every step of the registry that can do without arguments; others are tried above. A plain crop turns nothing."""
    from pydantic import ValidationError

    from pipegen.ops.registry import transforms
    from pipegen.phases.compilation import inspect

    size = {"size": [HEIGHT, WIDTH]}
    tried, refused = set(), set()
    for name, step in transforms().items():
        try:
            moves = step.moves and bool(step())
        except ValidationError:
            continue
        made = spec(
            [{"center_crop": {"size": 40}}, name, {"resize": {"size": 32}}], {"flow": {"kind": "dense", "values": "vectors", **size}}
        )
        made["source"]["arrays"]["features"]["image"] = {"kind": "image", **size}
        found = inspect(made) if moves else None
        if found is None:
            continue
        tried.add(name)
        if any(d.code == "PG203" for d in found.diagnostics.items):
            refused.add(name)
            continue
        turning = [ref.step.op for stage in found.plans["train"].stages() if type(stage).__name__ == "Turn" for ref in stage.uses()]
        assert name in turning or step.family == "crop", name
    assert refused == {"random_grid_shuffle"}
    assert len(tried) > 8


FILES = {"image": {"kind": "image", "path": "a/"}}


@pytest.mark.parametrize(("flow", "steps", "says"), [
    ({"format": "flo"}, [], "say so: `values: vectors`"),
    ({"values": {0: 1}}, [], "of `flow` maps classes of masks"),
    ({"values": "vectors", "channels": 3}, [], "vectors have two, x and y"),
    ({"bits": 16, "format": "npy"}, [], "is for image files, but `flow` has a `format`"),
    ({"classes": 3}, [], "belongs to masks and labels"),
    ({"values": "vectors"}, ["random_grid_shuffle"], "`random_grid_shuffle` has no rule for the vectors of `flow`"),
    ({}, [{"random_flip": {"feature": "image"}}], "`random_flip` moves `image` alone, but not `flow`"),
    ({"kind": "mask", "values": "vectors"}, [], "vectors are values of `kind: dense`"),
    ({"kind": "image", "format": "flo"}, [], "use `kind: dense` with `values: vectors`"),
])  # fmt: skip
def test_what_contradicts_itself_is_a_finding(flow: dict[str, Any], steps: list[Any], says: str) -> None:
    from pipegen.phases.compilation import inspect

    features = {**FILES, "flow": {"kind": "dense", "path": "b/", **flow}}
    made = spec([{"resize": {"size": 32}}, *steps], {}, output={"x": "image", "y": "flow"}) | {"source": {"files": {"features": features}}}
    found = [f"{d.message} {d.help}" for d in inspect(made).diagnostics.items]
    assert any(says in text for text in found), found


def test_other_specs_keep_their_hash() -> None:
    """Arguments of maps that are not given are no part of it."""
    from pipegen.phases.compilation import load

    for source in ({"arrays": {"features": {"image": {"kind": "image"}}}}, {"files": {"features": FILES}}):
        dumped = load({"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 8}}], "output": {"y": "image"}}).model.source
        assert "interpolation" not in str(dumped.model_dump())


@pytest.mark.tf
def test_arrays_that_are_no_maps_are_refused() -> None:
    for feature, array, says in (
        ({}, np.zeros((COUNT, 3)), "need the shape"), ({}, np.full((COUNT, HEIGHT, WIDTH), "a"), "must be numbers"),
        ({"values": "vectors"}, np.zeros((COUNT, HEIGHT, WIDTH, 3)), "3 channels, not 2"), ({}, np.zeros((COUNT, 4, 4)), "4×4 pixels"),
    ):  # fmt: skip
        with pytest.raises(SpecError, match=says):
            build([], {"map": {"kind": "dense", **feature}}, {"map": array})
