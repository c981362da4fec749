"""Divides a plan where batches begin: what comes before, and the evaluation stages on batches that a layer of the model does instead."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pipegen.data.ownership import argument
from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.memory import ram_budget
from pipegen.mounts import content_of
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.arguments.learned import Fitted
from pipegen.ops.families.decoder import HEAD, Decodes, needs_whole
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import step_kwargs
from pipegen.passes.base import Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.fitting_plans import evaluation_plan
from pipegen.plan.nodes import Cache
from pipegen.plan.outputs import names
from pipegen.spec.load import load
from pipegen.spec.variants import part_path
from pipegen.types import ElementType, FeatureType, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.families.decoder import DecodeTransform
    from pipegen.ops.transform import Transform
    from pipegen.phases.specs import Spec
    from pipegen.plan.nodes import Node, Plan
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec
    from pipegen.spec.source_map import KeyPath


_ARITHMETIC = (s.Pointwise, s.ComposeColour, s.ApplyColour, s.ChannelsFirst)
"""Stages that give the same for bytes and for floats of the same values."""


def layer_config(evaluation: Plan, splits: Iterable[Plan]) -> dict[str, Any]:
    """Describes the stages on batches of evaluation as plain values.

    Args:
        evaluation: The plainest plan of the evaluation steps.
        splits: The plainest plans of the splits that are to leave these stages out. Where one of them has made floats of bytes before, as
            steps on colours do, floats enter the layer: what is arithmetic on single values and channels gives the same for both.

    Returns:
        `entry`: the type of each feature that enters; `steps`: the steps on them, each a map with one key, as a spec has them; `numbers`:
        for each step what it has learned, or `None`; `output`: how the model receives them.
    """
    plans = tuple(plan for plan in splits if not _has_views(plan))
    entry, steps, numbers = {}, [], []
    for feature, tail in _tails(evaluation).items():
        enters = _reached(tail, feature, evaluation)
        if all(isinstance(item.stage, _ARITHMETIC) for item in tail):
            ends = (
                _ending([i for i in unpack(p) if isinstance(i, Placed) and i.stage.feature == feature], len(_core(tail))) for p in plans
            )
            floats = any(_reached(end, feature, plan).dtype == "float32" for end, plan in zip(ends, plans, strict=True))
            enters = enters.with_(dtype="float32") if floats else enters
        entry[feature] = asdict(enters)
        used: dict[tuple[Any, str], Transform] = {}
        for placed in tail:
            used |= {(ref.path, ref.step.op): ref.step.written() for ref in placed.stage.uses()}
        for step in used.values():
            given = {name: value for name, value in step_kwargs(step).items() if name not in ("when", "id", "feature")}
            steps.append({step.op: given | {"feature": feature}})
            numbers.append(_numbers(step, feature))
    output = evaluation.emit.output.model_dump(mode="json", include={"x", "dtype", "channels"})
    plain: dict[str, Any] = json.loads(json.dumps({"entry": entry, "steps": steps, "numbers": numbers, "output": output}))
    return plain


def _has_views(plan: Plan) -> bool:
    """Returns whether a split has several views of an image, none of which is the one that a layer takes."""
    return any(isinstance(stage, s.Fork) for stage in plan.stages())


def plan_of_layer(config: Mapping[str, Any]) -> tuple[PipelineSpec, Plan]:
    """A spec and its plainest plan for what `layer_config` describes: the records are what enters the layer.

    Raises:
        SpecError: Where this version of pipegen knows a step no more.
    """
    source = {"image_folder": {"path": ".", "labels": "none"}}  # stands in: nothing is read
    loaded = load({"pipegen": 1, "source": source, "transforms": list(config["steps"]), "output": {**config["output"], "y": None}})
    if loaded.spec is None:
        raise SpecError(loaded.diagnostics.sorted())
    steps = list(loaded.spec.transforms)
    for i, learned in enumerate(config["numbers"]):
        step = steps[i]
        if learned is not None and isinstance(step, FittedTransform):
            found = step.kind_of_numbers().from_bytes(base64.b64decode(learned["content"]))[1]
            steps[i] = step.with_numbers(Fitted({learned["feature"]: found}, learned["examples"], given=True))
    entry = ElementType(tuple((name, _type(t)) for name, t in config["entry"].items()))
    spec = loaded.spec.model_copy(update={"transforms": tuple(steps)})
    return spec, evaluation_plan(spec, loaded.locate.label, entry, entry)


def before_layer(plain: Plan, evaluation: Plan, config: Mapping[str, Any], locate: Locate) -> Plan:
    """The plainest plan of a split without the stages that the layer does, which must be the last ones there, too.

    Args:
        plain: The plainest plan of the split.
        evaluation: That of the evaluation steps.
        config: From `layer_config`: what is to enter the layer.
        locate: Finds the places for findings.

    Raises:
        SpecError: `PG544` where they are not: random steps stand among them, or the layer would get another type.
    """
    items = unpack(plain)
    if _has_views(plain):
        message = f"the layer works on one image of an example, and split `{plain.split}` has `views`"
        help_ = 'train on whole batches, without `stages="element"`; the layer is for the model that takes one image'
        raise SpecError([make("PG544", message, locate(("views",), key=True), help=help_)])
    gone: set[int] = set()
    kept: dict[str, FeatureType] = {}
    for feature, tail in _tails(evaluation).items():
        own = [item for item in items if isinstance(item, Placed) and item.stage.feature == feature]
        last = _ending(own, len(_core(tail)))
        reached, wanted = _reached(last, feature, plain), _type(config["entry"][feature])
        pending = bool(last) and len(own) > len(last) and isinstance(own[-len(last) - 1].stage, s.Composes)
        fits = reached.shape == wanted.shape and (reached.dtype == wanted.dtype or wanted.dtype == "float32")
        if pending or not fits or [_said(i) for i in _core(last)] != [_said(i) for i in _core(tail)]:
            raise SpecError([_divided(plain, own, tail, reached, wanted, locate)])
        gone |= {id(item) for item in last}
        kept |= {feature: wanted} if last or reached.dtype != wanted.dtype else {}

    def mended(type_: ElementType) -> ElementType:
        return type_.replace(**{name: t for name, t in kept.items() if name in type_ and name in passed})

    done: list[Node | Placed] = []
    passed: set[str] = set()
    for item in items:
        if not isinstance(item, Placed):
            done.append(replace(item, out=mended(item.out)))
        elif id(item) not in gone:
            done.append(Placed(item.stage, mended(item.before), mended(item.after)))
        elif item.stage.feature not in passed:
            before = mended(item.before)
            passed.add(item.stage.feature)
            done += _cast(item.stage.feature, before, mended(before))
    return pack(plain, done)


def steps_said(config: Mapping[str, Any]) -> str:
    """Names the steps of a layer, in order."""
    ops = list(dict.fromkeys(next(iter(step)) for step in config["steps"]))
    return ", ".join(f"`{op}`" for op in ops) or f"the cast to {config['output']['dtype']}"


def _tails(evaluation: Plan) -> dict[str, list[Placed]]:
    """The stages on batches of each feature that the model takes: those behind the last one that works on single examples, from where
    every example has the same shape and no segment is open."""
    found = {}
    for feature in names(evaluation.emit.output.x):
        own = [item for item in unpack(evaluation) if isinstance(item, Placed) and item.stage.feature == feature]
        alone = list(takewhile(lambda item: not item.stage.one_example, reversed(own)))[::-1]
        while alone and not alone[0].before[feature].is_static:
            alone = alone[1:]
            while alone and len(alone) < len(own) and isinstance(own[-len(alone) - 1].stage, s.Composes):
                alone = alone[1:]
        found[feature] = alone
    return found


def _core(tail: list[Placed]) -> list[Placed]:
    """The stages that steps ask for, without the cast to what the model receives."""
    return [item for item in tail if not _is_cast(item)]


def _is_cast(item: Placed) -> bool:
    return isinstance(item.stage, s.Pointwise) and not item.stage.refs


def _ending(own: list[Placed], count: int) -> list[Placed]:
    """The last stages of a feature, of which `count` are no cast to what the model receives."""
    casts = list(takewhile(_is_cast, reversed(own)))
    return own[max(0, len(own) - len(casts) - count) :]


def _reached(tail: list[Placed], feature: str, plan: Plan) -> FeatureType:
    """The type that enters a feature's last stages; without any, that of what the model receives."""
    return tail[0].before[feature] if tail else plan.out[feature]


