"""All checks that need no data: plans of every split, and the findings on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from pipegen.data.shares import share_problem
from pipegen.data.split_checks import check_splits
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Severity
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.data_test import Known
from pipegen.ops.families.combining import acted_on, anchor
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.lengths import PadLength
from pipegen.ops.kinds.base import ExampleClass, ItemClass, having, kind_of
from pipegen.plan.bucketed_plans import at_places, build_plan, check_buckets, check_sampling
from pipegen.plan.build import ALL, Built, Given, Records
from pipegen.plan.evaluation_plans import check_fitting
from pipegen.plan.lanes import check_views, first_view
from pipegen.plan.lints import lint_recipe
from pipegen.plan.nodes import Plan
from pipegen.plan.padding import check_padding
from pipegen.plan.recipe import python_steps, step_path
from pipegen.spec.drafts import Draft
from pipegen.spec.locate import Locate
from pipegen.spec.models import Features, PipelineSpec, ShardIndex, names
from pipegen.spec.places import check_fetching
from pipegen.spec.variants import branches, joined, of_branch, of_bucket, part_path, relocated, relocated_part
from pipegen.types import ElementType, FeatureType, times


def check_data_tests(spec: PipelineSpec, plans: Mapping[str, Plan], locate: Locate) -> Iterator[Diagnostic]:
    """Finds tests that cannot work whatever the data is; unknown splits are found by `check_splits`."""
    if not spec.tests:
        return
    known = known_of(spec, plans)
    for index, test in enumerate(spec.tests):
        if set(test.splits(known.splits)) <= set(known.splits):
            for problem in test.problems(known):
                own = (problem.field,) if problem.field is not None and problem.field in test.model_fields_set else ()
                yield make(problem.code, problem.message, locate(("tests", index, test.op, *own)), help=problem.lines)


def known_of(spec: PipelineSpec, plans: Mapping[str, Plan]) -> Known:
    """What tests can know of a spec without its data."""
    return Known(spec.split_names(), spec.source, {split: plan.out for split, plan in plans.items()})


def check_functions(spec: PipelineSpec, locate: Locate, record: ElementType) -> list[Diagnostic]:
    """Checks steps that call a Python function."""
    found = []
    for path, step in ((step_path(i, step), step) for i, step in enumerate(spec.transforms) if isinstance(step, CustomTransform)):
        acted = (step.feature,) if step.feature is not None else acted_on(step, record)
        pairs = ((anchor(record, name), name) for name, _ in record.items() if step.moves_pixels)
        left = next(((image, name) for image, name in pairs if image in acted and image != name), None)
        if left is not None:
            message = f"`{step.op}` may move the pixels of `{left[0]}`, but not those of `{left[1]}`, which is aligned with it"
            advice = ("set `moves_pixels: false` if every pixel stays in its place", "or use a step of pipegen, which moves both")
            found.append(make("PG203", message, locate(path, key=True), help=advice))
        message = f"`{step.op}` calls the Python function `{step.function}`, on one image at a time for any number of threads"
        package = step.module.partition(".")[0]
        help_ = f'to allow it, build the spec with `pipegen.build(…, allow_code=["{package}"])`'
        found.append(make("PG520", message, locate((*path, "function")), help=help_))
    return found


SERVICE = ("runtime", "service")
PREPARE = "write a store that workers can read, and the remaining spec: `pipegen prepare SPEC OUT`"
WITHOUT = "or leave `runtime.service` out"


def check_service(spec: PipelineSpec, plan: Plan | None, locate: Locate) -> Iterator[Diagnostic]:
    """Finds steps and sources that call Python on the training split, whose plan is `plan`: service workers cannot."""
    if spec.runtime.service is None:
        return
    asked = locate(SERVICE, "workers are asked for here", key=True)
    if plan is None:
        if "train" not in spec.split_names():
            message = "workers make batches of split `train`, which does not exist"
            yield make("PG488", message, locate(SERVICE, key=True), help="leave `runtime.service` out, or name a split `train`")
        return
    for path, step in python_steps((*plan.part_stages(), *plan.stages())).items():
        message = f"`{step.op}` calls the Python function `{getattr(step, 'function', step.op)}`, which workers do not have"
        instead = "use steps of pipegen in its place (listed by `pipegen ops`)"
        yield make("PG485", message, locate(path, key=True), asked, help=(instead, WITHOUT))
    parts = spec.source.mixed()
    for part, source in ({name: one.source for name, one in parts.items()} if parts else {"": spec.source}).items():
        read = source.read_by_python()
        if read:
            message = f"{read} are read by Python, which workers do not have"
            place = locate(part_path(part) if part else ("source", spec.source.op), key=True)
            yield make("PG486", message, place, asked, help=(PREPARE, WITHOUT))


_OF_SPLITS_ALONE = frozenset({"PG105", "PG301"})  # errors in splits that do not depend on the source
Record = ElementType | Records  # the type of a record; of a mix, of a record of each part
_OF_FEATURES = frozenset({"PG203", "PG217"})  # errors that depend on the features of the source


@dataclass(frozen=True)
class Checked:
    """The unoptimised plan of each split that has no errors, and all findings."""

    plans: dict[str, Plan]
    diagnostics: Diagnostics


def check(spec: PipelineSpec, locate: Locate, *, classes: int | None = None, record: Record | None = None) -> Checked:
    """Builds the plan of every split and collects the findings, each once.

    `classes` is the number of classes, once the data has been listed; `record` the type of a record, if the data shows more of it.
    """
    diagnostics = Diagnostics()
    diagnostics.extend(check_splits(spec, locate))
    diagnostics.extend(check_fitting(spec, locate))
    possible = possible_types(spec, classes, record)
    alone = possible[0] if isinstance(possible[0], ElementType) else None
    diagnostics.extend([*check_buckets(spec, locate, alone), *check_padding(spec, locate, alone)])
    records = [possible[0]] if isinstance(possible[0], ElementType) else possible[0].values()
    views = at_places((None, check_views(spec, type_, locate)) for type_ in records)  # those that another part of a mix has, too, once
    diagnostics.extend(views)
    built, places = first_view(spec, locate, possible[0]) if views else (spec, locate)
    plans, findings = _build(built, places, possible[0])
    plans, findings = _whatever_comes(plans, findings, built, places, possible[1:])
    diagnostics.extend(findings)
    diagnostics.extend(_shares(spec, locate))
    diagnostics.extend(check_service(spec, plans.get("train"), locate))
    if not diagnostics.has_errors:
        diagnostics.extend(_same_type(plans, locate))
    of_views = spec.tests and spec.views != 1  # tests of the data look at the first view of an example
    tested = _build(*first_view(spec, locate, possible[0]), possible[0])[0] if of_views else plans
    diagnostics.extend(check_data_tests(spec, tested, locate))
    diagnostics.extend(at_places([(None, _alone(spec, locate, possible[0]))]))
    return Checked(plans, diagnostics)


def _alone(spec: PipelineSpec, locate: Locate, record: Record) -> Iterator[Diagnostic]:
    """Checks the steps without a plan; those of a mix for each part, with the common steps."""
    if not isinstance(record, ElementType):
        for name, type_ in record.items():
            yield from _alone(joined(spec, name), relocated_part(locate, spec, name), type_)
        return
    for branch in branches(spec):
        yield from lint_recipe(of_bucket(of_branch(spec, branch)), relocated(locate, spec, branch), record)
    yield from check_sampling(spec, locate, record)
    yield from check_fetching(spec, locate)
    yield from check_functions(spec, locate, record)


def check_draft(draft: Draft, locate: Locate) -> list[Diagnostic]:
    """Checks the valid part of an invalid spec; leaves out findings that may come from the invalid part."""
    broken, diagnostics = draft.broken, Diagnostics()
    if "splits" not in broken:
        found = check_splits(draft.spec, locate)
        diagnostics.extend(d for d in found if "source" not in broken or d.code in _OF_SPLITS_ALONE)
    elsewhere = "splits" in broken and any(isinstance(step.when, list) for step in draft.spec.transforms)
    whole = not broken & {"transforms", "views", "output"} and not elsewhere
    given = Given(whole, draft.guessed)
    findings = _common(_of_every_source(spec, locate, given) for spec in (draft.spec, *draft.others))
    unsaid = (_OF_FEATURES if draft.guessed else frozenset()) | ({"PG263"} if "batch" in broken else frozenset())
    for finding in findings:
        of_default = "output" in broken and finding.labels and finding.labels[0].path.startswith("output")
        if finding.code not in unsaid and not of_default:
            diagnostics.extend([finding])
    if not broken & {"batch", "runtime"}:
        diagnostics.extend(_shares(draft.spec, locate))
    if draft.spec.tests and not broken & {"source", "splits", "transforms", "views", "output"}:
        record = possible_types(draft.spec)[0]
        diagnostics.extend(check_data_tests(draft.spec, _build(*first_view(draft.spec, locate, record), record)[0], locate))
    return [d for d in diagnostics if d.severity is Severity.ERROR]


def _of_every_source(spec: PipelineSpec, locate: Locate, given: Given) -> list[Diagnostic]:
    first, *others = possible_types(spec)
    elsewhere = (_build(spec, locate, type_, Given(given.whole))[1] for type_ in others)
    return _common(chain([_build(spec, locate, first, given)[1]], elsewhere))


def _build(spec: PipelineSpec, locate: Locate, source: Record, given: Given = ALL) -> tuple[dict[str, Plan], list[Diagnostic]]:
    """Builds the plans of the splits that have no errors; merges the findings."""
    plans: dict[str, Plan] = {}
    per_split: dict[str, list[Diagnostic]] = {}
    ordinary: set[Diagnostic] = set()
    for split in spec.split_names():
        try:
            made = build_split(spec, split, locate, source, given)
        except OpError as error:  # against its contract, an op raised outside of `infer`
            made = Built(None, [make(error.code, error.message, locate(("transforms",)))], set())
        per_split[split] = made.findings
        ordinary |= made.ordinary
        if made.plan is not None:
            plans[split] = made.plan
    return plans, _merge(per_split, ordinary)


def build_split(spec: PipelineSpec, split: str, locate: Locate, source: Record, given: Given = ALL) -> Built:
    """Builds the plan of one split."""
    if not isinstance(source, ElementType):
        from pipegen.plan.mixed_plan import build_mixed  # here, as most specs have one source

        return build_mixed(spec, split, locate, source, given)
    return build_plan(spec, split, locate, source, given=given)


def possible_types(spec: PipelineSpec, classes: int | None = None, record: Record | None = None) -> tuple[Record, ...]:
    """The possible types of a record, the likeliest first; for the arguments see `check`."""
    if spec.source.mixed():
        known = record if isinstance(record, Mapping) else {}
        each = {name: possible_types(joined(spec, name), classes, known.get(name)) for name in spec.source.mixed()}
        most = max(map(len, each.values()))
        found = [{name: types[min(i, len(types) - 1)] for name, types in each.items()} for i in range(most)]
        return tuple(_united(types, spec.source.class_feature(), classes) for types in found)  # type: ignore[arg-type]
    first, *others = spec.source.possible() if not isinstance(record, ElementType) else (record,)
    if classes is not None:
        unknown = [name for name in having(first, ExampleClass) if first[name].classes is None]
        first = first.replace(**{name: first[name].with_(classes=classes) for name in unknown})
    return (first, *others)


def _united(types: Mapping[str, ElementType], main: str | None, classes: int | None) -> dict[str, ElementType]:
    """Gives the labels of all parts of a mix one number of classes, as far as that is known, and ragged features one `most`.

    That is the largest of any part; 0 if only data that is not listed yet has it.
    """
    known: dict[str, set[int | None]] = {}
    most: dict[str, set[int]] = {}
    for name, t in (item for type_ in types.values() for item in type_.items()):
        if kind_of(t).has(ExampleClass, ItemClass):
            known.setdefault(name, set()).add(t.classes)
        if t.most is not None:
            most.setdefault(name, set()).add(t.most)
    number = {name: next(iter(own)) if len(own) == 1 else None for name, own in known.items()}
    if main is not None and classes is not None:
        number[main] = classes
    room = {name: 0 if 0 in own else max(own) for name, own in most.items()}
    made = {}
    for part, type_ in types.items():
        counted = {name: t.with_(classes=number[name]) for name, t in type_.items() if name in number and t.dtype == "int64"}
        made[part] = type_.replace(**counted)
        made[part] = made[part].replace(**{name: t.with_(most=room[name]) for name, t in made[part].items() if t.most is not None})
    return made


def _whatever_comes(
    plans: dict[str, Plan], findings: list[Diagnostic], spec: PipelineSpec, locate: Locate, others: tuple[Record, ...]
) -> tuple[dict[str, Plan], list[Diagnostic]]:
    """Keeps the findings that hold for all `others`, the possible types of a record; the rest depends on the data.

    If only some types fit the spec, the plans are those of one that fits. If none fits, the findings about the first type stay.
    """
    splits, standing = len(spec.split_names()), findings
    for type_ in others:
        if not standing and len(plans) == splits:
            break
        more, elsewhere = _build(spec, locate, type_)
        standing = _common([standing, elsewhere])
        plans = more if len(more) > len(plans) else plans
    suits = len(plans) == splits or any(f.severity is Severity.ERROR for f in standing)
    return plans, standing if suits else findings


def _common(each: Iterable[list[Diagnostic]]) -> list[Diagnostic]:
    """The findings of the first list that are in all others, too; reads no more lists than needed."""
    rest = iter(each)
    findings = next(rest)
    while findings and (elsewhere := next(rest, None)) is not None:
        places = {(f.code, f.labels[:1]) for f in elsewhere}
        findings = [f for f in findings if (f.code, f.labels[:1]) in places]
    return findings


def _merge(per_split: dict[str, list[Diagnostic]], ordinary: set[Diagnostic]) -> list[Diagnostic]:
    """Merges equal findings of several splits; one that only some splits have names these, unless it is `ordinary`.

    A random step and its evaluation form can fail in the same way at the same place: the first finding stands for both.
    """
    merged: list[Diagnostic] = []
    for finding, splits in at_places(per_split.items(), ("PG201",)).items():
        partly = len(splits) < len(per_split) and finding not in ordinary and not any(f"`{s}`" in finding.message for s in splits)
        named = " and ".join(f"`{s}`" for s in splits)
        merged.append(replace(finding, message=f"{finding.message} (in split {named})") if partly else finding)
    return _join_unbatchable(merged)


def _shares(spec: PipelineSpec, locate: Locate) -> list[Diagnostic]:
    """Finds a global batch that cannot be split among the hosts of the spec."""
    shard = spec.runtime.shard
    if not isinstance(shard, ShardIndex):
        return []
    problem = share_problem(spec, shard.count)
    if problem is None:
        return []
    labels = (locate(("batch", "size")), locate(("runtime", "shard", "count"), "hosts"))
    return [make("PG412", problem[0], *labels, help=problem[1])]


def _join_unbatchable(findings: list[Diagnostic]) -> list[Diagnostic]:
    """Merges findings about a missing `resize` of several splits."""
    unbatchable = [f for f in findings if f.code == "PG201"]
    if len(unbatchable) < 2:
        return findings
    first = unbatchable[0]
    splits = dict.fromkeys(f.message.split("`")[1] for f in unbatchable)  # an image and its mask may lack it in the same split
    named = f"split{'s' * (len(splits) > 1)} {' and '.join(f'`{split}`' for split in splits)}"
    tail = first.message.split("have no fixed size", 1)[1]
    joined = replace(first, message=f"images of {named} have no fixed size{tail}")
    return [joined if f is first else f for f in findings if f.code != "PG201" or f is first]


def _same_type(plans: dict[str, Plan], locate: Locate) -> list[Diagnostic]:
    """Finds splits that give the model different element types; of views, those that both splits have are compared."""
    first, *others = plans or ("",)
    pads = {stage.feature for plan in plans.values() for stage in plan.stages() if isinstance(stage, PadLength)}
    for split in others:
        given, output = plans[first].emit.output, plans[split].emit.output
        for name, own in (*_alike(given.x, output.x), *_alike(given.y, output.y)):
            t, other = plans[first].out[name], plans[split].out[own]
            if (kind_of(t).values is not None or not pads.isdisjoint({name, own})) and (t.dtype != other.dtype or not _one_model(t, other)):
                what = "" if own == name else f"`{own}` is "
                message = f"`{name}` is {t} in split `{first}` and {what}{other} in split `{split}`"
                help_ = "make the steps of every split end at the same size, channels and dtype"
                if kind_of(t).pixels is None:
                    help_ = f"pad both: `batch: {{pad: {{{own}: {{to: N}}}}}}` also pads the examples of a split that have a fixed length"
                return [make("PG210", f"{message}; a model takes one of them", locate(("transforms",), key=True), help=help_)]
    return []


def _one_model(a: FeatureType, b: FeatureType) -> bool:
    """Compares two types as inputs of one model; a side that buckets leave open fits any size."""
    if not a.shapes and not b.shapes:
        return a.shape == b.shape
    return len(a.shape) == len(b.shape) and all(own == other or None in (own, other) for own, other in zip(a.shape, b.shape, strict=True))


def _alike(a: Features | None, b: Features | None) -> list[tuple[str, str]]:
    """Pairs the features that two splits give for the same input or target of a model."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [(name, b[key]) for key, name in a.items() if key in b]
    if isinstance(a, list) and isinstance(b, list) and len(a) != len(b):
        return []
    return list(zip(names(a), names(b), strict=False))


