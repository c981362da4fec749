"""The spec of a single view, bucket or part of a mix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipegen.frozen import dataclass
from pipegen.ops.families.combining import named_by, on_split
from pipegen.ops.sampling_sections import Buckets, LengthBuckets, says_bucket, sized
from pipegen.ops.sources.listing.base import Listing, Source
from pipegen.ops.sources.parts.adapted import PART, Adapting, adapted
from pipegen.ops.transform import Transform
from pipegen.spec import lengths
from pipegen.spec.locate import Locate
from pipegen.spec.models import Features, Output, PipelineSpec, View, received
from pipegen.spec.source_map import KeyPath
from pipegen.types import ElementType, FeatureType, length_name, valid_name

_VALID = valid_name("")


@dataclass(frozen=True, slots=True)
class Lane:
    """One view of an example on one split."""

    suffix: str  # the ending of the names of its features, after an underscore; "" for the only view
    branch: str | None  # the branch of `views` with its steps; `None` without branches
    images: tuple[str, ...] | None = None  # the images with this view; `None` for all

    def shows(self, image: str) -> bool:
        """Tests if an image, with the features aligned with it, has this view."""
        return self.images is None or image in self.images

    def name(self, feature: str) -> str:
        """The name of a feature in this view."""
        return f"{feature}_{self.suffix}" if self.suffix else feature


def branches(spec: PipelineSpec) -> dict[str | None, View]:
    """The branches of a spec by name; `views: 2` is one without a name."""
    return dict(spec.views.items()) if isinstance(spec.views, dict) else {None: View(count=spec.views)}


def lanes(spec: PipelineSpec, split: str) -> tuple[Lane, ...]:
    """The views of an example of a split, in order; a split without branches has one view, that of the first branch."""
    found = [lane for name, view in branches(spec).items() if named_by(view.when, split) for lane in _numbered(name, view)]
    return tuple(found) or (_first(spec),)


def _first(spec: PipelineSpec) -> Lane:
    name, view = next(iter(branches(spec).items()))
    return Lane("", name, view.images())


def every_lane(spec: PipelineSpec) -> tuple[Lane, ...]:
    """The views of all splits."""
    return tuple(lane for name, view in branches(spec).items() for lane in _numbered(name, view))


def _numbered(name: str | None, view: View) -> list[Lane]:
    numbers = [str(i + 1) for i in range(view.count)] if view.count > 1 else [""]
    return [Lane("_".join(part for part in (name, number) if part), name, view.images()) for number in numbers]


def of_branch(spec: PipelineSpec, name: str | None) -> PipelineSpec:
    """The spec of one view of a branch, with its steps after the common ones."""
    own = () if name is None else branches(spec)[name].transforms
    return spec.model_copy(update={"views": 1, "transforms": (*spec.transforms, *own)})


def single(spec: PipelineSpec, features: Mapping[str, str] | None = None) -> PipelineSpec:
    """The spec of the first view alone, without `views`; its output is adapted to the features that can have views, each with its image."""
    if spec.views == 1:
        return spec
    first = _first(spec)
    return of_branch(spec, first.branch).model_copy(update={"output": arranged(spec, (first,), features or {})})


def relocated(locate: Locate, spec: PipelineSpec, name: str | None) -> Locate:
    """Maps places of the spec of a branch's view to those of the whole spec."""
    return locate if name is None else lambda path, *text, **key: locate(relocate(path, spec, name), *text, **key)


def relocate(path: Sequence[str | int], spec: PipelineSpec, name: str | None) -> KeyPath:
    """Maps a key path of the spec of a branch's view to that of the whole spec."""
    path, common = tuple(path), len(spec.transforms)
    if name is not None and path[:1] == ("transforms",) and len(path) > 1 and isinstance(path[1], int) and path[1] >= common:
        return ("views", name, "transforms", path[1] - common, *path[2:])
    return path


