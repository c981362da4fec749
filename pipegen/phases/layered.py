"""Divides a plan for a layer of the model that does the evaluation steps on batches; checks plans before they are ejected."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pipegen.data.named_files import argument
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import SpecError
from pipegen.memory import ram_budget
from pipegen.mounts import content_of
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.arguments.learned import Fitted
from pipegen.ops.families.decoder import HEAD, Decodes, needs_whole
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.kinds.base import kind_named
from pipegen.ops.sources.listing.reader import Reader
from pipegen.ops.stage import step_kwargs
from pipegen.passes.plan_pass import Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.bucketed_plans import at_places
from pipegen.plan.evaluation_plans import evaluation_plan
from pipegen.plan.nodes import Cache, Node, Plan
from pipegen.plan.recipe import python_steps
from pipegen.spec.load import load
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, names
from pipegen.spec.source_map import KeyPath
from pipegen.spec.variants import part_path
from pipegen.types import ElementType, FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.phases.specs import Spec


_ARITHMETIC = (s.Pointwise, s.ComposeColour, s.ApplyColour, s.ChannelsFirst)
"""Stages with equal results for bytes and for floats of the same values."""


def layer_config(evaluation: Plan, splits: Iterable[Plan]) -> dict[str, Any]:
    """Describes the evaluation stages on batches as plain values.

    Args:
        evaluation: The plainest plan of the evaluation steps.
        splits: The plainest plans of the splits that will leave these stages out. If one of them has converted bytes to floats before, as
            steps on colours do, floats enter the layer: arithmetic on single values and channels gives the same for both.

    Returns:
        `entry`: the type of each feature that enters; `steps`: the steps on them, each a map with one key, as in a spec; `numbers`: the
        statistics that each step has learned, or `None`; `output`: the features and types that the model receives.
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
        used = {(ref.path, ref.step.op): ref.step.written() for placed in tail for ref in placed.stage.uses()}
        for step in used.values():
            given = {name: value for name, value in step_kwargs(step).items() if name not in ("when", "id", "feature")}
            steps.append({step.op: given | {"feature": feature}})
            learned: dict[str, Any] | None = None
            if isinstance(step, FittedTransform) and step.fitted is not None:
                content = base64.b64encode(step.fitted.numbers[feature].to_bytes({})).decode()
                learned = {"feature": feature, "examples": step.fitted.examples, "content": content}
            numbers.append(learned)
    output = evaluation.emit.output.model_dump(mode="json", include={"x", "dtype", "channels"})
    return json.loads(json.dumps({"entry": entry, "steps": steps, "numbers": numbers, "output": output}))


def _has_views(plan: Plan) -> bool:
    """Looks for several views of an image; a layer takes one."""
    return any(isinstance(stage, s.Fork) for stage in plan.stages())


def plan_of_layer(config: Mapping[str, Any]) -> tuple[PipelineSpec, Plan]:
    """Builds a spec and its plainest plan from a `layer_config`; records have the types that enter the layer. Raises `SpecError` if this
    version of pipegen lacks a step."""
    source = {"image_folder": {"path": ".", "labels": "none"}}  # a placeholder: nothing is read
    loaded = load({"pipegen": 1, "source": source, "transforms": list(config["steps"]), "output": {**config["output"], "y": None}})
    if loaded.spec is None:
        raise SpecError(loaded.diagnostics.sorted())
    steps = list(loaded.spec.transforms)
    for i, learned in enumerate(config["numbers"]):
        step = steps[i]
        if learned is not None and isinstance(step, FittedTransform):
            found = step.kind_of_numbers.from_bytes(base64.b64decode(learned["content"]))[1]
            steps[i] = step.with_numbers(Fitted({learned["feature"]: found}, learned["examples"], given=True))
    entry = ElementType(tuple((name, _type(t)) for name, t in config["entry"].items()))
    spec = loaded.spec.model_copy(update={"transforms": tuple(steps)})
    return spec, evaluation_plan(spec, loaded.locate.label, entry, entry)