def check_stages(
    spec: PipelineSpec | None, plans: Mapping[str, Plan], stages: Sequence[Mapping[str, Plan]], locate: Locate
) -> Iterator[Diagnostic]:
    """Checks the stages of training, with the unoptimised plans of each, against those of the whole spec, if it could be loaded."""
    if spec is None or not spec.stages:
        return
    if "train" not in spec.split_names():
        named = ", ".join(f"`{name}`" for name in spec.split_names())
        help_ = f"the splits are {named}: name the one that the model is trained on `train`, or leave `stages` out"
        yield make("PG561", "`stages` need a split `train`, which does not exist", locate(("stages",), key=True), help=help_)
        return
    split = next((name for name in plans if name != "train"), "train")
    if stages and split in stages[-1] and split in plans:
        whole, last = plans[split].out, stages[-1][split].out
        for name, t in last.items():
            if name in whole and (t.shape, t.dtype) != (whole[name].shape, whole[name].dtype):
                said, other = (f"{times(own.shape)} {own.dtype}" for own in (t, whole[name]))
                message = f"the last stage trains with `{name}` of {said}, but the spec without stages gives {other}"
                help_ = "give the params the values of the last stage: prediction and evaluation outside of the stages use the params"
                yield make("PG562", message, locate(("stages", len(stages) - 1)), help=help_)
                return
