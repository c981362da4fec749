"""The specs on the pages of the catalogue do what the pages say: the bad one yields the code and nothing else, the good one is clean."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from spec_pages import PageFile, SpecPage, spec_page

from pipegen.cache.room import claim_disk
from pipegen.data.collect import collect
from pipegen.diagnostics.catalog import CODES
from pipegen.diagnostics.diagnostic import Severity
from pipegen.errors import SpecError
from pipegen.phases.compilation import bind, claim_cache, inspect, optimise
from pipegen.phases.functions import with_functions
from pipegen.plan.build import Builder
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic

DECODING = {"PG406", "PG414"}
"""Found only by decoding files, which takes TensorFlow."""
PAGES = [pytest.param(code, marks=[pytest.mark.tf] if code in DECODING else []) for code in CODES]


def image(kind: str, size: tuple[int, int]) -> bytes:
    """An encoded image of a kind that the catalogue names."""
    from PIL import Image

    gradient = Image.linear_gradient("L").resize(size)
    if kind == "png16":
        picture = gradient.convert("I;16")
    else:
        picture = Image.merge("RGB", (gradient, gradient.transpose(Image.Transpose.FLIP_TOP_BOTTOM), gradient))
    stream = io.BytesIO()
    picture.save(stream, {"jpeg": "JPEG", "webp": "WEBP"}.get(kind, "PNG"))
    return stream.getvalue()


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


def write(folder: Path, file: PageFile) -> None:
    for name in file.paths():
        target = folder / name
        if file.kind == "dir":
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.kind == "text":
            target.write_text(file.content, encoding="utf-8")
        elif file.kind == "npz":
            target.write_bytes(arrays(file.content))
        elif file.kind == "empty":
            target.write_bytes(b"")
        elif file.kind == "truncated":
            whole = image("jpeg", (64, 48))
            target.write_bytes(whole[: len(whole) // 2])
        else:
            assert file.size is not None
            target.write_bytes(image(file.kind, file.size))


def findings(code: str, told: SpecPage, content: bytes | None) -> list[Diagnostic]:
    """Everything that is found about a spec, as far as the page's code asks for it."""
    here = Path()
    for file in told.files:
        write(here, file)
    if content is not None:
        (here / "spec.yaml").write_bytes(content)
    found = inspect("spec.yaml")
    result = list(found.diagnostics)
    spec = found.spec
    if not told.files or spec is None:
        return result
    collected = collect(spec.model, locate=found.loaded.locate.label, base=found.loaded.base)
    result += [d for d in collected.diagnostics if d not in result]
    if collected.manifest is None:
        return result
    try:
        spec = with_functions(spec, ("my_pkg",) if code == "PG241" else ())
        bind(spec, collected.manifest)
        plans = {}
        for split, plan in found.plans.items():
            count = collected.manifest.num_examples(split)
            budget = spec.model.runtime.ram_budget
            fixed = budget if isinstance(budget, int) else 2**40
            compiled = optimise(spec.model, plan, num_examples=count, ram_budget=fixed)
            claim_cache(spec.model, compiled.plan, count, fixed, found.loaded.locate.label)
            plans[split] = compiled.plan
        claim_disk(spec.model, plans, collected.manifest, found.loaded.locate.label, room=2**30)
    except SpecError as error:
        return [*result, *error.diagnostics]
    if code in DECODING:
        from pipegen.cli.checking import DataRequest, check_data

        result, _ = check_data(found, spec, DataRequest(None, None))
    return result


@pytest.mark.parametrize("code", PAGES)
def test_the_bad_spec_yields_the_code_and_the_good_one_does_not(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = spec_page(code)
    monkeypatch.delenv("FLOWERS", raising=False)
    for name in ("bad", "good"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "bad")
    bad = findings(code, told, told.bad_bytes)
    assert {d.code for d in bad} == {code}, [(d.code, d.message) for d in bad]
    assert {d.severity for d in bad} == {CODES[code].severity}
    monkeypatch.chdir(tmp_path / "good")
    good = findings(code, told, told.good.encode())
    assert code not in {d.code for d in good}, [(d.code, d.message) for d in good]
    assert not [(d.code, d.message) for d in good if d.severity is Severity.ERROR]


def test_a_wrong_rank_is_a_finding() -> None:
    """Every image of a source of today has three dimensions, so the type of a source to come stands in for one."""
    found = inspect("spec.yaml", text=spec_page("PG204").good)
    assert found.loaded.spec is not None
    flat = ElementType((("image", FeatureType("image", "uint8", (784,))), ("label", FeatureType("label", "int64", ()))))
    builder = Builder(found.loaded.spec, "train", found.loaded.locate.label, flat)
    assert builder.build() is None
    (finding,) = builder.findings
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
