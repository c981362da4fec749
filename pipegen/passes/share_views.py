"""as image_1 and image_2, decode image_1, decode image_2, flip → decode image, as image_1 and image_2, flip.

The first steps that all views of an example have in common run once: reading, decoding, and equal steps up to the first one
that draws. Arithmetic at the end of these stays with each view, where it can be folded, and segments stay whole.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from pipegen.ops.families.decoder import Decode
from pipegen.ops.families.item_stages import Measure
from pipegen.passes.plan_pass import Note, PassContext, Placed, pack, retyped, rewrite, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Plan
from pipegen.types import ElementType


@rewrite("E0", "steps that all views begin with run once", in_parts=True)
def share_views(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Moves the first stages that all views have in common before the fork."""
    items = unpack(plan)
    forks = [item.stage for item in items if isinstance(item, Placed) and isinstance(item.stage, s.Fork)]
    if not forks:
        return plan
    first = next(i for i, item in enumerate(items) if isinstance(item, Placed))
    end = next((i for i, item in enumerate(items) if isinstance(item, Batch)), len(items))
    between = [item for item in items[first:end] if isinstance(item, Placed)]
    home = {name: fork.feature for fork in forks for name in fork.names}
    shared = _shared(forks, between, home)
    done: list[Placed] = []
    early: list[Placed] = []
    seen: dict[str, int] = {}
    for item in between:
        feature = item.stage.feature
        number = seen[feature] = seen.get(feature, -1) + 1
        if feature not in home or number >= shared[home[feature]]:
            done += [] if isinstance(item.stage, s.Fork) else [item]
        elif feature == next(fork for fork in forks if fork.feature == home[feature]).names[0]:
            early.append(_at_home(item, home))
    for fork in forks:
        if shared[fork.feature]:
            count = len(fork.names)
            note(f"once for the {count} views of `{fork.feature}`: {', '.join(_said(early, fork.feature))}")
    entry = between[0].before
    edges = [Placed(fork, entry, entry) for fork in forks]
    return pack(plan, [*items[:first], *retyped([*early, *edges, *done], entry), *items[end:]])


def _shared(forks: list[s.Fork], items: list[Placed], home: dict[str, str]) -> dict[str, int]:
    """Counts the first stages that the views of each feature, its `home`, have in common."""
    found: dict[str, int] = {}
    chains = {name: [item.stage for item in items if item.stage.feature == name] for name in home}
    for fork in forks:
        alike = [[s.plainly(_renamed(stage, home)) for stage in chains[name]] for name in fork.names]
        count = 0
        while all(count < len(chain) and chain[count] == alike[0][count] for chain in alike) and not (
            s.is_random(chains[fork.names[0]][count]) or chains[fork.names[0]][count].needs()
        ):
            count += 1
        own = chains[fork.names[0]]
        while count and (own[count - 1].cheap or isinstance(own[count - 1], s.Composes)):
            count -= 1
        found[fork.feature] = count
    for name, chain in chains.items():  # a stage that reads another feature needs it in each view
        for stage in chain[found[home[name]] :]:
            if isinstance(stage, (Decode, Measure)) and stage.like:
                found[home.get(stage.like[0], stage.like[0])] = 0
            found |= {home[other]: 0 for other in stage.needs() if other in home}
    return found


def _renamed(value: Any, back: dict[str, str]) -> Any:
    """Renames the features of a view's stage to those of the record."""

    def named(own: Any) -> Any:
        return back.get(own, own) if isinstance(own, str) else tuple(map(named, own)) if type(own) is tuple else own

    return replace(value, **{part.name: named(getattr(value, part.name)) for part in fields(value)})


def _at_home(item: Placed, home: dict[str, str]) -> Placed:
    types = {home[name]: item.after[name] for name in item.stage.touches()}
    types = {name: t.with_(of=home.get(t.of or "", t.of)) for name, t in types.items()}
    return Placed(_renamed(item.stage, home), item.before, ElementType(tuple(types.items())))


def _said(items: list[Placed], feature: str) -> list[str]:
    return list(dict.fromkeys(f"`{ref.id}`" for item in items if item.stage.feature == feature for ref in item.stage.uses()))