def before_layer(plain: Plan, evaluation: Plan, config: Mapping[str, Any], locate: Locate) -> Plan:
    """Removes the stages that the layer does from a split's plainest plan; they must be its last ones.

    `evaluation` is the plainest plan of the evaluation steps, and `config` the result of `layer_config`. Raises `SpecError`: `PG544` if
    random steps are among them, or the layer would get another type."""
    items = unpack(plain)
    if _has_views(plain):
        message = f"the layer works on one image of an example, but split `{plain.split}` has `views`"
        help_ = 'train on whole batches, without `stages="element"`; the layer is for a model that takes one image'
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
            enters = mended(before)[item.stage.feature].dtype
            if before[item.stage.feature].dtype != enters:  # bytes become floats
                cast = s.Pointwise(item.stage.feature, Arithmetic((1.0,), (0.0,), enters), ())
                done.append(Placed(cast, before, mended(before)))
    return pack(plain, done)


def steps_said(config: Mapping[str, Any]) -> str:
    """Lists the steps of a layer, in order."""
    ops = list(dict.fromkeys(next(iter(step)) for step in config["steps"]))
    return ", ".join(f"`{op}`" for op in ops) or f"the cast to {config['output']['dtype']}"


def _tails(evaluation: Plan) -> dict[str, list[Placed]]:
    """The stages on batches of each feature that the model takes: those after the last one on single examples, beginning where all
    examples have one shape and no segment is open."""
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
    """The stages of steps, without the cast to the model's type."""
    return [item for item in tail if not _is_cast(item)]


def _is_cast(item: Placed) -> bool:
    return isinstance(item.stage, s.Pointwise) and not item.stage.refs


def _ending(own: list[Placed], count: int) -> list[Placed]:
    """The last stages of a feature: `count` stages and the casts to the model's type behind them."""
    casts = list(takewhile(_is_cast, reversed(own)))
    return own[max(0, len(own) - len(casts) - count) :]


def _reached(tail: list[Placed], feature: str, plan: Plan) -> FeatureType:
    """The type that enters a feature's last stages; without any, the model's type."""
    return tail[0].before[feature] if tail else plan.out[feature]


def _said(placed: Placed) -> tuple[str, str]:
    return type(placed.stage).__name__, s.said(placed.stage)


def _divided(plain: Plan, own: list[Placed], tail: list[Placed], reached: FeatureType, wanted: FeatureType, locate: Locate) -> Any:
    """Makes the finding that a split's last stages differ from the layer's."""
    known = {_said(item) for item in tail}
    other = next((i for i in reversed(own) if i.stage.uses() and _said(i) not in known), None)
    help_ = "write the random steps of the training split before those that every split has, or train without the layer"
    if other is None or reached.dtype != wanted.dtype:
        message = f"split `{plain.split}` reaches the layer's steps with {reached}, but the layer takes {wanted}"
        return make("PG544", message, locate(("transforms",), key=True), help=help_)
    ref = other.stage.uses()[0]
    message = f"`{ref.step.op}` of split `{plain.split}` is among the layer's steps, so these cannot be left to the layer"
    return make("PG544", message, locate(ref.path, key=True), help=help_)


def _type(values: Mapping[str, Any]) -> FeatureType:
    """Makes the type that `asdict` wrote down."""
    interval, details, own = values.get("interval"), values.get("details"), kind_named(values["kind"]).details
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, (list, tuple))}
    made = {"interval": None if interval is None else Interval(**interval), "details": own(**details) if own and details else details}
    return FeatureType(**{**values, **lists, **made})


_LOOKED_AT = 2000  # files of a feature and a split whose formats are checked, evenly spread; the graph rejects others when it reads them
_BY_HAND = "or keep Python: `pipegen eject --code` writes code that calls it"


def ejection_findings(spec: Spec, manifest: Manifest, plans: Mapping[str, Plan]) -> list[Diagnostic]:
    """Reports what prevents saving the datasets of some plans, and what the saved ones lack, each once."""
    found: list[list[Diagnostic]] = []
    for plan in plans.values():
        of_plan: list[Diagnostic] = []
        found.append(of_plan)
        for path, step in python_steps(plan.stages()).items():
            called = getattr(step, "function", step.op)
            message = f"`{step.op}` calls the Python function `{called}`, which a saved graph cannot contain"
            help_ = ("use other steps in its place (`pipegen ops` lists them), or leave it out", *_by_hand(spec))
            of_plan.append(make("PG550", message, spec.loaded.locate.label(path, key=True), help=help_))
        for name, part, reader, features in readers_of(manifest, plan):
            python = reader.python(features, ram_budget(spec.model.runtime))  # such as rows of an array that is too large for memory
            if python:
                in_graph = "records in TFRecord files or in tar files (`webdataset`) are read by the graph itself"
                if spec.model.source.has_rows():
                    in_graph = "a graph contains an array if `runtime: {ram_budget: …}` has twice its size"
                message = f"split `{plan.split}` reads {python} by Python, which a saved graph cannot contain"
                at = spec.loaded.locate.label(source_of(spec, name), key=True)
                of_plan.append(make("PG552", message, at, help=(in_graph, *_by_hand(spec))))
            of_plan += _files(spec, name, part, plan)
        if spec.model.runtime.cache != "auto" and any(isinstance(node, Cache) for node in plan.nodes):
            message = "the ejected datasets have no cache: they give the same batches, and compute each of them in every epoch"
            instead = "for a split without random steps, such as validation, append `.cache()` to the ejected dataset"
            of_plan.append(make("PG554", message, spec.loaded.locate.label(("runtime", "cache"), key=True), help=instead))
    replaced = replaced_records(spec)
    return [*([replaced] if replaced is not None and "train" in plans else []), *at_places(enumerate(found))]


