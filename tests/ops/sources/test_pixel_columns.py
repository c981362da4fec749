"""Images whose pixels are numbers in a table, as in tables of faces and of digits: the batches are those of the same arrays."""

from __future__ import annotations

import json
from pathlib import Path
from pipes import batches
from typing import Any

import numpy as np
import pytest

import pipegen
from pipegen.errors import OpError
from pipegen.ops.registry import sources

COUNT, SHAPE = 10, (6, 4)
PIXELS = np.random.default_rng(5).integers(0, 256, (COUNT, *SHAPE, 1), np.uint8)
LABEL = {"kind": "label", "column": "emotion", "classes": 3}
TEXT = {"kind": "image", "column": "pixels", "size": [*SHAPE]}


def frame(path: Path, cell: Any, pixels: Any = PIXELS) -> Any:
    pandas = pytest.importorskip("pandas")
    use = ["Training" if i < 7 else "PublicTest" for i in range(len(pixels))]
    return pandas.DataFrame({"emotion": [i % 3 for i in range(len(pixels))], "Usage": use, "pixels": [cell(own.ravel()) for own in pixels]})


def blanks(numbers: Any) -> str:
    return " ".join(map(str, numbers))


def written(form: str, path: Path) -> dict[str, Any]:
    if form == "parquet":
        frame(path, np.ndarray.tolist).to_parquet(path / "a.parquet")
    elif form == "columns":
        rows = [["emotion", "Usage", *(f"p{i}" for i in range(24))]]
        rows += [[i % 3, "Training" if i < 7 else "PublicTest", *own.ravel()] for i, own in enumerate(PIXELS)]
        (path / "a.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    elif form == "jsonl":
        table = frame(path, np.ndarray.tolist)
        (path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in table.to_dict("records")))
    else:
        frame(path, {"blanks": blanks, "commas": lambda n: str(n.tolist())}[form]).to_csv(path / "a.csv", index=False)
    op = form if form in ("parquet", "jsonl") else "csv"
    image = {"kind": "image", "columns": ["p{0..23}"], "size": [*SHAPE]} if form == "columns" else TEXT
    return {op: {"path": str(path / f"a.{op}"), "features": {"image": image, "label": LABEL}}}


def rows(pipe: Any) -> list[tuple[bytes, int]]:
    found = [batch for split in pipe.splits for epoch in (0, 1) for batch in batches(pipe.dataset(split, epoch=epoch))]
    return [(image.tobytes(), int(label)) for images, labels in found for image, label in zip(images, labels, strict=True)]


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("cache", ["none", "memory"])
@pytest.mark.parametrize("form", ["blanks", "commas", "columns", "parquet", "jsonl"])
def test_batches_are_those_of_arrays(form: str, cache: str, tmp_path: Path) -> None:
    own = {
        "transforms": [],
        "shuffle": "none",
        "splits": {"parts": {"train": 7, "validation": 3}, "method": "random"},
        "batch": {"size": 3, "remainder": "keep"},
    }
    runtime = {"jit": "never", "cache": cache}
    given = {"image": PIXELS, "label": np.arange(COUNT) % 3}
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 3}}
    arrays = pipegen.build({"pipegen": 1, "source": {"arrays": {"features": features}}, **own}, data=given, runtime=runtime)
    table = pipegen.build({"pipegen": 1, "source": written(form, tmp_path), **own}, runtime=runtime)
    assert sorted(rows(table)) == sorted(rows(arrays))
    turned = {**own, "transforms": ["random_flip", {"random_crop": {"size": [5, 3]}}]}
    either = (
        pipegen.build({"pipegen": 1, "source": written(form, tmp_path), **turned}, runtime={"jit": "never", "cache": c})
        for c in (cache, "none")
    )
    assert rows(next(either)) == rows(next(either))


@pytest.mark.tf
def test_rows_are_chosen_by_columns(tmp_path: Path) -> None:
    source = written("blanks", tmp_path)
    source["csv"]["where"] = "emotion != 1"
    splits = {"parts": {"train": "Training", "validation": "PublicTest"}, "method": {"column": "Usage"}}
    spec = {"pipegen": 1, "source": source, "splits": splits, "shuffle": "none", "transforms": [], "batch": {"size": 1}}
    pipe = pipegen.build(spec, runtime={"jit": "never"})
    for split, numbers in (("train", (0, 2, 3, 5, 6)), ("validation", (8, 9))):
        found = np.concatenate([images for images, _ in batches(pipe.dataset(split))])
        np.testing.assert_array_equal(found, PIXELS[list(numbers)])


