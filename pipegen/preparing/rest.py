"""Makes the spec that reads a prepared store and does the remaining steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipegen.errors import InternalError, SpecError
from pipegen.ops.kinds.registry import kind_of, kinds
from pipegen.ops.stage import step_kwargs
from pipegen.phases.compilation import load
from pipegen.spec.allowed import CHECKED
from pipegen.spec.runtime_fix import Dumper, to_yaml
from pipegen.spec.steps import ids_of
from pipegen.types import INTEGER_RANGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.sources.prepared_store.layout import Pixels
    from pipegen.preparing.cut import Cut
    from pipegen.preparing.options import Options
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import FeatureType

SPEC = "prepared.pipegen.yaml"
_DONE = frozenset({"pipegen", "name", "params", "source", "splits", "transforms", "errors"})
"""Sections that are written separately, or done by the store."""
_OF_TEST = re.compile(r"tests\[(\d+)\]")
_DECODE: dict[str, Any] = {"decode": {"scaled": "never"}}
"""The decoder of a store's files, at full size."""


def rest_of(spec: PipelineSpec, spec_hash: str, cut: Cut, options: Options, pixels: Mapping[str, Pixels]) -> dict[str, Any]:
    """Makes the spec of the steps after a cut of a spec, as plain values; `pixels` has the form of the pixels of each feature."""
    features = {name: _feature(t, options, pixels.get(name)) for name, t in cut.type.items() if not kind_of(t).numbers_items}
    source: dict[str, Any] = {"path": ".", "of": spec_hash, "splits": list(spec.split_names()), "features": features}
    if options.changes():
        source["changes"] = options.changes()
    values: dict[str, Any] = {"pipegen": 1, **({"name": spec.name} if spec.name else {}), "source": {"prepared": source}}
    for section in type(spec).model_fields:
        if section in _DONE or section not in spec.model_fields_set:
            continue
        value = getattr(spec, section)
        if section == "tests":
            values[section] = [{test.op: test.model_dump(mode="json", exclude_unset=True)} for test in value]
        elif section == "views" and isinstance(value, dict):
            values[section] = {name: view.model_dump(mode="json", exclude_unset=True) for name, view in value.items()}
        else:
            values[section] = value.model_dump(mode="json", exclude_unset=True) if hasattr(value, "model_dump") else value
    values.get("runtime", {}).pop("cache", None)
    values.get("sampling", {}).pop("subset", None)  # the store has only those examples
    values = {name: value for name, value in values.items() if value not in ([], {})}
    if values.get("epoch") == "pass":
        del values["epoch"]
    first = [] if options.format == "raw" or options.keeps_files else [_DECODE]
    values["transforms"] = [*first, *_steps(spec, 0 if options.keeps_files else cut.steps)]
    return values


def fitting(values: dict[str, Any]) -> dict[str, Any]:
    """Drops tests that need the original data, such as those of a column of its table. Raises `SpecError` if anything else in the spec
    is wrong."""
    try:
        load(values, allowed=CHECKED)
    except SpecError as error:
        places = [_OF_TEST.match(finding.labels[0].path) if finding.labels else None for finding in error.diagnostics]
        if None in places:
            raise
        odd = {int(place[1]) for place in places if place is not None}
        tests = [test for i, test in enumerate(values["tests"]) if i not in odd]
        values = {**values, "tests": tests}
        return fitting(values if tests else {name: value for name, value in values.items() if name != "tests"})
    return values


def _steps(spec: PipelineSpec, done: int) -> list[dict[str, Any]]:
    """Lists the steps after the first `done`; sets the ids of random steps that would get another one."""
    ids = ids_of(spec.transforms)[done:]
    left = spec.transforms[done:]
    found = []
    for step, own, now in zip(left, ids, ids_of(left), strict=True):
        arguments = step_kwargs(step)
        found.append({step.op: arguments if own == now or not step.random else {**arguments, "id": own}})
    return found


def _feature(t: FeatureType, options: Options, pixels: Pixels | None) -> dict[str, Any]:
    """Describes a feature for the source `prepared`."""
    kind = kind_of(t)
    files = kind.pictured and options.format != "raw"
    home = t.beside or t.instances
    whole = next((other.name for other in kinds() if home is not None and other.each == t.kind), t.kind)
    found: dict[str, Any] = {"kind": whole, "dtype": "string" if files else t.dtype} | ({"with": home} if home is not None else {})
    shape = list(t.shape)
    if kind.pictured and options.shorter_side is not None:
        shape = [None, None, shape[2]]
    if files:
        found |= {"channels": t.shape[2]} | ({"bits": 16} if t.dtype == "uint16" else {})
    if not files or None not in shape[:2]:
        found["shape"] = shape
    if pixels is not None and pixels.canvas:
        found["canvas"] = list(pixels.canvas[:2])
    standing = INTEGER_RANGES.get(t.dtype) if kind.levels else None
    if t.interval is not None and t.interval != standing and not files:
        found["range"] = [t.interval.low, t.interval.high]
    for name in ("of", "classes", "ignore"):
        if getattr(t, name) and not (name == "of" and t.beside is not None and not kind.needs_image):
            found[name] = getattr(t, name)
    return found | ({"places": t.most} if t.most else {}) | kind.arguments_of(t)


def as_text(values: dict[str, Any], about: tuple[str, ...]) -> str:
    """Formats a spec as YAML, with comments before it."""
    return "".join(f"# {line}\n" for line in about) + to_yaml(values, _Plain, width=120)


class _Plain(Dumper):
    """A dumper that writes short lists and maps in one line."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        simple = all(not isinstance(item, (list, dict)) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=simple)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def same_meaning(spec: PipelineSpec, rest: PipelineSpec, done: int) -> None:
    """Raises `InternalError` if the remaining steps of two specs are not the same, with the same ids."""
    left = list(zip(spec.transforms, ids_of(spec.transforms), strict=True))[done:]
    now = list(zip(rest.transforms, ids_of(rest.transforms), strict=True))[len(rest.transforms) - len(left) :]
    before, after = ([(s.op, s.meaning(), i if s.random else "") for s, i in steps] for steps in (left, now))
    if before != after:
        raise InternalError("the spec of the remaining steps does not round-trip")
