"""The specs on the pages of the catalogue do what the pages say: the bad one yields the code and nothing else, the good one is clean."""

from __future__ import annotations

import io
import re
import sys
from contextlib import contextmanager
from functools import cache
from importlib import invalidate_caches
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from record_files import write_described
from spec_pages import RECORDS, PageFile, SpecPage, spec_page

from pipegen.api.lock import check_specs, lock_specs
from pipegen.cache.folder import claim_disk
from pipegen.data.collect import collect, warning_lines
from pipegen.data.event_times import late_events
from pipegen.data.testing import choose
from pipegen.diagnostics.catalog import CODES
from pipegen.diagnostics.diagnostic import Severity
from pipegen.errors import SpecError
from pipegen.phases.compilation import bind, claim_cache, collect_data, compile_plans, inspect, optimise, warnings_with_data
from pipegen.phases.data_tests import begin, run_cheap, run_on_files
from pipegen.phases.layered import before_layer, ejection_findings, given_data, layer_config
from pipegen.phases.memory_budget import memory_findings
from pipegen.phases.user_functions import with_functions
from pipegen.plan.build import Builder
from pipegen.plan.evaluation_plans import served_plan
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.phases.specs import Spec

DECODING = {"PG406", "PG414"}
"""Found only by decoding files, which takes TensorFlow."""
SERVING = {"PG540", "PG541", "PG542", "PG543", "PG545"}
"""Found where a pipeline is to be served with a model."""
LOOKING = {code for code in CODES if "PG730" <= code <= "PG742"}
"""Found only by looking at the pictures."""
LOCKED = {"PG530", "PG531", "PG534"}
"""Found by comparing with a lock, which is that of the good spec; of `PG530` there is none for the bad one."""
TESTING = {"PG720", "PG722"}
"""Found only by tests that look at examples, which takes TensorFlow."""
MISSING = dict.fromkeys(("PG440", "PG575"), ("array_record.python.array_record_module",))
"""Modules that cannot be imported meanwhile."""
EJECTING = {"PG550", "PG551", "PG552", "PG553", "PG554"}
"""Found where datasets are ejected."""
PREPARING = {"PG572", "PG573", "PG574", "PG575", "PG576", "PG577"}
"""Found where data is prepared, which takes TensorFlow."""
REMOTE = {"PG565", "PG566", "PG567", "PG744", "PG745"}
"""Found at addresses, of which those in memory have the same files."""
BY_NIGHT = {
    "PG406": "ops/sources/test_image_folder.py",
    "PG414": "ops/sources/test_image_folder.py",
    "PG543": "test_serving.py",
    "PG575": "preparing/test_formats.py",
    "PG576": "preparing/test_prepare.py",
    "PG722": "test_data_tests.py",
}
"""Codes whose pages are tried by night, as each of them builds a pipeline; and the tests that find them by day."""
WITH_TF = DECODING | TESTING | PREPARING | {"PG543", "PG744"}
BAD, GOOD = (
    [pytest.param(code, marks=[pytest.mark.tf] * (code in WITH_TF) + [pytest.mark.nightly] * (code in night)) for code in CODES]
    for night in (BY_NIGHT, WITH_TF | {code for number, code in enumerate(CODES) if number % 3})
)
"""Every page; by day each bad spec yields its code, and every third good one is tried, of those that build no pipeline."""


@cache
def image(kind: str, size: tuple[int, int]) -> bytes:
    """An encoded image of a kind that the catalogue names."""
    from PIL import Image

    gradient = Image.linear_gradient("L").resize(size)
    if kind == "png16":
        picture = gradient.convert("I;16")
    else:
        picture = Image.merge("RGB", (gradient, gradient.transpose(Image.Transpose.FLIP_TOP_BOTTOM), gradient))
    stream = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6 if kind == "turned" else 1
    picture.save(stream, {"jpeg": "JPEG", "turned": "JPEG", "webp": "WEBP"}.get(kind, "PNG"), exif=exif if kind == "turned" else b"")
    return stream.getvalue()


