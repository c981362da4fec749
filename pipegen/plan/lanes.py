"""The views of an example on one split: their features, their steps, and the places of their draws.

The steps of each view run apart; only steps that combine examples run on all views together, with the same draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import takewhile, zip_longest

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.diagnostics.suggest import closest
from pipegen.ops.families.combining import CombiningTransform, anchor
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.kinds.base import Presence, Values, having, kind_of
from pipegen.ops.stage import StepRef
from pipegen.ops.transform import Transform
from pipegen.plan import stages as s
from pipegen.plan.followers import Act, anchors, own_draws
from pipegen.plan.recipe import Recipe, implicit_decode, recipe
from pipegen.spec.expect import one_of
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, names
from pipegen.spec.step_list import collisions, every_id
from pipegen.spec.variants import Lane, arranged, branches, every_lane, lanes, of_branch, relocate, relocated, single
from pipegen.types import ElementType, valid_name


class Lanes:
    """The views of an example on one split; `type_` is the type of a record, padded, which may have only some features of the `whole`.

    Attributes:
        viewed: The features that can have views (images and features aligned with them), each with its image.
        spec: The spec, with the output of this split.
        draws: The uses of steps that draw, in the order of the vector of draws.
    """

    def __init__(self, spec: PipelineSpec, split: str, type_: ElementType, whole: ElementType) -> None:
        self._lanes = lanes(spec, split)
        self._type = type_
        self.viewed = viewed(type_)
        self.spec = spec if spec.views == 1 else spec.model_copy(update={"output": arranged(spec, self._lanes, self.viewed)})
        each = {branch: own.beside(whole) for branch, own in recipes(spec, split).items()}
        self._steps = [_with_decode(each[lane.branch].steps, type_) for lane in self._lanes]
        self._places: dict[str, tuple[int, str]] = {}
        self._firsts: dict[str, tuple[int, str]] = {}  # the places of the first one of the same kind in a view
        draws: list[StepRef] = []
        offset = 0
        for lane in self._lanes:
            made = each[lane.branch]
            firsts: dict[str, tuple[int, str]] = {}
            for image in anchors(type_):
                if not self._in(lane, image):
                    continue
                name = self._name(lane, image)
                # The first view of an image draws as the image does without views, so the image's name keys it.
                key = image if lane is self._lanes[0] else name
                self._places[name] = place = (offset, key if self._places else "")
                self._firsts[name] = firsts.setdefault(type_[image].kind, place)
                draws += [own_draws(ref, partial(_always, place)) for ref in made.draws]
                offset += sum(ref.num_draws for ref in made.draws)
        self.draws = tuple(draws)

    @property
    def several(self) -> bool:
        """Whether there are several views, or one with a name of its own."""
        return len(self._lanes) > 1 or bool(self._lanes[0].suffix)

    def forks(self) -> Iterator[s.Fork]:
        """Yields the stages that make the views of each feature."""
        for name in self.viewed if self.several else ():
            of = self._type[name].of
            having = [lane for lane in self._lanes if lane.shows(self.viewed[name])]
            homes = tuple(self._name(lane, of) for lane in having) if of in self.viewed and of is not None else ()
            beside = self._type[name].beside or self._type[name].instances
            besides = tuple(self._name(lane, beside) for lane in having) if beside is not None and beside in self.viewed else ()
            if having:
                yield s.Fork(name, tuple(self._name(lane, name) for lane in having), homes, besides)

    def home(self, feature: str) -> str:
        """The feature of a record that `feature` is a view of, else `feature` itself."""
        return next((name for name in self.viewed for lane in self._lanes if self._name(lane, name) == feature), feature)

    def own(self, ref: StepRef, image: str) -> StepRef:
        """The use of a step on an image, or on features aligned with it, with that image's draws; or with those of the first series of a
        window, if it moves time, which is one for all of them."""
        kind = self._type[self.home(image)].kind
        return own_draws(ref, lambda step: (self._firsts if step.shares_draws(kind) else self._places).get(image, (0, "")))

    def scales(self, ref: StepRef, feature: str, *, crops: bool) -> bool:
        """Tests if a step may decide the decoded size of a feature's file: all of its views have to need the same size."""
        return not self.several or feature == self.home(feature) or (ref.path[:1] == ("transforms",) and not crops and not ref.is_random)

    def runs(self, chosen: Callable[[StepRef], tuple[str, ...]]) -> Iterator[tuple[list[Act], tuple[Act, tuple[StepRef, ...]] | None]]:
        """Yields the steps of all views up to the next one that combines examples, and that one with all later steps.

        `chosen` selects the features of a record that a use of a step acts on.
        """
        each = [_split(steps) for steps in self._steps]
        found = {id(ref): chosen(ref) for steps in self._steps for ref in steps}
        for number, level in enumerate(zip_longest(*each, fillvalue=((), None))):
            run = [(ref, self._of(lane, found[id(ref)])) for lane, (steps, _) in zip(self._lanes, level, strict=True) for ref in steps]
            combining = level[0][1]
            if combining is None:
                yield run, None
                continue
            features = tuple(name for lane in self._lanes for name in self._of(lane, found[id(combining)]))
            later = tuple(ref for runs in each for steps, last in runs[number + 1 :] for ref in (*steps, *([last] if last else ())))
            yield run, ((combining, features), later)

    def _of(self, lane: Lane, features: tuple[str, ...]) -> tuple[str, ...]:
        """The names of features in one view."""
        return tuple(self._name(lane, name) for name in features if self._in(lane, name))

    def _in(self, lane: Lane, feature: str) -> bool:
        """Tests if a feature goes through the steps of a view; one without views goes through those of the first."""
        image = self.viewed.get(feature)
        if image is not None and lane.shows(image):
            return True
        return lane is self._lanes[0] and (image is None or not any(other.shows(image) for other in self._lanes))

    def _name(self, lane: Lane, feature: str) -> str:
        if feature not in self.viewed or not lane.shows(self.viewed[feature]):
            return feature
        of = self._type[feature].of
        return valid_name(lane.name(of)) if kind_of(self._type[feature]).has(Presence) and of is not None else lane.name(feature)


