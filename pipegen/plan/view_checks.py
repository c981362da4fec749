"""Checks the section `views`: what its branches may hold, the names of views, and what of them the model receives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.diagnostics.suggest import closest
from pipegen.ops.base import Transform
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.mixing import MixingTransform
from pipegen.plan.lanes import viewed
from pipegen.plan.outputs import names
from pipegen.spec.branches import arranged, branches, every_lane, lanes, of_branch
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.spec.steps import collisions, every_id
from pipegen.spec.words import one_of
from pipegen.types import ElementType


def check_views(spec: PipelineSpec, record: ElementType, locate: Locate) -> Iterator[Diagnostic]:
    """Yields what is wrong with the views of a spec, whose records are of the type `record`."""
    if spec.views == 1:
        return
    features, at = viewed(record.padded()), locate(("views",), key=True)
    if not features:
        message = "`views` are of images, and no feature of the source is one"
        yield make("PG245", message, at, help="leave `views` out")
        return
    views = (lane.name(name) for name, image in features.items() for lane in every_lane(spec) if lane.suffix and lane.shows(image))
    known = Counter([*record.padded(), *views])
    twice = next((name for name, times in known.items() if times > 1), None)
    if twice is not None:
        message = f"there would be two features `{twice}`, since the views of a feature have its name and their own"
        yield make("PG244", message, at, help="give the feature, or the branch of `views`, another name")
    yield from _chosen(spec, features, locate)
    yield from _lacking(spec, features, locate)
    yield from _branches(spec, locate)


def _lacking(spec: PipelineSpec, features: Mapping[str, str], locate: Locate) -> Iterator[Diagnostic]:
    """Reports splits of which the model would receive nothing, since they have none of the views that it takes."""
    for split in spec.split_names():
        output = arranged(spec, lanes(spec, split), features)
        for key, wanted in (("x", output.x), ("y", output.y)):
            if wanted is not None and not names(wanted):
                of = ", ".join(f"`{name}`" for name in names(getattr(spec.output, key)))
                message = f"split `{split}` has one view of an example, the first, and `output.{key}` takes {of} alone"
                if len(lanes(spec, split)) > 1:
                    message = f"split `{split}` has none of the views that `output.{key}` takes: {of}"
                help_ = (
                    "give that split the view as well: a branch of `views` has `when: all`",
                    "or name a feature, such as `image`, which stands for all of its views that are there",
                )
                yield make("PG246", message, locate(("output", key)), help=help_)
                return


def _chosen(spec: PipelineSpec, features: Mapping[str, str], locate: Locate) -> Iterator[Diagnostic]:
    """Reports branches that are of what is no image, or of an image whose first view there is not."""
    images, first = sorted({*features.values()}), next(iter(branches(spec).items()))
    for name, view in branches(spec).items():
        for chosen in view.images() or ():
            at = locate(("views", str(name), "of"))
            if chosen in features and chosen not in images:
                message = f"`{chosen}` is aligned with `{features[chosen]}`, and has the views of that"
                yield make("PG247", message, at, help=f"`{features[chosen]}` is the image to name")
            elif chosen not in images:
                near = closest(chosen, images)
                message = f"`{name}` is of `{chosen}`, and there is no image of that name"
                yield make("PG247", message, at, help=f"did you mean `{near}`?" if near else f"images are {one_of(images, 'and')}")
            elif (own := first[1].images()) is not None and chosen not in own and {*own} <= {*images}:
                message = f"`{name}` is of `{chosen}`, and the first branch, `{first[0]}`, is not: other splits have the view of that one"
                help_ = (f"let `{first[0]}` be of `{chosen}` as well", "or write first the branch that is of both")
                yield make("PG248", message, at, locate(("views", str(first[0]), "of"), "not of that image"), help=help_)


def _branches(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Reports steps of branches that all views have to have, and those that would draw the same numbers."""
    for name, view in branches(spec).items() if isinstance(spec.views, dict) else ():
        for i, step in enumerate(view.transforms):
            why = _why_common(step)
            if why:
                help_ = "write it in `transforms`, which all views go through"
                at = locate(("views", str(name), "transforms", i, step.op), key=True)
                yield make("PG243", f"`{step.op}` {why}, so it is no step of `{name}` alone", at, help=help_)
        yield from _same_ids(spec, str(name), locate)


def _why_common(step: Transform) -> str:
    """Says why a step is one of all views, if it is."""
    if isinstance(step, DecodeTransform):
        return "makes pixels of the file, which is decoded once for all views"
    if isinstance(step, MixingTransform):
        return "mixes whole examples, with all of their views and their label"
    if isinstance(step, FittedTransform) and step.learns():
        return "takes its numbers from the training split"
    return "calls a Python function" if isinstance(step, CustomTransform) else ""


def _same_ids(spec: PipelineSpec, name: str, locate: Locate) -> Iterator[Diagnostic]:
    """Reports steps of one view that would draw the same numbers; those of `transforms` alone are found when the spec is read."""
    common = len(spec.transforms)
    places, ids = zip(*found, strict=True) if (found := every_id(of_branch(spec, name).transforms)) else ((), ())
    for first, second in collisions(ids):
        if not isinstance(places[second][0], int) or places[second][0] < common:
            continue
        paths = [_path(places[i], common, name) for i in (first, second)]
        labels = locate((*paths[1], "id"), "again here"), locate((*paths[0], "id"), "first here")
        help_ = "steps with one id would draw the same random numbers: give one of them another `id`"
        yield make("PG216", f"two steps of the view `{name}` have the id `{ids[first]}`", *labels, help=help_)


def _path(place: tuple[str | int, ...], common: int, name: str) -> tuple[str | int, ...]:
    number = place[0]
    own = isinstance(number, int) and number >= common
    return ("views", name, "transforms", int(number) - common, *place[1:]) if own else ("transforms", *place)
