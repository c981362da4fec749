"""A part of a mix as a spec of its own: its source and its splits, and its own steps in front of the common ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pipegen.diagnostics.diagnostic import Label
from pipegen.ops.base import Transform
from pipegen.ops.sources.listing.base import Listing, Source
from pipegen.ops.sources.parts.adapted import PART, Adapting, adapted
from pipegen.spec.locate import Locate
from pipegen.spec.models import Output, PipelineSpec
from pipegen.spec.source_map import KeyPath
from pipegen.types import ElementType, FeatureType


class PartSource(Source):
    """The source of a part, whose features have the names that they have in the mix, with those that are filled."""

    inner: Any
    """The part's own source."""
    adapting: Any
    """An `Adapting`: how its features become those of the mix."""

    @property
    def op(self) -> str:  # type: ignore[override]
        """The name of the part's own source."""
        return self.inner.op

    def infer(self) -> ElementType:
        return self.adapting.type_of(self.inner.infer())

    def possible(self) -> tuple[ElementType, ...]:
        return tuple(map(self.adapting.type_of, self.inner.possible()))

    def decoders(self) -> Mapping[str, Transform]:
        return {self.adapting.name(name): step for name, step in self.inner.decoders().items()}

    def described(self) -> Mapping[str, tuple[str, ...]]:
        return {self.adapting.name(name): path for name, path in self.inner.described().items()}

    def has_rows(self) -> bool:
        return self.inner.has_rows()

    def has_folders(self) -> bool:
        return self.inner.has_folders()

    def by_class(self) -> bool:
        return self.inner.by_class()

    def needs_data(self) -> bool:
        return self.inner.needs_data()

    def unpacked(self, base: Path) -> int:
        return self.inner.unpacked(base)

    def has_columns(self) -> bool:
        return self.inner.has_columns()

    def split_names(self) -> tuple[str, ...] | None:
        return self.inner.split_names()

    def split_method(self) -> Literal["random", "hash"]:
        return self.inner.split_method()

    def keep_index_in(self, folder: Path | None) -> None:
        self.inner.keep_index_in(folder)

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        return adapted(self.inner.list(base, progress, data), self.adapting)

    def list_parts(self, base: Path, folders: Mapping[str, str], progress: Callable[[int], None] | None = None) -> Listing:
        return adapted(self.inner.list_parts(base, folders, progress), self.adapting)


def joined(spec: PipelineSpec, name: str) -> PipelineSpec:
    """The spec of one part of a mix run alone: its data, and its own steps in front of the common ones."""
    part = spec.source.mixed()[name]
    changes = {
        "source": _source(spec, name),
        "splits": part.splits.by_default(part.source.split_method()),
        "transforms": (*part.transforms, *spec.transforms),
        "errors": spec.errors.model_copy(update={"exclude": None}),
        "tests": (),
        "epoch": "pass",
        "sampling": part.sampling,
        "stages": (),
        "order": part.order,
    }
    return spec.model_copy(update=changes)


def _source(spec: PipelineSpec, name: str) -> Source:
    part, names = spec.source.mixed()[name], tuple(spec.source.mixed())
    others = [other for other in spec.source.mixed().values() if other is not part]
    wanted = PART in _outputs(spec.output) and not any(PART in other.names() for other in (part, *others))
    fill: dict[str, tuple[FeatureType, Any]] = {}
    for feature, value in part.fill.items():
        known = next((t for other in others for t in [_type_of(other, feature)] if t is not None), None)
        if known is not None:
            fill[feature] = known, value
    if wanted:
        fill[PART] = FeatureType("label", "int64", (), classes=len(names)), names.index(name)
    if not part.features and not fill:
        source: Source = part.source
        return source
    order = tuple(dict.fromkeys((*spec.source.infer(), *part.names(), *fill)))
    return PartSource(
        inner=part.source, adapting=Adapting({own: new for new, own in part.features.items()}, fill, order, names if wanted else ())
    )


def _type_of(part: Any, feature: str) -> FeatureType | None:
    """The type of a feature of another part, under the name that it has in the mix."""
    own = part.features.get(feature, feature)
    found: FeatureType | None = part.source.infer().get(own) if feature in part.names() else None
    return found


def _outputs(output: Output) -> Iterator[str]:
    """Yields every feature that an output names."""
    for value in (output.x, output.y, output.sample_weight):
        if isinstance(value, str):
            yield value
        elif value is not None:
            yield from value.values() if isinstance(value, dict) else value


def part_path(name: str) -> KeyPath:
    """The key path of a part."""
    return ("source", "mix", "parts", name)


def relocated(locate: Locate, spec: PipelineSpec, name: str) -> Locate:
    """Finds places of a part's joined spec in the spec of the mix."""
    own = len(spec.source.mixed()[name].transforms)

    def label(path: KeyPath, text: str = "", *, key: bool = False) -> Label:
        return locate(relocate(path, name, own), text, key=key)

    return label


def relocate(path: Sequence[str | int], name: str, own: int) -> KeyPath:
    """The key path in the spec of a mix of one in the joined spec of a part that has `own` steps of its own."""
    path = tuple(path)
    if path[:1] == ("transforms",) and len(path) > 1 and isinstance(path[1], int):
        index = path[1]
        return (*part_path(name), *path) if index < own else ("transforms", index - own, *path[2:])
    return (*part_path(name), *path) if path[:1] in (("source",), ("splits",), ("sampling",), ("order",)) else path