def first_view(spec: PipelineSpec, locate: Locate, record: ElementType | Mapping[str, ElementType]) -> tuple[PipelineSpec, Locate]:
    """The spec of the first view alone, for prediction, serving and tests of the data, and the `Locate` for it.

    `record` is the type of a record; of a mix, of a record of each part.
    """
    if spec.views == 1:
        return spec, locate
    type_ = record if isinstance(record, ElementType) else next(iter(record.values()))
    return single(spec, viewed(type_.padded())), relocated(locate, spec, next(iter(branches(spec))))


def recipes(spec: PipelineSpec, split: str) -> dict[str | None, Recipe]:
    """The steps of each branch that a split runs."""
    named = dict.fromkeys(lane.branch for lane in lanes(spec, split))
    return {name: recipe(of_branch(spec, name), split, partial(relocate, spec=spec, name=name)) for name in named}


def viewed(type_: ElementType) -> dict[str, str]:
    """The features of a record that can have views (images and features aligned with them), each with its image."""

    def root(name: str) -> str:
        above = anchor(type_, name)
        return name if above == name else root(above)

    images = {name: root(name) for name, _ in type_.items()}
    return {name: image for name, image in images.items() if image in having(type_, Values)}


def _always(place: tuple[int, str], _step: Transform) -> tuple[int, str]:
    return place


def _split(steps: tuple[StepRef, ...]) -> list[tuple[tuple[StepRef, ...], StepRef | None]]:
    """Splits steps at those that combine examples: pairs of the steps before one, and that one."""
    found: list[tuple[tuple[StepRef, ...], StepRef | None]] = []
    done = 0
    for place, ref in enumerate(steps):
        if isinstance(ref.step, CombiningTransform):
            found.append((steps[done:place], ref))
            done = place + 1
    return [*found, (steps[done:], None)]


def _with_decode(steps: tuple[StepRef, ...], type_: ElementType) -> tuple[StepRef, ...]:
    """Adds the implicit `decode` in front, unless the spec has one for all files."""
    leading = [ref.step.feature for ref in takewhile(lambda ref: isinstance(ref.step, DecodeTransform), steps)]
    if None in leading or all(not t.encoded or name in leading for name, t in type_.items()):
        return steps
    return implicit_decode(), *steps


