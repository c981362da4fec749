"""Bytes of every form of storage are cut, flipped and zeroed: an error says so, or what is read is what was stored. Nothing crashes."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from record_files import png

from benchmarks.written_sources import SOURCES, output_of

pytestmark = [pytest.mark.tf, pytest.mark.nightly]

COUNT, CASES, LIMIT = 40, 12, 600
DAMAGED = [name for name in SOURCES if not name.startswith(("arrays", "prepared"))]
"""Forms that hold the bytes of image files: a PNG has checksums, so that a wrong pixel is one that nobody noticed."""


def photographs() -> list[tuple[bytes, int]]:
    """Pictures of one colour, which says their number and their class."""
    return [(png(i, i % 3, 77), i % 3) for i in range(COUNT)]


def damage(folder: Path, case: int) -> str:
    """Damages one file, and says how."""
    draw = random.Random(case)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    path = draw.choice(files)
    content = bytearray(path.read_bytes())
    how = ("cut", "flipped", "zeroed")[case % 3]
    start = draw.randrange(len(content))
    if how == "cut":
        del content[start:]
    else:
        length = draw.choice((1, 16, 300))
        for place in range(start, min(start + length, len(content))):
            content[place] = 0 if how == "zeroed" else content[place] ^ 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"{path.name} {how} at {start}"


def read(source: dict[str, Any]) -> str:
    """Reads everything, and says what came of it."""
    import pipegen
    from pipegen.errors import DataError, SpecError

    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 2}}], "output": {"dtype": "uint8", **output_of(source)}}
    spec |= {"batch": {"size": 4, "remainder": "keep"}, "runtime": {"cache": "none"}}
    try:
        found = [pixel for x, _ in pipegen.build(spec).dataset("train") for pixel in x.numpy()[:, 0, 0].tolist()]
    except (SpecError, DataError) as error:
        return "told" if str(error).strip() else "an error without a word"
    known = [[i, i % 3, 77] for i in range(COUNT)]
    odd = [pixel for pixel in found if pixel not in known]
    return f"wrong pixels {odd}" if odd else "read"


def run(name: str, pristine: Path) -> None:
    """Damages copies one after another and reads them; prints each outcome."""
    for case in range(CASES):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "data"
            shutil.copytree(pristine, copy)
            how = damage(copy, case)
            print(json.dumps({"case": case, "how": how}), flush=True)
            print(json.dumps({"case": case, "outcome": read(SOURCES[name].spec(copy))}), flush=True)


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_told_or_does_no_harm(name: str, tmp_path: Path) -> None:
    if SOURCES[name].library and find_spec(SOURCES[name].library) is None:
        pytest.skip(f"{SOURCES[name].library} is not installed")
    (tmp_path / "data").mkdir()
    SOURCES[name].write(tmp_path / "data", photographs())
    own = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": own, "XDG_CACHE_HOME": str(tmp_path / "kept")}
    command = [sys.executable, "-c", f"import test_damaged_sources as t; t.run({name!r}, t.Path({str(tmp_path / 'data')!r}))"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    outcomes = {line["case"]: line["outcome"] for line in lines if "outcome" in line}
    hows = {line["case"]: line["how"] for line in lines if "how" in line}
    assert done.returncode == 0, f"after {hows}: {done.stderr[-2000:]}"
    assert {f"{hows[case]}: {outcome}" for case, outcome in outcomes.items() if outcome not in ("told", "read")} == set()
    assert len(outcomes) == CASES
    assert "told" in outcomes.values(), "some damage shows"


@pytest.mark.nightly
def test_a_message_that_quotes_a_damaged_record_is_ours(tmp_path: Path) -> None:
    """TensorFlow puts the record's bytes into its message, which are no text."""
    import pipegen
    from pipegen.errors import DataError

    (tmp_path / "data").mkdir()
    SOURCES["tfrecord"].write(tmp_path / "data", photographs())
    assert damage(tmp_path / "data", 10) == "0.tfrecord flipped at 878"
    spec = {"pipegen": 1, "source": SOURCES["tfrecord"].spec(tmp_path / "data"), "transforms": [{"resize": {"size": 2}}]}
    spec |= {"batch": {"size": 4, "remainder": "keep"}, "runtime": {"cache": "none"}}
    with pytest.raises(DataError, match=r"cannot read .*0\.tfrecord#\d+: Could not parse example"):
        list(pipegen.build(spec).dataset("train"))
