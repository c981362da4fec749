"""Every combination of source, cache, order, combining, guard, share and remainder in every form: decided, verified, and as it has to be.

No data, no TensorFlow.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from planning import load_spec

from pipegen.errors import InternalError
from pipegen.passes import PASSES, PassContext, run_passes
from pipegen.passes.shard_before_read import shard_before_read
from pipegen.passes.shuffle_before_read import shuffle_before_read
from pipegen.physical import nodes as p
from pipegen.physical.decide import chunk_size, decide, extent_of, widened
from pipegen.physical.device import device_kernels
from pipegen.physical.facts import needs
from pipegen.physical.physical_text import physical_json, render_physical
from pipegen.plan.nodes import Batch, Cache, Element, Kernel, Read, Send, Shard, Shuffle
from pipegen.spec.models import Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec

FILES = {"image_folder": {"path": "photos/"}}
IMAGE = {"kind": "image", "size": 32, "channels": 3, "bits": 8}
ARRAYS = {"arrays": {"features": {"image": IMAGE, "label": {"kind": "label", "classes": 3}}}}
STEPS = [{"resize": {"size": 48}}, "random_flip", {"rescale": {"to": [0, 1]}}]
LATE = [{"resize": {"size": 400}}, {"random_equalization": {"probability": 0.2}}, {"random_crop": {"size": 48}}]
"""Random steps on single examples, behind which a batch cannot be gathered from a cache as one."""
CACHES: tuple[Any, ...] = ("none", "memory", {"disk": "/nowhere"})
SHUFFLES: tuple[Any, ...] = ("global", {"window": "64MB"}, "none")
SHARES = ((0, 1), (1, 2), (2, 3))
HANDED = (p.TRAINING, p.FIXED, p.REQUESTED, p.EXPORTED)
FORMS = [form for base in HANDED for form in (base, base.built_on())] + [p.TRAINING.bare("GPU:0"), p.FIXED.bare("GPU:0"), p.TRAINING.bare()]
HELD = tuple(x for x in PASSES if x not in (shuffle_before_read, shard_before_read))
"""Without these two an epoch is held, and every host reads all of it."""


def specs() -> Iterator[tuple[str, PipelineSpec]]:
    """A spec for each combination that a spec can say."""
    sources = {"files": (FILES, STEPS), "files, drawn late": (FILES, LATE), "arrays": (ARRAYS, STEPS[1:])}
    combining = {"alone": [], "combined": [{"mixup": {"alpha": 0.2}}, {"random_brightness": {"factor": 0.1}}]}
    choices = (sources, combining, CACHES, SHUFFLES, ("drop", "keep", "pad"), ("pass", {"steps": 7}), ("raise", "skip"), (12, 16))
    for source, combine, cache, shuffle, remainder, epoch, errors, size in product(*choices):
        given, steps = sources[source]
        yield (
            f"{source}, {combine}, {cache}, {shuffle}, {remainder}, {epoch}, {errors}, {size}",
            load_spec(
                source=given,
                transforms=[*steps, *combining[combine]],
                output={"encode": {"label": "one_hot"}},
                shuffle=shuffle,
                batch={"size": size, "remainder": remainder},
                epoch=epoch,
                runtime={"cache": cache},
                **({"errors": {"decode": {"skip": {"max_fraction": 0.1}}}} if errors == "skip" and source != "arrays" else {}),
            ),
        )


def plans(stride: int) -> Iterator[tuple[str, PipelineSpec, Plan]]:
    """Every `stride`-th spec with its compiled training plan: with all passes, and with the epoch held."""
    for number, (said, spec) in enumerate(specs()):
        if number % stride:
            continue
        plan = built_of(spec)
        for passes in (PASSES, HELD):
            context = PassContext(spec.runtime, 1000, 2**40, replaces_damaged=spec.errors.skip is not None)
            yield said + (", held" if passes is HELD else ""), spec, run_passes(plan, passes, context).plan


def built_of(spec: PipelineSpec) -> Plan:
    from pipegen.plan.check import check
    from pipegen.spec.load import load

    return check(spec, load({"pipegen": 1}, env={}).locate.label).plans["train"]


def decide_all(stride: int) -> int:
    """Decides every form of every plan on every share, and looks at each; returns how many there were."""
    count = 0
    for said, spec, plan in plans(stride):
        for share, form, examples in product(SHARES, FORMS, (96, 101)):
            if spec.batch.size % share[1]:
                continue
            setting = p.Setting(extent_of(spec, plan, examples, share), 2, replaces=spec.errors.skip is not None)
            held = any(isinstance(n, Shuffle) for n in plan.nodes)
            kinds = {type(n) for n in plan.nodes}
            if (held and form.single) or (Cache in kinds and kinds & {Shuffle, Shard}):
                with pytest.raises(InternalError, match=r"no single steps|from their reading on"):
                    decide(plan, form, setting)
                continue
            try:
                made = decide(plan, form, setting)
                look_at(made, setting, held=held)
            except Exception as error:
                raise AssertionError(f"{said}; share {share}, {form.name}, {examples} examples") from error
            count += 1
        count += decide_sending(said, spec, plan)
        if not {Cache, Shuffle, Shard} & {type(n) for n in plan.nodes}:
            service = spec.runtime.model_copy(update={"service": Service(address="grpc://dispatcher:5050")})
            count += decide_parts(spec, run_passes(built_of(spec), PASSES, PassContext(service, 1000, 0)).plan)
        for form in (p.SHOWN, p.PROBED):
            look_at_records(decide(plan, form, p.Setting(extent_of(spec, plan, 101), 2, replaces=spec.errors.skip is not None)))
            count += 1
    return count


def decide_sending(said: str, spec: PipelineSpec, plan: Plan) -> int:
    """Decides what runs for a device stage on every share: the host prepares the kernels from some one on, and sends what enters them."""
    count = 0
    if any(isinstance(n, Shuffle) for n in plan.nodes) and any(isinstance(n, Cache) for n in plan.nodes):
        return 0
    for share, form in product(SHARES, (p.TRAINING, p.FIXED)):
        if spec.batch.size % share[1]:
            continue
        setting = p.Setting(extent_of(spec, plan, 101, share), 2, replaces=spec.errors.skip is not None)
        wide = widened(plan, setting.extent)
        if any(isinstance(n, Cache) for n in plan.nodes) and any(isinstance(n, Shard) for n in plan.nodes):
            continue
        for sending in (form.sending(), form.sending().built_on()):
            if not device_kernels(plan, wide):
                with pytest.raises(InternalError, match="unless each host has whole groups"):
                    decide(plan, sending, setting)
                continue
            made = decide(plan, sending, setting)
            kernels = [n for n in plan.nodes if isinstance(n, Kernel)]
            prepared = [f.node for f in made.functions if isinstance(f, p.Prepare)]
            assert prepared == list(device_kernels(plan, wide)) == kernels[len(kernels) - len(prepared) :], said
            assert not any(stage.combines and wide is not None for node in prepared for stage in node.stages), said
            assert sorted(only(made, p.SplitForDevice).features) == ["image", "label"], said
            assert only(made, p.Emit) is None
            assert "the parameters" in render_physical(made)
            count += 1
    return count


def decide_parts(spec: PipelineSpec, plan: Plan) -> int:
    """Decides what workers and the trainer run on every share: together the plan's nodes, and each of them once."""
    count = 0
    for share, form in product(SHARES, (p.SERVICE, p.IN_PLACE)):
        if spec.batch.size % share[1]:
            continue
        setting = p.Setting(extent_of(spec, plan, 101, share), 2, replaces=spec.errors.skip is not None)
        sent = decide(plan, form, setting)
        for training in (p.TRAINING, p.TRAINING.built_on()):
            received = decide(plan, training, setting)
            kernels = [f for made in (sent, received) for f in made.functions if isinstance(f, p.Kernel)]
            assert [f.node for f in kernels] == [n for n in plan.nodes if isinstance(n, Kernel)]
            assert only(sent, p.Send).node == only(received, p.Receive).node == next(n for n in plan.nodes if isinstance(n, Send))
            assert only(sent, p.Emit) is only(received, p.Index) is None
            assert [only(made, p.SliceOwnRows) for made in (sent, received)].count(None) == 1 + (only(sent, p.Index).rows is None)
            assert only(received, p.Emit).weighs == (setting.extent.pads)
            assert "bytes an example" in render_physical(received)
            assert all(bool(f.depth) == (f.node.compiled and not training.derived) for f in received.functions if isinstance(f, p.Kernel))
            assert not any(f.depth for f in sent.functions if isinstance(f, p.Kernel) and form.derived)
            count += 1
    return count