def _cast(feature: str, before: ElementType, after: ElementType) -> list[Placed]:
    """Nothing, or what makes floats of bytes."""
    if before[feature].dtype == after[feature].dtype:
        return []
    return [Placed(s.Pointwise(feature, Arithmetic((1.0,), (0.0,), after[feature].dtype), ()), before, after)]


def _said(placed: Placed) -> tuple[str, str]:
    return type(placed.stage).__name__, s.said(placed.stage)


def _divided(plain: Plan, own: list[Placed], tail: list[Placed], reached: FeatureType, wanted: FeatureType, locate: Locate) -> Any:
    """The finding that a split does something else where the layer would begin."""
    known = {_said(item) for item in tail}
    other = next((i for i in reversed(own) if i.stage.uses() and _said(i) not in known), None)
    help_ = "let the random steps of the training split come before those that every split has, or train without the layer"
    if other is None or reached.dtype != wanted.dtype:
        message = f"split `{plain.split}` reaches the layer's steps with {reached}, and the layer takes {wanted}"
        return make("PG544", message, locate(("transforms",), key=True), help=help_)
    ref = other.stage.uses()[0]
    message = f"`{ref.step.op}` of split `{plain.split}` stands among the steps that the layer does, so that these cannot be left out"
    return make("PG544", message, locate(ref.path, key=True), help=help_)


