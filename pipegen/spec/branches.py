"""A spec with `views`, as each of its views has it: the common steps, and behind them those of the view's branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipegen.diagnostics.diagnostic import Label
from pipegen.ops.acting import named_by
from pipegen.spec.locate import Locate
from pipegen.spec.models import Features, Output, PipelineSpec
from pipegen.spec.source_map import KeyPath
from pipegen.spec.views import View
from pipegen.types import valid_name

_VALID = valid_name("")


@dataclass(frozen=True, slots=True)
class Lane:
    """One view of an example on one split.

    Attributes:
        suffix: What stands behind the name of a feature, after an underscore; empty for the only view.
        branch: The branch of `views` whose steps it has; `None` where there are no branches.
        images: The images that have it; `None` where all have.
    """

    suffix: str
    branch: str | None
    images: tuple[str, ...] | None = None

    def shows(self, image: str) -> bool:
        """Returns whether an image, and what is aligned with it, has this view."""
        return self.images is None or image in self.images

    def name(self, feature: str) -> str:
        """Returns the name of a feature in this view."""
        return f"{feature}_{self.suffix}" if self.suffix else feature


def branches(spec: PipelineSpec) -> dict[str | None, View]:
    """The branches of a spec by name; `views: 2` is one without a name."""
    return dict(spec.views.items()) if isinstance(spec.views, dict) else {None: View(count=spec.views)}


def lanes(spec: PipelineSpec, split: str) -> tuple[Lane, ...]:
    """The views of an example of a split, the first one first. A split that no branch runs on has one view, that of the first branch."""
    found = [lane for name, view in branches(spec).items() if named_by(view.when, split) for lane in _numbered(name, view)]
    return tuple(found) or (_first(spec),)


def _first(spec: PipelineSpec) -> Lane:
    """The view of a split that has no others."""
    name, view = next(iter(branches(spec).items()))
    return Lane("", name, view.images())


def every_lane(spec: PipelineSpec) -> tuple[Lane, ...]:
    """The views that a spec names, whichever splits have them."""
    return tuple(lane for name, view in branches(spec).items() for lane in _numbered(name, view))


def _numbered(name: str | None, view: View) -> list[Lane]:
    numbers = [str(i + 1) for i in range(view.count)] if view.count > 1 else [""]
    return [Lane("_".join(part for part in (name, number) if part), name, view.images()) for number in numbers]


def of_branch(spec: PipelineSpec, name: str | None) -> PipelineSpec:
    """The spec of one view of a branch: its steps stand behind the common ones."""
    own = () if name is None else branches(spec)[name].transforms
    return spec.model_copy(update={"views": 1, "transforms": (*spec.transforms, *own)})


def single(spec: PipelineSpec, features: Mapping[str, str] | None = None) -> PipelineSpec:
    """The spec of an example's first view alone, without `views`.

    Args:
        spec: The spec.
        features: Those that may have views, each with its image, where the output is to be that of one view.
    """
    if spec.views == 1:
        return spec
    first = _first(spec)
    return of_branch(spec, first.branch).model_copy(update={"output": arranged(spec, (first,), features or {})})


def relocated(locate: Locate, spec: PipelineSpec, name: str | None) -> Locate:
    """Finds places of the spec of a branch's view in the spec itself."""
    if name is None:
        return locate

    def label(path: KeyPath, text: str = "", *, key: bool = False) -> Label:
        return locate(relocate(path, spec, name), text, key=key)

    return label


def relocate(path: Sequence[str | int], spec: PipelineSpec, name: str | None) -> KeyPath:
    """The key path in a spec of one in the spec of a branch's view."""
    path, common = tuple(path), len(spec.transforms)
    if name is not None and path[:1] == ("transforms",) and len(path) > 1 and isinstance(path[1], int) and path[1] >= common:
        return ("views", name, "transforms", path[1] - common, *path[2:])
    return path


def arranged(spec: PipelineSpec, present: Sequence[Lane], features: Mapping[str, str]) -> Output:
    """The output of a split, in which a feature, or a branch of it, stands for its views there, and views that are not there are left out.

    Args:
        spec: The spec.
        present: The views of the split.
        features: Those that may have views, each with the image that it is aligned with, or that it is.
    """
    names = _Names(spec, present, features)
    output = spec.output
    encode = {own: how for name, how in output.encode.items() for own in names.of(name)}
    changes = {"x": names.arrange(output.x), "y": None if output.y is None else names.arrange(output.y), "encode": encode}
    given = {key: value for key, value in changes.items() if key in output.model_fields_set or key == "x" or value != getattr(output, key)}
    return output.model_copy(update=given)


class _Names:
    """Maps what an output names to the features of one split."""

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
                only = here == {""} and lane == first  # the only view of a split is the first one of its branch
                name = self._view(feature, lane.suffix)
                own = (name,) if lane.suffix in here else (feature,) if only else ()
                self._known[name] = own
                if lane.branch is not None:
                    group = self._view(feature, lane.branch)
                    self._known[group] = own if group == name else (*self._known.get(group, ()), *own)
            self._known[feature] = tuple(self._view(feature, lane.suffix) for lane in present if lane.shows(image)) or (feature,)

    def _view(self, feature: str, suffix: str) -> str:
        """The name of a feature in a view; what says which items are there is called by the view of these."""
        of = feature.removesuffix(_VALID)
        if of != feature and of in self._features:
            return valid_name(f"{of}_{suffix}") if suffix else feature
        return f"{feature}_{suffix}" if suffix else feature

    def of(self, name: str) -> tuple[str, ...]:
        """The features that a name stands for; itself where it has no views."""
        return self._known.get(name, (name,))

    def arrange(self, wanted: Features) -> Features:
        """An `x` or a `y` with the features of the split."""
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
    """Returns what the name of a view has behind that of its feature."""
    if not view.startswith(name):
        name, view = name.removesuffix(_VALID), view.removesuffix(_VALID)
    return view.removeprefix(name)