def arranged(spec: PipelineSpec, present: Sequence[Lane], features: Mapping[str, str]) -> Output:
    """The output of a split: a feature, or a branch of it, becomes its views on that split; missing views are left out.

    `present` are the views of the split, and `features` the features that can have views, each with its image.
    """
    names = _Names(spec, present, features)
    output = spec.output
    encode = {own: how for name, how in output.encode.items() for own in names.of(name)}
    changes = {"x": names.arrange(output.x), "y": None if output.y is None else names.arrange(output.y), "encode": encode}
    given = {key: value for key, value in changes.items() if key in output.model_fields_set or key == "x" or value != getattr(output, key)}
    return output.model_copy(update=given)


class _Names:
    """The mapping from names in an output to the features of one split."""

    def __init__(self, spec: PipelineSpec, present: Sequence[Lane], features: Mapping[str, str]) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self._features = features
        here = {lane.suffix for lane in present}
        every = every_lane(spec)
        first = next(lane for lane in every if lane.branch == present[0].branch)
        for feature, image in features.items():
            if not any(lane.shows(image) for lane in every):
                continue
            for lane in (lane for lane in every if lane.shows(image)):
                only = here == {""} and lane == first  # the only view of a split is the first of its branch
                name = self._view(feature, lane.suffix)
                own = (name,) if lane.suffix in here else (feature,) if only else ()
                self._known[name] = own
                if lane.branch is not None:
                    group = self._view(feature, lane.branch)
                    self._known[group] = own if group == name else (*self._known.get(group, ()), *own)
            self._known[feature] = tuple(self._view(feature, lane.suffix) for lane in present if lane.shows(image)) or (feature,)
        for made in (length_name, valid_name):  # what padding makes of each view
            self._known = {made(name): tuple(map(made, own)) for name, own in self._known.items()} | self._known

    def _view(self, feature: str, suffix: str) -> str:
        """The name of a feature in a view; a mask of valid items is named by the view of the items."""
        of = feature.removesuffix(_VALID)
        if of != feature and of in self._features:
            return valid_name(f"{of}_{suffix}") if suffix else feature
        return f"{feature}_{suffix}" if suffix else feature

    def of(self, name: str) -> tuple[str, ...]:
        """The features that a name means; the name itself if it has no views."""
        return self._known.get(name, (name,))

    def arrange(self, wanted: Features) -> Features:
        """Maps an `x` or a `y` to the features of the split."""
        if isinstance(wanted, str):
            found = self.of(wanted)
            return found[0] if len(found) == 1 else {name: name for name in found}
        if isinstance(wanted, list):
            return [own for name in wanted for own in self.of(name)]
        made: dict[str, str] = {}
        for key, name in wanted.items():
            found = self.of(name)
            made |= {key: found[0]} if len(found) == 1 else {f"{key}{_behind(name, own)}": own for own in found}
        return made


def _behind(name: str, view: str) -> str:
    """The ending of a view's name after that of its feature."""
    if not view.startswith(name):
        name, view = name.removesuffix(_VALID), view.removesuffix(_VALID)
    return view.removeprefix(name)


_NOWHERE = (224, 224)  # a placeholder for the size of a bucket without `buckets`, which is an error found elsewhere


def of_bucket(spec: PipelineSpec, number: int | None = None) -> PipelineSpec:
    """The spec of the examples of one bucket; by default of the images of the first, and of examples of any length."""
    buckets = spec.batch.buckets
    if isinstance(buckets, LengthBuckets) and number is not None:
        own: dict[str, object] = {"buckets": buckets.model_copy(update={"sizes": (buckets.sizes[number],)})}
        if number < len(buckets.sizes) - 1:  # only the last one holds examples that are longer
            own["pad"] = lengths.uncut(spec)
        return spec.model_copy(update={"batch": spec.batch.model_copy(update=own)})
    size = buckets.sizes[number or 0] if isinstance(buckets, Buckets) else _NOWHERE
    if not says_bucket(spec.transforms) and not isinstance(spec.views, dict):
        return spec
    changes: dict[str, object] = {"transforms": tuple(sized(step, size) for step in spec.transforms)}
    if isinstance(spec.views, dict):
        steps = {name: tuple(sized(step, size) for step in view.transforms) for name, view in spec.views.items()}
        changes["views"] = {name: view.model_copy(update={"transforms": steps[name]}) for name, view in spec.views.items()}
    return spec.model_copy(update=changes)