@cache
def arrays(content: str) -> bytes:
    """A `.npz` file of arrays such as `y=int64:24`: bytes count up to 255 and begin anew, other numbers to 2."""
    import numpy as np

    made: dict[str, Any] = {}
    for name, dtype, shape in (re.fullmatch(r"(\w+)=(\w+):([\dx]+)", word).groups() for word in content.split()):  # type: ignore[union-attr]
        dims = tuple(map(int, shape.split("x")))
        made[name] = (np.arange(np.prod(dims)) % (256 if dtype == "uint8" else 3)).astype(dtype).reshape(dims)
    stream = io.BytesIO()
    np.savez(stream, **made)
    return stream.getvalue()


@cache
def scene(told: str) -> bytes:
    """A picture of squares that a number chooses."""
    import numpy as np
    from PIL import Image, ImageFilter

    size, seed, *edit = told.split()
    width, height = map(int, size.split("x"))
    rng = np.random.default_rng(int(seed))
    picture = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((160, 120), Image.Resampling.NEAREST)
    picture = picture.resize((width, height), Image.Resampling.BOX)
    if edit == ["dark"]:
        picture = picture.point(lambda value: value // 5)
    if edit == ["blurred"]:
        picture = picture.filter(ImageFilter.GaussianBlur(12))
    if edit == ["recoloured"]:
        light, blue, red = picture.convert("YCbCr").split()
        picture = Image.merge("YCbCr", (light, red, blue.point(lambda value: 255 - value))).convert("RGB")
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


@cache
def parquet(content: str) -> bytes:
    """A Parquet file of rows whose cells are the bytes of images, the path of one, one of two classes, or three numbers."""
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)  # as in `test_columnar.py`
    pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    rows, *columns = content.split()
    cells = {"bytes": [image("png", (8, 8))], "path": ["a.png"], "class": ["cat", "dog"], "numbers": [[0.0, 0.5, 1.0]]}
    named = (column.split(":") for column in columns)
    stream = pa.BufferOutputStream()
    whole = {name: [cells[kind][i % len(cells[kind])] for i in range(int(rows))] for name, kind in named}
    pq.write_table(pa.table(whole), stream, row_group_size=4)
    return bytes(stream.getvalue().to_pybytes())