def check_views(spec: PipelineSpec, record: ElementType, locate: Locate) -> Iterator[Diagnostic]:
    """Checks the views of a spec; `record` is the type of a record."""
    if spec.views == 1:
        return
    features, at = viewed(record.padded()), locate(("views",), key=True)
    if not features:
        message = "`views` need an image, and the source has none"
        yield make("PG245", message, at, help="leave `views` out")
        return
    views = (lane.name(name) for name, image in features.items() for lane in every_lane(spec) if lane.suffix and lane.shows(image))
    known = Counter([*record.padded(), *views])
    twice = next((name for name, times in known.items() if times > 1), None)
    if twice is not None:
        message = f"`views` makes two features `{twice}`, since a view is named by its feature and its branch"
        yield make("PG244", message, at, help="give the feature, or the branch of `views`, another name")
    yield from _chosen(spec, features, locate)
    yield from _lacking(spec, features, locate)
    for name, view in branches(spec).items() if isinstance(spec.views, dict) else ():
        for i, step in enumerate(view.transforms):
            why = _why_common(step)
            if why:
                help_ = "write it in `transforms`, which all views go through"
                place = locate(("views", str(name), "transforms", i, step.op), key=True)
                yield make("PG243", f"`{step.op}` {why}, so it cannot be a step of `{name}` alone", place, help=help_)
        yield from _same_ids(spec, str(name), locate)


def _lacking(spec: PipelineSpec, features: Mapping[str, str], locate: Locate) -> Iterator[Diagnostic]:
    """Finds splits that have none of the views that the model takes."""
    for split in spec.split_names():
        output = arranged(spec, lanes(spec, split), features)
        for key, wanted in (("x", output.x), ("y", output.y)):
            if wanted is not None and not names(wanted):
                of = ", ".join(f"`{name}`" for name in names(getattr(spec.output, key)))
                message = f"split `{split}` has only the first view of an example, but `output.{key}` takes only {of}"
                if len(lanes(spec, split)) > 1:
                    message = f"split `{split}` has none of the views that `output.{key}` takes: {of}"
                help_ = (
                    "give that split the view, too: set `when: all` on a branch of `views`",
                    "or name a feature, such as `image`, which stands for all of its views",
                )
                yield make("PG246", message, locate(("output", key)), help=help_)
                return


def _chosen(spec: PipelineSpec, features: Mapping[str, str], locate: Locate) -> Iterator[Diagnostic]:
    """Finds branches of unknown images, and of images that the first branch leaves out."""
    images, first = sorted({*features.values()}), next(iter(branches(spec).items()))
    for name, view in branches(spec).items():
        for chosen in view.images() or ():
            at = locate(("views", str(name), "of"))
            if chosen in features and chosen not in images:
                message = f"`{chosen}` is not an image: it has the views of `{features[chosen]}`, which it is aligned with"
                yield make("PG247", message, at, help=f"name the image, `{features[chosen]}`")
            elif chosen not in images:
                near = closest(chosen, images)
                message = f"unknown image `{chosen}` in the view `{name}`"
                yield make("PG247", message, at, help=f"did you mean `{near}`?" if near else f"images are {one_of(images, 'and')}")
            elif (own := first[1].images()) is not None and chosen not in own and {*own} <= {*images}:
                message = f"`{name}` is of `{chosen}`, but the first branch, `{first[0]}`, is not; other splits have only the first view"
                help_ = (f"name `{chosen}` in `of` of `{first[0]}`, too", "or write the branch that is of both first")
                yield make("PG248", message, at, locate(("views", str(first[0]), "of"), "not of that image"), help=help_)


def _why_common(step: Transform) -> str:
    """Explains why a step has to be common to all views, or ""."""
    if isinstance(step, DecodeTransform):
        return "decodes the file, once for all views"
    if isinstance(step, CombiningTransform):
        return "combines whole examples, with all of their views and their label"
    if isinstance(step, FittedTransform) and step.learns():
        return "is fitted to the training split"
    return "calls a Python function" if isinstance(step, CustomTransform) else ""


def _same_ids(spec: PipelineSpec, name: str, locate: Locate) -> Iterator[Diagnostic]:
    """Finds steps of one view that share an id; those of `transforms` alone are found when the spec is read."""
    for (first, step_id), (second, _) in collisions(every_id(of_branch(spec, name).transforms)):
        one, other = (relocate(("transforms", *path, "id"), spec, name) for path in (first, second))
        if other[0] != "views":
            continue
        labels = locate(other, "again here"), locate(one, "first here")
        help_ = "give one of them another `id`: steps with equal ids draw the same random numbers"
        yield make("PG216", f"two steps of the view `{name}` have the id `{step_id}`", *labels, help=help_)
