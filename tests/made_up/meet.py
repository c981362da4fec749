"""Run as a process: a made-up kind from a made-up source, and each with those of the package. Prints what was compared.

Arguments: a folder; the kinds and the sources of the package to try, with commas; and whether graphs are traced as by day.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pipegen.ops import kinds, sources

HERE = Path(__file__).parent
for package in (kinds, sources):
    package.__path__.append(str(HERE / package.__name__.rpartition(".")[2]))

import tracing  # noqa: E402

if sys.argv.pop() == "quick":
    tracing.quicken()

import field_writers as written  # noqa: E402 - the registries are extended before they are read
import numpy as np  # noqa: E402

import pipegen  # noqa: E402
from pipegen.ops.registry import sources as registered  # noqa: E402

CIRCLES = [[[3.0, 4.0, 2.0]] * (i % 3) + [[i / 2, 9.0, 1.5]] for i in range(written.COUNT)]


def write_notes(path: Path, held: Any, features: Any) -> Any:
    rows = [written.texts(written.spread(row)) for row in written.in_files(path, held)]
    (path / "notes.txt").write_text("\n\n".join("\n".join(f"{key}: {value}" for key, value in row.items()) for row in rows))
    return {"path": str(path / "notes.txt"), "features": written.in_columns(features)}, None


def stream(op: str, write: Any, path: Path, name: str, feature: dict[str, Any], held: Any) -> list[Any]:
    path.mkdir()
    features = {one: written.KINDS.get(one, feature) for one in dict.fromkeys(("image", feature.get("with", "image"), name))}
    source, data = write(path, held, features)
    spec = {
        "pipegen": 1,
        "source": {op: source},
        "transforms": [{"resize": {"size": [24, 24]}}, "flip", {"crop": {"size": [20, 20]}}],
        "shuffle": "none",
        "batch": {"size": 5, "remainder": "keep"},
        "output": {"x": "image", "y": [name]},
    }
    import tensorflow as tf

    train = pipegen.build(spec, data=data, runtime={"jit": "never"}).train
    return [np.asarray(part) for batch in train for part in tf.nest.flatten(batch)]


def main(root: Path, kinds: list[str], sources: list[str]) -> None:
    held = [{**record, "circles": circles} for record, circles in zip(written.records(2), CIRCLES, strict=True)]
    flat = written.flat
    written.flat = lambda record: {**flat(record), "circles": np.ravel(record["circles"]).tolist()} if "circles" in record else flat(record)
    written.EMPTY["circles"] = (0, 3)
    assert "notes" in registered()
    made_up, compared = {"kind": "circles"}, []
    pairs = [("notes", write_notes, "circles", made_up)]
    pairs += [("notes", write_notes, name, feature) for name, feature in written.KINDS.items() if name in kinds]
    pairs += [(op, write, "circles", made_up) for op, write in written.WRITERS.items() if op in sources]
    due: dict[str, list[Any]] = {}
    for number, (op, write, name, feature) in enumerate(pairs):
        own = [{key: value for key, value in record.items() if name == "circles" or key != "circles"} for record in held]
        found = stream(op, write, root / f"{number}", name, feature, own)
        if name not in due:
            due[name] = stream("arrays", written.WRITERS["arrays"], root / f"{number}-arrays", name, feature, own)
        for one, other in zip(found, due[name], strict=True):
            np.testing.assert_array_equal(one, other)
        compared.append([op, name])
    print(json.dumps(compared))


main(Path(sys.argv[1]), *(text.split(",") for text in sys.argv[2:]))