def write(folder: Path, file: PageFile) -> None:
    for i, name in enumerate(file.paths()):
        target = folder / name
        if file.kind == "dir":
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.kind == "text":
            target.write_text(file.content, encoding="utf-8")
        elif file.kind == "scene":
            size, seed, *edit = file.content.split()
            target.write_bytes(scene(" ".join([size, str(int(seed) + i), *edit])))
        elif file.kind == "npz":
            target.write_bytes(arrays(file.content))
        elif file.kind == "parquet":
            target.write_bytes(parquet(file.content))
        elif file.kind in RECORDS:
            write_described(target, file.kind, file.content)
        elif file.kind == "empty":
            target.write_bytes(b"")
        elif file.kind == "truncated":
            whole = image("jpeg", (64, 48))
            target.write_bytes(whole[: len(whole) // 2])
        else:
            assert file.size is not None
            target.write_bytes(image(file.kind, file.size))


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Makes the packages of a folder those of this environment, as `pkg:` finds them."""
    place = str(folder.absolute())
    sys.path.insert(0, place)
    invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(place)


@contextmanager
def missing(code: str) -> Iterator[None]:
    """Lets modules be missing; those that are imported meanwhile stay, as TensorFlow cannot be imported twice."""
    with pytest.MonkeyPatch.context() as m:
        for name in MISSING.get(code, ()):
            m.setitem(sys.modules, name, None)
        yield


def unprepared(spec: Spec, told: str) -> tuple[Diagnostic, ...]:
    """What is found where data is prepared as the page's command says, on a disk with 1 MiB free."""

    import pipegen

    with mock.patch("shutil.disk_usage", return_value=mock.Mock(free=2**20)):
        try:
            options: dict[str, Any] = dict(re.findall(r"--(format|encoding|at) (\w+)", told))
            side = re.search(r"--shorter-side (\d+)", told)
            options |= {} if side is None else {"shorter_side": int(side[1])}
            pipegen.prepare(spec, "prepared", **options)
        except SpecError as error:
            return error.diagnostics
    return ()


def findings(code: str, told: SpecPage, content: bytes | None) -> list[Diagnostic]:
    """Everything that is found about a spec, as far as the page's code asks for it."""
    here = Path()
    for file in told.files:
        write(here, file)
    if code in LOCKED and not (code == "PG530" and content != told.good.encode()):
        (here / "spec.yaml").write_text(told.good, encoding="utf-8")
        lock_specs(["spec.yaml"])
    if content is not None:
        (here / "spec.yaml").write_bytes(content)
    if code in REMOTE:
        memory = pytest.importorskip("fsspec").filesystem("memory")
        memory.store.clear()
        memory.put(str(here / "flowers"), "/flowers", recursive=True)
    if code in LOCKED:
        return check_specs(["spec.yaml"]).findings
    if code == "PG533":
        try:
            lock_specs(["spec.yaml"])
            return []
        except SpecError as error:
            return [*error.diagnostics]
    with installed(here):
        found = inspect("spec.yaml")
    result = list(found.diagnostics)
    spec = found.spec
    if spec is not None and code in SERVING:
        try:
            served_plan(spec.model, found.loaded.locate.label, spec.model.source.infer(), "bytes")
        except SpecError as error:
            result += error.diagnostics
    if spec is not None and code == "PG555" and (given := given_data(spec)) is not None:
        result.append(given)
    if spec is not None and code == "PG544":
        locate, record = found.loaded.locate.label, spec.model.source.infer()
        try:
            evaluation = served_plan(spec.model, locate, record, None)
            before_layer(found.plans["train"], evaluation, layer_config(evaluation, found.plans.values()), locate)
        except SpecError as error:
            result += error.diagnostics
    if not told.files or spec is None:
        return result
    if code in LOOKING:
        from pipegen.api.tasks import look

        return [*result, *look(spec).diagnostics]
    if code == "PG543":
        return [*result, *unconvertible()]
    if code in PREPARING:
        with missing(code):
            return [*result, *unprepared(spec, (content or b"").decode())]
    with missing(code):
        collected = collect(spec.model, locate=found.loaded.locate.label, base=found.loaded.base)
    result += [d for d in collected.diagnostics if d not in result]
    if collected.manifest is None:
        return result
    try:
        spec = with_functions(spec, ("my_pkg",) if code in ("PG241", "PG550") else ())
        bind(spec, collected.manifest)
        result += warnings_with_data(spec, collected.manifest)
        plans = {}
        for split, plan in found.plans.items():
            count = collected.manifest.num_examples(split)
            budget = spec.model.runtime.ram_budget
            fixed = budget if isinstance(budget, int) else 2**40
            compiled = optimise(spec.model, plan, num_examples=count, ram_budget=fixed)
            claim_cache(spec.model, compiled.plan, count, fixed, found.loaded.locate.label)
            plans[split] = compiled.plan
        if code == "PG425":
            result += memory_findings(spec, collected.manifest, compile_plans(spec, collected.manifest, found.plans))
        if code in TESTING:
            import pipegen

            return [*result, *pipegen.test(spec, allow_code=["my_pkg"]).diagnostics]
        result += found_by_tests(spec, collected.manifest)
        claim_disk(spec.model, plans, collected.manifest, found.loaded.locate.label, room=2**30)
    except SpecError as error:
        return [*result, *error.diagnostics]
    if code in ("PG483", "PG484"):
        result += late_events(spec.model, collected.manifest, found.loaded.locate.label, None)
    if code in EJECTING:
        result += ejection_findings(spec, collected.manifest, plans)
    if code in DECODING:
        from pipegen.cli.checking import check_data

        result, _ = check_data(found, spec, None)
    return result


def found_by_tests(spec: Spec, manifest: Manifest) -> list[Diagnostic]:
    """What the tests of a spec find that need no TensorFlow."""
    run = begin(bind(spec, manifest))
    assert not run_on_files(run, run_cheap(run, choose(spec.model)))
    return [finding for result in run.results.values() for finding in result.findings]


def unconvertible() -> list[Diagnostic]:
    """The findings about a model behind the spec's steps that becomes a file of TFLite."""
    import keras

    import pipegen

    model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.GlobalAveragePooling2D()])
    try:
        pipegen.build("spec.yaml").export_model(model, "flowers.tflite", takes="images", form="tflite")
    except SpecError as error:
        return list(error.diagnostics)
    return []