def _numbers(step: Transform, feature: str) -> dict[str, Any] | None:
    if not isinstance(step, FittedTransform) or step.fitted is None:
        return None
    content = base64.b64encode(step.fitted.numbers[feature].to_bytes({})).decode()
    return {"feature": feature, "examples": step.fitted.examples, "content": content}


def _type(values: Mapping[str, Any]) -> FeatureType:
    interval = values.get("interval")
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, (list, tuple))}
    return FeatureType(**{**values, **lists, "interval": None if interval is None else Interval(**interval)})


_LOOKED_AT = 2000
"""Files of a feature and a split whose formats are looked at, evenly spread; the graph itself refuses the others when it meets them."""
_BY_HAND = "or let Python stay: `pipegen eject --code` writes a page of code that calls it"
_IN_GRAPH = "records in TFRecord files or in tar files (`webdataset`) are read by the graph itself"


def ejection_findings(spec: Spec, manifest: Manifest, plans: Mapping[str, Plan]) -> list[Diagnostic]:
    """Returns what stands in the way of saving the datasets of some plans, and what stays behind, each once."""
    found: dict[tuple[str, object], Diagnostic] = {}
    for plan in plans.values():
        parts = manifest.of(plan.split)
        of_parts: list[Diagnostic] = []
        for (name, part), read in zip(parts.items(), plan.part_reads(len(parts)), strict=True):
            of_parts += [*_rows(spec, name, part, plan.split, read), *_files(spec, name, part, plan)]
        for finding in (*_steps(spec, plan), *of_parts, *_cache(spec, plan)):
            found.setdefault((finding.code, finding.primary), finding)
    replaced = replaced_records(spec)
    return [*([replaced] if replaced is not None and "train" in plans else []), *found.values()]


def replaced_records(spec: Spec) -> Diagnostic | None:
    """Returns what is wrong with a spec that lets other records take the place of damaged ones, which Python counts."""
    if spec.model.errors.skip is None:
        return None
    return make(
        "PG553",
        "`errors: {decode: {skip: …}}` counts damaged records in Python, which stays behind",
        spec.loaded.locate.label(("errors", "decode"), key=True),
        help=(
            "leave the damaged files out by name: `pipegen validate SPEC --data=all --write-exclude damaged.txt`, then "
            "`errors: {exclude: damaged.txt}`",
        ),
    )


def given_data(spec: Spec) -> Diagnostic | None:
    """Returns what is wrong with data, or batches, that a page of code cannot have which runs by itself."""
    if spec.model.source.mixed():
        place = spec.loaded.locate.label(("source", spec.model.source.op), key=True)
        message = "a page of code reads one source, and a `mix` has several, in exact shares"
        return make("PG555", message, place, help="`pipegen eject --graph` saves the datasets as they are")
    if spec.model.batch.buckets is not None:
        place = spec.loaded.locate.label(("batch", "buckets"), key=True)
        message = "a page of code stacks images of one size, and batches of buckets have several"
        return make("PG555", message, place, help="`pipegen eject --graph` saves the datasets as they are")
    if not spec.model.source.needs_data():
        return None
    place = spec.loaded.locate.label(("source", spec.model.source.op), key=True)
    help_ = "save arrays in a `.npz` file, or a table as CSV, and name its `path`; a graph takes arrays along"
    return make("PG555", "the data is handed over in Python, and a page of code cannot name it", place, help=help_)


