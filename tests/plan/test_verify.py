"""The verifier: every rule catches the plan that breaks it, and no pass gets away with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from planning import built, compiled, load_spec

from pipegen.errors import InternalError
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.families.combining import Combine
from pipegen.ops.families.decoder import Decode
from pipegen.ops.families.lookup_tables import LookupTable
from pipegen.ops.transforms.mixup import Cutmix
from pipegen.passes import PASSES, PassContext, run_passes
from pipegen.passes.plan_pass import Pass
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Kernel, Node, PartDraws, Plan, Prefetch, Read, Shard, Shuffle
from pipegen.plan.plan_rules import RULES, verify

TEXT = """\
transforms:
  - resize: {size: 24}
  - random_rotation: {degrees: 10}
  - random_shear: {degrees: 5}
  - random_brightness: {factor: 0.2}
  - random_contrast: {factor: 0.2}
"""


def plan() -> Plan:
    """A plan as built, with a geometric and a colour segment."""
    return built(TEXT)


def nodes_with(original: Plan, stage: type) -> list[Element]:
    """The nodes that hold a stage of this class."""
    return [n for n in original.nodes if isinstance(n, Element) and isinstance(n.stages[0], stage)]


def without(original: Plan, *gone: Node) -> Plan:
    """The plan less some nodes."""
    return original.with_nodes([n for n in original.nodes if not any(n is g for g in gone)])


def moved(original: Plan, kind: type, to: int) -> Plan:
    """The plan with the node of this class elsewhere."""
    node = next(n for n in original.nodes if isinstance(n, kind))
    rest = [n for n in original.nodes if n is not node]
    return original.with_nodes([*rest[:to], node, *rest[to:]])


def swap(original: Plan, old: Node, *new: Node) -> Plan:
    """The plan with other nodes in the place of one."""
    return original.with_nodes([m for n in original.nodes for m in (new if n is old else (n,))])


def unclosed(p: Plan) -> Plan:
    return without(p, *nodes_with(p, s.Resample))


def never_opened(p: Plan) -> Plan:
    return without(p, nodes_with(p, s.Compose)[0])


def opened_twice(p: Plan) -> Plan:
    second = nodes_with(p, s.Compose)[1]
    return swap(p, second, replace(second, stages=(replace(second.stages[0], opens=True),)))


def touched_inside(p: Plan) -> Plan:
    first, resize = nodes_with(p, s.Compose)[0], nodes_with(p, s.Apply)[0]
    return swap(p, first, first, replace(resize, out=first.out))


def closed_by_the_other_kind(p: Plan) -> Plan:
    colour = nodes_with(p, s.ApplyColour)[0]
    return swap(p, nodes_with(p, s.Resample)[0], colour)


def pending_changes_the_image(p: Plan) -> Plan:
    first = nodes_with(p, s.Compose)[0]
    return swap(p, first, replace(first, out=first.out.replace(image=first.out["image"].with_(dtype="float32"))))


def unknown_draws(p: Plan) -> Plan:
    first = nodes_with(p, s.Compose)[0]
    stage = first.stages[0]
    assert isinstance(stage, s.Compose)
    return swap(p, first, replace(first, stages=(replace(stage, ref=replace(stage.ref, start=99)),)))


def cached_after_randomness(p: Plan) -> Plan:
    return swap(p, p.batch, Cache(p.nodes[p.nodes.index(p.batch) - 1].out), p.batch)


def cached_at_any_shape(p: Plan) -> Plan:
    decode = nodes_with(p, Decode)[0]
    return swap(p, decode, decode, Cache(decode.out))


def ragged_batch(p: Plan) -> Plan:
    image = p.batch.out["image"]
    return swap(p, p.batch, replace(p.batch, out=p.batch.out.replace(image=image.with_(shape=(None, 24, 3)))))


def shuffled_twice(p: Plan) -> Plan:
    return p.with_nodes([replace(p.index, order="global"), *p.nodes[1:]])


def sharded_before_the_shuffle(p: Plan) -> Plan:
    return without(p.with_nodes([replace(p.index, shard=True), *p.nodes[1:]]), *(n for n in p.nodes if isinstance(n, Shard)))


def kernel_before_the_batch(p: Plan) -> Plan:
    resize = nodes_with(p, s.Apply)[0]
    return swap(p, resize, Kernel(resize.out, resize.stages))


def decode_in_a_kernel(p: Plan) -> Plan:
    decode = nodes_with(p, Decode)[0]
    return swap(p, p.batch, p.batch, Kernel(p.batch.out, decode.stages))


def histogram_inside_a_kernel(p: Plan) -> Plan:
    return swap(p, p.batch, p.batch, Kernel(p.batch.out, (LookupTable("image", (), False), LookupTable("image", (), True))))


def element_after_the_batch(p: Plan) -> Plan:
    resize = nodes_with(p, s.Apply)[0]
    return swap(p, p.batch, p.batch, replace(resize, out=p.batch.out))


def worked_on_before_it_is_read(p: Plan) -> Plan:
    read = next(n for n in p.nodes if isinstance(n, Read))
    decode = nodes_with(p, Decode)[0]
    return swap(without(p, decode), read, decode, read)


def combined_before_the_batch(p: Plan) -> Plan:
    use = nodes_with(p, s.Apply)[0].stages[0]
    assert isinstance(use, s.Apply)
    combining = replace(use.ref, step=Cutmix()).of(Cutmix)
    return swap(
        p, p.batch, Element(p.nodes[p.nodes.index(p.batch) - 1].out, (Combine("image", combining, (24, 24), label=False),)), p.batch
    )


def empty_node(p: Plan) -> Plan:
    return swap(p, p.batch, Element(p.nodes[p.nodes.index(p.batch) - 1].out, ()), p.batch)


def quantised(p: Plan, *, exact: bool) -> Plan:
    """A plan whose colour is cast to bytes at the end."""
    image, node = p.batch.out["image"], nodes_with(p, s.ApplyColour)[0]
    whole = p.batch.out.replace(image=image.with_(dtype="uint8")).with_batch(None)
    rounding = Element(whole, (s.Pointwise("image", Arithmetic((1.0,), (0.0,), "uint8"), (), exact=True),))
    return swap(p, node, replace(node, stages=(replace(node.stages[0], exact=exact),)), rounding)


def apart(p: Plan) -> Plan:
    read = next(n for n in p.nodes if isinstance(n, Read))
    mask = read.out["image"].with_(dtype="uint8", shape=(3,))
    other = Read(read.out.replace(image=mask))
    index = replace(p.index, parts=(PartDraws("a", p.index.draws), PartDraws("b", p.index.draws)), width=p.index.num_draws)
    return p.with_nodes([index if n is p.index else replace(read, parts=((read,), (other,))) if n is read else n for n in p.nodes])


BROKEN: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "no index": (lambda p: p.with_nodes(p.nodes[1:]), "_starts_and_ends"),
    "nothing read": (lambda p: without(p, *(n for n in p.nodes if isinstance(n, Read))), "_starts_and_ends"),
    "two batches": (lambda p: swap(p, p.batch, p.batch, p.batch), "_starts_and_ends"),
    "examples combined one by one": (combined_before_the_batch, "_stages_stand_where_they_work"),
    "no emit": (lambda p: p.with_nodes(p.nodes[:-1]), "_starts_and_ends"),
    "prefetch twice": (lambda p: p.with_nodes([*p.nodes, Prefetch(p.out, None), Prefetch(p.out, None)]), "_starts_and_ends"),
    "work after emit": (lambda p: moved(p, Emit, 3), "_starts_and_ends"),
    "shuffled twice": (shuffled_twice, "_order_is_settled_once"),
    "sharded twice": (lambda p: p.with_nodes([replace(p.index, shard=True), *p.nodes[1:]]), "_order_is_settled_once"),
    "a shard before the shuffle": (lambda p: moved(p, Shuffle, 4), "_shard_follows_shuffle"),
    "the index's shard before the shuffle": (sharded_before_the_shuffle, "_shard_follows_shuffle"),
    "an element before the read": (worked_on_before_it_is_read, "_stages_stand_where_they_work"),
    "an element after the batch": (element_after_the_batch, "_stages_stand_where_they_work"),
    "a kernel before the batch": (kernel_before_the_batch, "_stages_stand_where_they_work"),
    "decode in a kernel": (decode_in_a_kernel, "_stages_stand_where_they_work"),
    "a histogram of what a kernel has just made": (histogram_inside_a_kernel, "_whole_images_come_first"),
    "a node of nothing": (empty_node, "_stages_stand_where_they_work"),
    "a ragged batch": (ragged_batch, "_batch_is_static"),
    "a segment left open": (unclosed, "_segments_are_closed"),
    "a segment never opened": (never_opened, "_segments_are_closed"),
    "a segment opened twice": (opened_twice, "_segments_are_closed"),
    "an image touched inside a segment": (touched_inside, "_segments_are_closed"),
    "geometry closed as colour": (closed_by_the_other_kind, "_segments_are_closed"),
    "a pending step that changes the image": (pending_changes_the_image, "_pending_steps_leave_the_image"),
    "draws that nobody makes": (unknown_draws, "_draws_are_in_range"),
    "a part of a mix that ends in another type": (apart, "_parts_end_alike"),
    "a cache behind a random step": (cached_after_randomness, "_cache_is_deterministic"),
    "floats that are rounded later, computed as others are": (lambda p: quantised(p, exact=False), "_what_is_rounded_is_exact"),
    "a cache at any shape": (cached_at_any_shape, "_cache_is_deterministic"),
}
"""A broken plan, and the rule that it breaks."""


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_plan_is_caught(name: str) -> None:
    breaks, rule = BROKEN[name]
    good = plan()
    verify(good, "build")
    broken = breaks(good)
    assert rule in [r.__name__ for r in RULES if _says(r, broken)]
    with pytest.raises(InternalError) as caught:
        verify(broken, "some_pass")
    message = str(caught.value)
    assert "some_pass" in message, "it names the pass"
    assert any((r.__doc__ or "").splitlines()[0] in message for r in RULES), "and the rule, in words"
    assert "emit" in message or "batch" in message, "and shows the plan"


def _says(rule: Callable[[Plan], str | None], broken: Plan) -> bool:
    try:
        return rule(broken) is not None
    except (AssertionError, StopIteration):  # a later rule may rely on the first
        return False


def test_every_rule_is_broken_once() -> None:
    assert {rule for _, rule in BROKEN.values()} == {r.__name__ for r in RULES}
    assert all(r.__doc__ for r in RULES)


@pytest.mark.parametrize("position", range(len(PASSES)))
def test_a_pass_that_breaks_the_plan_is_named(position: int) -> None:
    """Whichever pass it is: the verifier runs after each."""
    spec, good = load_spec(TEXT), plan()

    def bad(p: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
        return p.with_nodes([n for n in p.nodes if not isinstance(n, Batch)])

    original = PASSES[position]
    passes = (*PASSES[:position], Pass(original.name, original.rewrite_class, original.reason, bad), *PASSES[position + 1 :])
    with pytest.raises(InternalError, match=f"after {original.name}"):
        run_passes(good, passes, PassContext(spec.runtime))


def test_a_pass_may_not_change_what_the_model_receives() -> None:
    spec, good = load_spec(TEXT), plan()

    def bad(p: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
        emit = p.nodes[-1]
        return swap(p, emit, replace(emit, out=emit.out.replace(image=emit.out["image"].with_(dtype="float16"))))

    with pytest.raises(InternalError, match="smuggle changed the output from"):
        run_passes(good, (Pass("smuggle", "E0", "none", bad),), PassContext(spec.runtime))


def test_every_plan_between_passes_stands() -> None:
    done = compiled(plan(), load_spec(TEXT), num_examples=40, ram_budget=2**30)
    assert [r.name for r in done.records] == [p.name for p in PASSES], "one record a pass, in order"
    for record, following in zip(done.records, done.records[1:], strict=False):
        assert record.after is following.before
        verify(record.after, record.name)
    assert done.plan is done.records[-1].after