def of_page(code: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Diagnostic]:
    """What is found of one spec of a page, in a folder of its own."""
    told = spec_page(code)
    monkeypatch.delenv("FLOWERS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    monkeypatch.setattr("pipegen.data.remote.caches.WAITS", 0.0)
    if code == "PG487":
        monkeypatch.setattr("pipegen.phases.user_functions.LARGEST", 1000)
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    return findings(code, told, told.bad_bytes if name == "bad" else told.good.encode())


@pytest.mark.parametrize("code", BAD)
def test_the_bad_spec_yields_the_code(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = of_page(code, "bad", tmp_path, monkeypatch)
    assert {d.code for d in bad} == {code}, [(d.code, d.message) for d in bad]
    assert {d.severity for d in bad} == {CODES[code].severity}


@pytest.mark.parametrize("code", GOOD)
def test_the_good_spec_does_not(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = of_page(code, "good", tmp_path, monkeypatch)
    assert code not in {d.code for d in good}, [(d.code, d.message) for d in good]
    assert not [(d.code, d.message) for d in good if d.severity is Severity.ERROR]


def test_a_wrong_rank_is_a_finding() -> None:
    """Every image of a source of today has three dimensions, so the type of a source to come stands in for one."""
    found = inspect("spec.yaml", text=spec_page("PG204").good)
    assert found.loaded.spec is not None
    flat = ElementType((("image", FeatureType("image", "uint8", (784,))), ("label", FeatureType("label", "int64", ()))))
    built = Builder(found.loaded.spec, "train", found.loaded.locate.label, flat).build()
    assert built.plan is None
    (finding,) = built.findings
    assert finding.code == "PG204"
    assert "`resize` needs an image of shape height × width × channels and gets rank 1" in finding.message
    assert finding.span is not None
    assert finding.span.line == 8


@pytest.mark.tf
@pytest.mark.parametrize("name", ["bad", "good"])
def test_a_build_refuses_a_cache_that_does_not_fit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipegen

    monkeypatch.chdir(tmp_path)
    told = spec_page("PG410")
    for file in told.files:
        write(tmp_path, file)
    Path("spec.yaml").write_text(getattr(told, name), encoding="utf-8")
    if name == "good":
        assert len(pipegen.build("spec.yaml", runtime={"jit": "never"}).peek("train", 3)[1]) == 3
        return
    with pytest.raises(SpecError) as caught:
        next(iter(pipegen.build("spec.yaml").train))
    assert [d.code for d in caught.value.diagnostics] == ["PG410"]
    assert "runtime: {cache: memory" in str(caught.value)


@pytest.mark.nightly
def test_a_build_logs_whatever_the_listing_warns_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the pages of all warnings: what the listing and its types show is what `build` logs, a line each."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    logged = set()
    for code in (code for code, about in CODES.items() if about.severity is Severity.WARNING and spec_page(code).files):
        folder = tmp_path / code
        folder.mkdir()
        monkeypatch.chdir(folder)
        told = spec_page(code)
        for file in told.files:
            write(folder, file)
        (folder / "spec.yaml").write_text(told.bad, encoding="utf-8")
        spec = inspect("spec.yaml").spec
        assert spec is not None
        collected = collect(spec.model, locate=spec.loaded.locate.label, base=folder)
        if collected.manifest is None:
            continue
        found = [*collected.diagnostics, *warnings_with_data(spec, collected.manifest)]
        warned = {d.code for d in found if d.severity is Severity.WARNING}
        lines = [*warning_lines(collect_data(spec))]
        assert warned == {line.partition(" ")[0].rstrip(":") for line in lines}, code
        logged |= warned
    assert {"PG403", "PG405", "PG415", "PG422", "PG451", "PG477", "PG479", "PG480", "PG627"} <= logged