def _by_hand(spec: Spec) -> tuple[str, ...]:
    """Returns the other way, which a mix does not have."""
    return () if spec.model.source.mixed() else (_BY_HAND,)


def _steps(spec: Spec, plan: Plan) -> Iterator[Diagnostic]:
    """Steps that call a Python function."""
    for ref in (ref for stage in plan.stages() for ref in stage.uses() if ref.step.calls_python == "always"):
        called = getattr(ref.step, "function", ref.step.op)
        yield make(
            "PG550",
            f"`{ref.step.op}` calls the Python function `{called}`, which no graph can take along",
            spec.loaded.locate.label(ref.path, key=True),
            help=("say it with steps of the language (`pipegen ops` lists them), or leave it out", *_by_hand(spec)),
        )


def source_of(spec: Spec, part: str) -> KeyPath:
    """The key path of the source, or of the part of a mix."""
    return part_path(part) if part else argument(spec.model, None)


def read_by_reader(manifest: Manifest, split: str, read: ElementType) -> list[str]:
    """Returns which features of what is read of a record the listing does not have itself, in columns."""
    columns, labels = manifest.columns(split), manifest.listing.labels
    return [name for name, t in read.items() if name not in columns and (labels is None or not kind_of(t).labels)]


def _rows(spec: Spec, part: str, manifest: Manifest, split: str, read: ElementType) -> Iterator[Diagnostic]:
    """Records that Python reads, such as rows of an array that is too large to be held; `read` is the type of what is read of one."""
    python = manifest.listing.reader(split).python(read_by_reader(manifest, split, read), ram_budget(spec.model.runtime))
    if python:
        arrays = ("an array is held by the graph where `runtime: {ram_budget: …}` has twice its size",) * spec.model.source.has_rows()
        yield make(
            "PG552",
            f"split `{split}` reads {python} by Python, which stays behind",
            spec.loaded.locate.label(source_of(spec, part), key=True),
            help=(*(arrays or (_IN_GRAPH,)), *_by_hand(spec)),
        )


def _files(spec: Spec, part: str, manifest: Manifest, plan: Plan) -> Iterator[Diagnostic]:
    """Files that TensorFlow has no decoder for, or would read otherwise."""
    if not manifest.listing.in_files or manifest.listing.shards is not None:
        return
    beside = manifest.beside(plan.split)
    for stage in (stage for stage in plan.stages() if isinstance(stage, Decodes)):
        files = beside.get(stage.feature, manifest.files(plan.split))
        some = range(0, len(files), max(1, len(files) // _LOOKED_AT))
        named = [(files[i], name) for i in some if (name := _format(files[i], stage.decode.step)) is not None]
        if named:
            many = f"at least {len(named)} files" if named[1:] else "a file"
            first = f", the first of them {named[0][0]}" if named[1:] else f": {named[0][0]}"
            yield make(
                "PG551",
                f"`{stage.feature}` of split `{plan.split}` has {many} that only Python reads ({named[0][1]}){first}",
                spec.loaded.locate.label(source_of(spec, part), key=True),
                help=("save them in a format that TensorFlow decodes: gray PNG for masks, else PNG or JPEG", *_by_hand(spec)),
            )


def _format(file: str, decoder: DecodeTransform) -> str | None:
    try:
        head = content_of(file, HEAD)
        return decoder.read_by_python(content_of(file) if needs_whole(head) else head)
    except OSError:
        return None  # reading it will say so


def _cache(spec: Spec, plan: Plan) -> Iterator[Diagnostic]:
    """A cache that the spec asks for, which holds what a run of this process has computed."""
    if spec.model.runtime.cache != "auto" and any(isinstance(node, Cache) for node in plan.nodes):
        yield make(
            "PG554",
            "the cache stays behind: the ejected datasets give the same batches and compute each of them anew",
            spec.loaded.locate.label(("runtime", "cache"), key=True),
            help=("of a split that draws nothing, such as validation, `.cache()` behind the ejected dataset keeps what it gives",),
        )
