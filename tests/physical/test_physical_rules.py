"""Every rule of a physical plan rejects what breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from planning import built, compiled, load_spec

from pipegen.errors import InternalError
from pipegen.physical import nodes as p
from pipegen.physical import physical_rules as rules
from pipegen.physical.decide import INDEXED_AT_ONCE, assumed_examples, decide, extent_of
from pipegen.plan.cost import HANDED_OVER, are_replaced

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = [{"resize": {"size": 48}}, "random_flip", {"rescale": {"to": [0, 1]}}]
SERVED = {"cache": "none", "service": {"address": "grpc://dispatcher:5050"}}
COMBINING: dict[str, Any] = {
    "transforms": [*STEPS, {"mixup": {"alpha": 0.2}}],
    "output": {"encode": {"label": "one_hot"}},
    "batch": {"size": 12},
}


def decided(form: p.Form = p.TRAINING, cache: str = "none", split: str = "train", **sections: Any) -> p.Physical:
    given = {"transforms": STEPS, "batch": {"size": 16}, "runtime": {"cache": cache}, **sections}
    spec = load_spec(**given)
    plan = compiled(built(split=split, classes=3, **given), spec, ram_budget=2**40, num_examples=5000).plan
    return decide(plan, form, p.Setting(extent_of(spec, plan, assumed_examples(plan)), 2))


def without(plan: p.Physical, kind: type[Any]) -> p.Physical:
    """The plan without the functions, and the operations, of a kind."""
    kept = []
    for operation in plan.operations:
        if isinstance(operation, p.Map):
            functions = tuple(f for f in operation.functions if not isinstance(f, kind))
            kept += [replace(operation, functions=functions)] if functions else []
        elif not isinstance(operation, kind):
            kept.append(operation)
    return replace(plan, operations=tuple(kept))


def changed(plan: p.Physical, kind: type[Any], **fields: Any) -> p.Physical:
    """The plan with other values in the functions, and the operations, of a kind."""

    def new(node: Any) -> Any:
        return replace(node, **fields) if isinstance(node, kind) else node

    made = [replace(o, functions=tuple(map(new, o.functions))) if isinstance(o, p.Map) else new(o) for o in plan.operations]
    return replace(plan, operations=tuple(made))


def unguarded(plan: p.Physical) -> p.Physical:
    return changed(plan, p.Examples, guard="none")


def read_outside(plan: p.Physical) -> p.Physical:
    """The plan with guards that do not cover the reading."""
    (examples,) = (f for f in plan.functions if isinstance(f, p.Examples))
    return changed(plan, p.Examples, nodes=examples.nodes[1:])


def cached_in_chunks(plan: p.Physical) -> p.Physical:
    """The plan with a cache that is filled four records at a time."""
    (filled,) = (f for f in plan.functions if isinstance(f, p.FillCache))
    return changed(plan, p.FillCache, examples=replace(filled.examples, chunk=4))


def worked_on_later(plan: p.Physical) -> p.Physical:
    """The plan with a kernel on the host behind the same one for the device."""
    made = []
    for o in plan.operations:
        prepared = [f for f in o.functions if isinstance(f, p.Prepare)] if isinstance(o, p.Map) else []
        made += [replace(o, functions=(*o.functions, p.Kernel(f.node, f.entry, 16, 0))) for f in prepared] or [o]
    return replace(plan, operations=tuple(made))


BROKEN: dict[Callable[[p.Physical], str | None], list[Callable[[], p.Physical]]] = {
    rules._grains_follow: [
        lambda: without(decided(), p.Unbatch),
        lambda: without(decided(), p.Stack),
        lambda: without(decided(), p.Steps),
        lambda: changed(decided(p.REQUESTED), p.Enter, grain="epoch"),
    ],
    rules._chunks_are_joined: [
        lambda: without(decided(), p.Join),
        lambda: changed(decided(), p.Examples, chunk=4),
        lambda: changed(decided(), p.Stack, size=3),
        lambda: without(decided(p.REQUESTED, split="validation"), p.Trim),
    ],
    rules._derived_holds_no_memory: [
        lambda: changed(decided(p.FIXED.built_on()), p.Kernel, depth=4),
        lambda: unguarded(decided(p.FIXED.built_on())),
    ],
    rules._position_is_noted_where_it_is_kept: [
        lambda: without(decided(), p.Deliver),
        lambda: changed(decided(p.FIXED.bare()), p.Deliver, notes=True),
        lambda: changed(decided(p.TRAINING.bare("GPU:0")), p.Deliver, notes=True),
    ],
    rules._single_steps_stay_apart: [lambda: changed(decided(p.REQUESTED, split="validation"), p.Stack, full=False)],
    rules._widened_batches_are_cut: [
        lambda: without(decided(**COMBINING), p.SliceOwnRows),
        lambda: changed(decided(**COMBINING), p.Kernel, batch=12),
        lambda: changed(decided(**COMBINING), p.Index, rows=None),
    ],
    rules._caches_are_filled_first: [lambda: without(decided(cache="memory"), p.FillCache)],
    rules._guards_see_single_records: [
        lambda: read_outside(decided(p.FIXED.built_on())),
        lambda: cached_in_chunks(decided(p.FIXED.built_on(), cache="memory")),
    ],
    rules._everything_runs_once: [
        lambda: without(decided(), p.Kernel),
        lambda: without(decided(cache="memory", **COMBINING), p.FillCache),
    ],
    rules._what_is_sent_is_whole: [
        lambda: replace(decided(p.FIXED.sending()), form=p.FIXED),
        lambda: changed(decided(p.FIXED.sending()), p.Prepare, number=1),
        lambda: without(decided(p.FIXED.sending()), p.Prepare),
        lambda: worked_on_later(decided(p.FIXED.sending())),
    ],
    rules._parts_meet_at_one_edge: [
        lambda: replace(decided(p.SERVICE), form=replace(p.SERVICE, sent=False)),
        lambda: replace(decided(runtime=SERVED), operations=decided().operations[:3] + decided(runtime=SERVED).operations[1:]),
    ],
}


def test_every_rule_is_broken_here() -> None:
    assert set(BROKEN) == set(rules.RULES)


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__.strip("_"))
def test_a_rule_rejects_what_breaks_it(rule: Callable[[p.Physical], str | None]) -> None:
    for number, break_it in enumerate(BROKEN[rule]):
        broken = break_it()
        assert rule(broken) is not None, number
        with pytest.raises(InternalError, match="form: "):
            rules.verify(broken)


@pytest.mark.parametrize("fetches", [False, True])
def test_some_steps_are_indexed_at_a_time_and_records_are_fetched_in_order(fetches: bool) -> None:
    plan = decided().plan
    setting = replace(decided().setting, threads=64, fetches=fetches)
    maps = [o for o in decide(plan, p.TRAINING, setting).operations if isinstance(o, p.Map) and o.grain == "step"]
    indexed = p.Index, *(() if fetches else (p.Cut,))
    assert [type(f) for f in maps[0].functions] == [*indexed]
    assert maps[0].threads == INDEXED_AT_ONCE < 64
    assert [([type(f) for f in o.functions], o.threads) for o in maps[1:]] == ([([p.PrefetchRemote, p.Cut], None)] if fetches else [])


def kernels(plan: p.Physical) -> list[p.Kernel]:
    """The kernels of the only map that has any."""
    (found,) = (made for o in plan.operations if isinstance(o, p.Map) and (made := [f for f in o.functions if isinstance(f, p.Kernel)]))
    return found


def test_a_batch_goes_through_all_kernels_in_one_call_and_only_what_is_handed_over_has_places_beyond_the_threads() -> None:
    first, last = kernels(decided(**COMBINING))
    assert (first.depth, last.depth) == (2, 2 + 2 + HANDED_OVER)


@pytest.mark.parametrize("form", [p.SERVICE, p.FIXED.built_on()])
def test_elsewhere_where_threads_are_unknown_no_kernel_keeps_memory(form: p.Form) -> None:
    usual = decided(**COMBINING)
    plan = decide(usual.plan, form, replace(usual.setting, threads=-1))
    assert [f.depth for f in plan.functions if isinstance(f, p.Kernel)] == [0, 0]


def test_results_that_no_later_kernel_replaces_are_handed_over() -> None:
    first, last = (kernel.node for kernel in kernels(decided(**COMBINING)))
    other = replace(last, stages=tuple(stage for stage in last.stages if stage.feature != "image"))
    assert are_replaced(first, [last])
    assert not are_replaced(first, [other])
    assert not are_replaced(last, [])
