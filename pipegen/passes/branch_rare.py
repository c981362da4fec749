"""Batch, JPEG artefacts for 1 example in 5 → branch(JPEG artefacts), Batch.

A costly stage that XLA does not compile, of which only some examples need the result, runs on those alone: in the element stage, under a
branch. In a batch every example would pay for it. Conditional stages before such a stage move with it, to keep the order. All of them
have to come first after the batch, since no batch stage can be before an element stage. A mirror before them swaps places with
them if that is exact. What XLA compiles stays in the batch; see `skip_unchanged`.

If a batch of records is read as one (Batch, Read), branches need single reads, which pays for large images alone: the plan
with the lower expected cost is taken.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.cost import ASSUMED_FILE, Circumstances, plan_cost
from pipegen.plan.nodes import Cache, Node, Plan, Read

RARE = 0.7  # the share of examples up to which a branch is cheaper than running the stage on all


@rewrite("E1", "examples do not pay for stages on the host that few need")
def branch_rare(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Moves the rare and costly stages that are first after the batch before it, each under a branch."""
    items = unpack(plan)
    at = items.index(plan.batch)
    reads = isinstance(items[at + 1], Read)
    first = at + 1 + reads
    behind = [item for item in takewhile(lambda item: isinstance(item, Placed), items[first:]) if isinstance(item, Placed)]
    compiled = context.runtime.jit != "never"
    mirrors, rare = _rare(behind, compiled=compiled)
    if not rare or any(isinstance(item, Cache) for item in items):
        return plan
    moved = [_branch(item, compiled=compiled) for item in rare]
    stacked = _reading_each(plan) if reads else [plan.batch]
    branched = pack(plan, [*items[:at], *stacked[:-1], *moved, stacked[-1], *behind[:mirrors], *items[first + mirrors + len(rare) :]])
    given = Circumstances(context.file_bytes or ASSUMED_FILE)  # without the machine's factors, on which no number may depend
    if reads and plan_cost(branched, given).us >= plan_cost(plan, given).us:
        note("no branch: reading record by record would cost more than it saves")
        return plan
    for item in rare:
        ids = " and ".join(dict.fromkeys(f"`{ref.id}`" for ref in item.stage.uses()))
        note(f"{ids} runs on the {item.stage.share:.0%} of the examples that need it")
    return branched


def _rare(behind: list[Placed], *, compiled: bool) -> tuple[int, list[Placed]]:
    """The number of mirrors that are first after the batch, and the stages after them to branch, up to the last costly one."""
    mirrors = sum(1 for _ in takewhile(lambda item: item.stage.mirrors_only(), behind))
    run = list(takewhile(lambda item: _conditional(item, mirrored=mirrors > 0), behind[mirrors:]))
    stages = enumerate(item.stage for item in run)
    dear = [i for i, st in stages if st.leads() and st.share <= RARE and not (compiled and st.compilable)]
    return mirrors, run[: dear[-1] + 1] if dear else []


def _reading_each(plan: Plan) -> list[Node]:
    """Batch, Read → Read, Batch."""
    batch, read = plan.batch, plan.read
    return [Read(read.with_batch(None)), replace(batch, out=read.with_batch(batch.out.batch))]


def _branch(item: Placed, *, compiled: bool) -> Placed:
    stage = item.stage
    branch = s.Branch(stage.feature, stage, item.before[stage.feature], compiled and stage.compilable)
    return Placed(branch, item.before.with_batch(None), item.after.with_batch(None))


def _conditional(item: Placed, *, mirrored: bool) -> bool:
    """Tests if a stage leaves some examples exactly as they are, and can swap with a mirror if `mirrored`."""
    x, stage = item.before.get(item.stage.feature), item.stage
    same = stage.branches and x == item.after[stage.feature] and all(ref.conditional for ref in stage.uses())
    return same and x is not None and (not mirrored or stage.commutes_with_mirrors(x))