def replaced_records(spec: Spec) -> Diagnostic | None:
    """Reports that a spec replaces damaged records, which Python counts."""
    if spec.model.errors.skip is None:
        return None
    message = "`errors: {decode: {skip: …}}` counts damaged records in Python, which a saved graph cannot contain"
    exclude = "`pipegen validate SPEC --data=all --write-exclude damaged.txt`, then `errors: {exclude: damaged.txt}`"
    at = spec.loaded.locate.label(("errors", "decode"), key=True)
    return make("PG553", message, at, help=f"leave the damaged files out by name: {exclude}")


def given_data(spec: Spec) -> Diagnostic | None:
    """Reports data or batches that ejected code cannot have."""
    source, as_graph = ("source", spec.model.source.op), "`pipegen eject --graph` saves the datasets as they are"
    if spec.model.source.mixed():
        message, help_ = "ejected code reads one source, but a `mix` has several, in exact shares", as_graph
    elif spec.model.batch.buckets is not None:
        source = ("batch", "buckets")
        message, help_ = "ejected code stacks examples of one size, but batches of buckets have several", as_graph
    elif spec.model.source.needs_data():
        message = "the data is passed in Python, so ejected code cannot name it"
        help_ = "save arrays in a `.npz` file, or a table as CSV, and name its `path`; a graph contains the arrays"
    else:
        return None
    return make("PG555", message, spec.loaded.locate.label(source, key=True), help=help_)


def _by_hand(spec: Spec) -> tuple[str, ...]:
    """The advice to eject code, which cannot have a mix."""
    return () if spec.model.source.mixed() else (_BY_HAND,)


def source_of(spec: Spec, part: str) -> KeyPath:
    """The key path of the source, or of the part of a mix."""
    return part_path(part) if part else argument(spec.model, None)


def readers_of(manifest: Manifest, plan: Plan) -> Iterator[tuple[str, Manifest, Reader, list[str]]]:
    """Yields each part of a mix, or the only source, whose name is "": with its records, their reader, and the features that are read with
    each record, since the listing does not have them."""
    parts = manifest.of(plan.split)
    for (name, part), read in zip(parts.items(), plan.part_reads(len(parts)), strict=True):
        yield name, part, part.listing.reader(plan.split), [feature for feature in read if feature not in part.listing.columns]


def _files(spec: Spec, part: str, manifest: Manifest, plan: Plan) -> Iterator[Diagnostic]:
    """Reports files that TensorFlow cannot decode, or would decode differently."""
    if not manifest.own(plan.split).listing.in_files:
        return
    for stage in (stage for stage in plan.stages() if isinstance(stage, Decodes)):
        files = manifest.files(plan.split, stage.feature)
        named = []
        for i in range(0, len(files), max(1, len(files) // _LOOKED_AT)):
            with suppress(OSError):  # reported when it is read
                head = content_of(files[i], HEAD)
                name = stage.decode.step.read_by_python(content_of(files[i]) if needs_whole(head) else head)
                named += [(files[i], name)] if name is not None else []
        if named:
            many = f"at least {len(named)} files" if named[1:] else "a file"
            first = f", the first of them {named[0][0]}" if named[1:] else f": {named[0][0]}"
            message = f"`{stage.feature}` of split `{plan.split}` has {many} that only Python reads ({named[0][1]}){first}"
            help_ = (f"save them in a format that TensorFlow decodes: {stage.decode.step.in_graph}", *_by_hand(spec))
            yield make("PG551", message, spec.loaded.locate.label(source_of(spec, part), key=True), help=help_)