WRONG: dict[str, tuple[dict[str, Any], Any, str, str]] = {
    "too few": ({}, lambda n: blanks(n[:-1]), "PG449", "a.csv:2 has 23 numbers, but 6×4×1 pixels are 24"),
    "other channels": ({"channels": 3}, blanks, "PG449", "has 24 numbers, but 6×4×3 pixels are 72"),
    "too large": ({}, lambda n: blanks([*n[:-1], 256]), "PG423", "holds 256, but a pixel is an integer from 0 to 255"),
    "a fraction": ({"bits": 16}, lambda n: blanks([*n[:-1], 0.5]), "PG423", "holds 0.5, but a pixel is an integer from 0 to 65535"),
    "a text": ({}, lambda n: "a.png", "PG423", "a.csv:2 holds 'a.png', which is not a list of numbers"),
    "empty": ({}, lambda n: "", "PG449", "a.csv:2 has 0 numbers"),
    "of a mask": ({"kind": "mask"}, blanks, "", "`size` is for images whose pixels are in the table"),
    "in files": ({"root": "x"}, blanks, "", "`root` is for files, and `size` for images"),
    "columns": ({"column": None, "columns": ["p{0..3}"]}, blanks, "", "there are 4 columns of pixels, but `size` and `channels` make 24"),
    "no size": ({"column": None, "columns": ["p{0..3}"], "size": None}, blanks, "", "4 columns of pixels, but an image needs its `size`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case: str, tmp_path: Path) -> None:
    changed, cell, code, message = WRONG[case]
    frame(tmp_path, cell).to_csv(tmp_path / "a.csv", index=False)
    features = {"image": {**TEXT, **changed}, "label": LABEL}
    if not code:
        with pytest.raises(ValueError, match=message):
            sources()["csv"].model_validate({"path": "a.csv", "features": features})
        return
    with pytest.raises(OpError, match=message) as caught:
        sources()["csv"].model_validate({"path": "a.csv", "features": features}).list(tmp_path)
    assert caught.value.code == code


def test_pixels_beside_files_are_refused(tmp_path: Path) -> None:
    frame(tmp_path, blanks).assign(mask="a.png").to_csv(tmp_path / "a.csv", index=False)
    features = {"image": TEXT, "mask": {"kind": "mask", "classes": 2}}
    with pytest.raises(OpError, match="the cells of `mask` are files, but those of `image` are pixels"):
        sources()["csv"].model_validate({"path": "a.csv", "features": features}).list(tmp_path)


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("cache", ["memory", {"disk": "kept"}])
def test_a_cache_keeps_what_parts_of_a_mix_have_encoded(cache: Any, tmp_path: Path) -> None:
    """A part of pixels needs no step, so the other one does all of its steps, those of the label too, before the cache."""
    image = pytest.importorskip("PIL.Image")
    for i in range(9):
        (tmp_path / "photos" / "abc"[i % 3]).mkdir(parents=True, exist_ok=True)
        image.fromarray(np.full((6, 4), 25 * i, np.uint8)).save(tmp_path / "photos" / "abc"[i % 3] / f"{i}.png")
    splits = {"parts": {"train": 0.6, "validation": 0.4}, "method": "hash", "seed": 2}
    photos = {"image_folder": {"path": str(tmp_path / "photos"), "classes": ["a", "b", "c"]}}
    table = written("columns", tmp_path)
    table["csv"]["features"]["label"] = {"kind": "label", "column": "emotion", "map": {0: "a", 1: "b", 2: "c"}, "classes": ["a", "b", "c"]}
    parts = {
        "table": {"weight": 1, "splits": splits, "source": table},
        "photos": {"weight": 1, "splits": splits, "source": photos, "transforms": [{"decode": {"channels": 1}}]},
    }
    spec = {
        "pipegen": 1,
        "source": {"mix": {"epoch": "table", "parts": parts}},
        "transforms": [{"resize": {"size": [*SHAPE]}}],
        "batch": {"size": 2},
        "output": {"x": "image", "y": "label", "encode": {"label": "one_hot"}},
    }
    kept = {"disk": str(tmp_path / "kept")} if isinstance(cache, dict) else cache
    due, pipe = (pipegen.build(spec, runtime={"cache": one}) for one in ("none", kept))
    for split in pipe.splits:
        assert pipe.dataset(split, epoch=0).element_spec == due.dataset(split, epoch=0).element_spec
        for epoch in (0, 1):
            got, wanted = (batches(one.dataset(split, epoch=epoch)) for one in (pipe, due))
            for (x, y), (images, labels) in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(x, images)
                np.testing.assert_array_equal(y, labels)
                assert labels.shape[1:] == (3,)