def look_at_records(made: p.Physical) -> None:
    """Records by themselves: drawn for and worked on as far as single examples go, and only tried where nobody wants to see them."""
    tried = made.form == p.PROBED
    assert [type(f) for f in made.functions] == [p.Draw, p.Examples]
    assert only(made, p.Draw).draws == made.plan.index.num_draws
    assert only(made, p.Examples).nodes == tuple(n for n in made.plan.nodes if isinstance(n, (Read, Element)))
    assert only(made, p.Examples).guard == ("tell" if tried else "none")
    assert [type(o) for o in made.operations] == [p.Enter, p.Map, *([p.Stack] if tried else [])]
    assert not physical_json(made)["portable"]


def only(made: p.Physical, kind: type[Any]) -> Any:
    """The one function of a kind, or `None`."""
    found = [f for f in made.functions if isinstance(f, kind)]
    assert len(found) <= 1
    return found[0] if found else None


def look_at(made: p.Physical, setting: p.Setting, *, held: bool) -> None:
    """What runs is what the order of the nodes, the form and the setting call for."""
    plan, form, extent = made.plan, made.form, setting.extent
    kinds = [type(n) for n in plan.nodes]
    before = kinds[1 : kinds.index(Batch)]
    gathers = Cache in before and before[-1] is Cache
    whole = not held and Shard not in before and (gathers or not {Read, Element} & set(before))
    operations = [type(o) for o in made.operations]
    assert (p.Unbatch not in operations) == whole
    assert (p.Steps in operations) == (not form.single and not held)
    assert operations.count(p.Unbatch) == (0 if whole else 2 if held else 1)

    index = only(made, p.Index)
    combined = only(made, p.SliceOwnRows) is not None
    wide = index.rows
    assert combined == (wide is not None)
    assert wide is None or (wide % 8 == 0 and wide >= extent.local_batch)
    assert (p.Filter in operations) == (Shard in kinds and wide is None)
    assert index.shard == ((0, 1) if p.Filter in operations else extent.shard)
    assert index.whole == held
    assert index.compiled == (not held and (index.node.order != "stored" or index.node.num_draws > 0))

    always = extent.remainder != "keep" or extent.epoch_steps is not None or wide is not None
    rows = wide or extent.local_batch
    if whole:
        assert (only(made, p.SetBatchSize) is not None) == always
    else:
        last = next(o for o in reversed(made.operations) if isinstance(o, p.Stack))
        assert last.full == (always or form.single)
        assert (only(made, p.Fill) is not None) == (form.single and not always)
        size = chunk_size(rows, max((n.chunk for n in plan.nodes if isinstance(n, Element)), default=1))
        assert last.size == rows // size
        assert (only(made, p.Join) is not None) == (size > 1)
    assert only(made, p.Emit).weighs == (extent.remainder == "pad" and extent.epoch_steps is None)

    fetch, keep = only(made, p.ReadCache), only(made, p.FillCache)
    assert (fetch is None) == (keep is None) == (Cache not in kinds)
    if fetch is not None:
        assert fetch.whole == gathers
        assert (keep.at_once is not None) == whole
    guards = {f.guard for f in made.functions if isinstance(f, p.Examples) and isinstance(f.nodes[0], Read)} - {"none"}
    wanted = {"replace"} if setting.replaces else {"name"} if form.derived else set()
    assert guards == (wanted if keep is None and Read in before and not held else set())
    assert keep is None or keep.examples.guard == next(iter(wanted), "none")

    deliver = only(made, p.Deliver)
    notes = form.enters == "variable" and form.device is None
    assert (deliver is None) == (form.numbered and not notes)
    assert deliver is None or (deliver.notes, deliver.numbered) == (notes, form.numbered)
    assert [o.device for o in made.operations if isinstance(o, p.Prefetch) and o.device] == ([form.device] if form.device else [])
    making = [not p.hands_over(o) for o in made.operations]
    assert making == sorted(making, reverse=True), "what hands over comes last"

    kernels = [f for f in made.functions if isinstance(f, p.Kernel)]
    assert [f.node for f in kernels] == [n for n in plan.nodes if isinstance(n, Kernel)]
    assert all(bool(f.depth) == (f.node.compiled and not form.derived) for f in kernels)
    assert all(bool(f.reuses) <= bool(f.depth) for f in kernels)
    assert {f.batch for f in kernels} <= {rows, extent.local_batch}
    assert all(o.threads in (None, 2) for o in made.operations if isinstance(o, p.Map))
    portable = form.enters in ("constant", "list") and form.derived and Cache not in kinds and (held or not setting.replaces)
    assert all(f.portable for f in needs(made)) == portable
    assert physical_json(made)["portable"] == portable
    assert len(render_physical(made).splitlines()) > len(made.operations)


def test_a_sample_of_all_combinations_runs_as_it_has_to() -> None:
    assert decide_all(stride=173) > 500


@pytest.mark.nightly
def test_every_combination_runs_as_it_has_to() -> None:
    assert decide_all(stride=1) > 40_000