def bucketed(spec: PipelineSpec, split: str) -> bool:
    """Tests if batches of a split have the sizes of buckets, because a step on that split has, or lengths vary."""
    if spec.batch.buckets is None:
        return False
    if isinstance(spec.batch.buckets, LengthBuckets):
        name = lengths.bucketed_feature(spec)
        return name is not None and lengths.varies_on(spec, split, name)
    own = branches(spec)
    views = [own[name].transforms for name in dict.fromkeys(lane.branch for lane in lanes(spec, split)) if name is not None]
    return says_bucket([form for steps in (spec.transforms, *views) for step in steps for form in on_split(step, split)])


class PartSource(Source):
    """The source of a part, with its features renamed and filled as in the mix."""

    inner: Any
    """The part's own source."""
    adapting: Any
    """The `Adapting` from its features to those of the mix."""

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

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        return adapted(self.inner.list(base, progress, data), self.adapting)

    def list_parts(self, base: Path, folders: Mapping[str, str], progress: Callable[[int], None] | None = None) -> Listing:
        return adapted(self.inner.list_parts(base, folders, progress), self.adapting)


_OF_INNER = ("has_rows", "has_folders", "by_class", "needs_data", "unpacked", "column_names", "columns_cost")
for _own in (*_OF_INNER, "split_names", "split_method", "series", "keep_index_in"):  # methods that call those of the part's own source
    setattr(PartSource, _own, lambda part, *args, _own=_own: getattr(part.inner, _own)(*args))


def joined(spec: PipelineSpec, name: str) -> PipelineSpec:
    """The spec of one part of a mix alone: its data, and its own steps before the common ones."""
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
    wanted = PART in received(spec.output) and not any(PART in other.names() for other in (part, *others))
    fill: dict[str, tuple[FeatureType, Any]] = {}
    for feature, value in part.fill.items():
        having = (other for other in others if feature in other.names())
        types = (other.source.infer().get(other.features.get(feature, feature)) for other in having)
        known = next((type_ for type_ in types if type_ is not None), None)
        if known is not None:
            fill[feature] = known, value
    if wanted:
        fill[PART] = FeatureType("label", "int64", (), classes=len(names)), names.index(name)
    if not part.features and not fill:
        return part.source
    order = tuple(dict.fromkeys((*spec.source.infer(), *part.names(), *fill)))
    adapting = Adapting({own: new for new, own in part.features.items()}, fill, order, names if wanted else ())
    return PartSource(inner=part.source, adapting=adapting)


def part_path(name: str) -> KeyPath:
    """The key path of a part."""
    return ("source", "mix", "parts", name)


def relocated_part(locate: Locate, spec: PipelineSpec, name: str) -> Locate:
    """Maps places of a part's joined spec to those of the spec of the mix."""
    own = len(spec.source.mixed()[name].transforms)
    return lambda path, *text, **key: locate(relocate_part(path, name, own), *text, **key)


def relocate_part(path: Sequence[str | int], name: str, own: int) -> KeyPath:
    """Maps a key path of the joined spec of a part, which has `own` steps of its own, to that of the spec of the mix."""
    path = tuple(path)
    if path[:1] == ("transforms",) and len(path) > 1 and isinstance(path[1], int):
        index = path[1]
        return (*part_path(name), *path) if index < own else ("transforms", index - own, *path[2:])
    return (*part_path(name), *path) if path[:1] in (("source",), ("splits",), ("sampling",), ("order",)) else path
