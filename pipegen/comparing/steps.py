"""Says what differs between the steps of two specs: which of them are the same, and what became of the others and of their draws."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from pipegen.comparing.changes import GONE, Change, Draws
from pipegen.spec.effects import ARITHMETIC, Effect
from pipegen.spec.scalars import flow
from pipegen.spec.source_map import KeyPath
from pipegen.spec.spec_hash import differences, in_words

_WHEN = {"train": "train", "eval": "every split but train"}


@dataclass(frozen=True, slots=True)
class Step:
    """Holds a step of one of the two.

    Attributes:
        index: Its place in the list.
        op: Its word.
        said: Its arguments as the spec says them.
        id: Its id.
        effect: What it does; `None` where that would be done without it.
    """

    index: int
    op: str
    said: dict[str, Any]
    id: str
    effect: Effect | None

    @property
    def does(self) -> str:
        """Returns what it does, without its draws, as a text to compare."""
        return json.dumps(self.effect[:2] if self.effect is not None else None, sort_keys=True)

    @property
    def draws(self) -> bool:
        """Returns whether it draws numbers."""
        return self.effect is not None and (len(self.effect) < 4 or self.effect[3])

    @property
    def path(self) -> KeyPath:
        """Returns where it stands."""
        return ("transforms", self.index, self.op)

    @property
    def reach(self) -> str:
        """Returns the splits that it runs on, in words; empty for all of them."""
        when = self.said.get("when")
        return ", ".join(when) if isinstance(when, list) else _WHEN.get(str(when), "")

    def __str__(self) -> str:
        return f"`{self.id}`"


def steps_of(meaning: dict[str, Any], *, effects: bool = True) -> list[Step]:
    """Returns the steps of a spec's meaning; see `spec_hash.meaning`. Without their `effects`, arguments stand for those."""
    steps = meaning.get("transforms", [])
    does = meaning["effects"] if effects else steps
    return [Step(i, op, said, step_id, effect) for i, ((op, said, step_id), effect) in enumerate(zip(steps, does, strict=True))]


def step_changes(a: dict[str, Any], b: dict[str, Any]) -> tuple[list[Change], Draws]:
    """Returns what differs between the steps of two meanings, and what becomes of the draws of the steps that are in both."""
    told = "effects" in a and "effects" in b  # an older version wrote none
    old, new = (steps_of(side, effects=told) for side in (a, b))
    pairs = _pairs(old, new)
    found = [change for before, after in pairs for change in _of_pair(before, after, new)]
    found += _moves(pairs)
    paired = {before.index for before, _ in pairs}, {after.index for _, after in pairs}
    gone = [step for step in old if step.index not in paired[0]]
    fresh = [step for step in new if step.index not in paired[1]]
    shifted = {after.op for before, after in pairs if before.id != after.id and after.draws}
    found += [_gone(step, step.op in shifted) for step in gone] + [_fresh(step, step.op in shifted) for step in fresh]
    return found, _draws(pairs, (a["seed"], b["seed"]))


def _pairs(old: list[Step], new: list[Step]) -> list[tuple[Step, Step]]:
    """Finds the steps that are the same one in both: what is the same whole first, then what does the same, then what has the same id, and
    last what has the same name."""
    pairs: list[tuple[Step, Step]] = []
    left, right = list(old), list(new)

    def take(*likeness: str, order: bool) -> None:
        keys = [["\n".join(getattr(step, name) for name in likeness) for step in side] for side in (left, right)]
        if order:
            blocks = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks()
            found = [(left[i + k], right[j + k]) for i, j, n in blocks for k in range(n)]
        else:
            rest = dict[str, list[Step]]()
            for step, key in zip(right, keys[1], strict=True):
                rest.setdefault(key, []).append(step)
            found = [(step, rest[key].pop(0)) for step, key in zip(left, keys[0], strict=True) if rest.get(key)]
        pairs.extend(found)
        gone = {before.index for before, _ in found}, {after.index for _, after in found}
        left[:] = [step for step in left if step.index not in gone[0]]
        right[:] = [step for step in right if step.index not in gone[1]]

    take("op", "does", "id", order=True)
    take("op", "does", "id", order=False)
    take("op", "does", order=False)
    take("does", order=True)
    take("op", "id", order=False)
    take("op", order=True)
    return sorted(pairs, key=lambda pair: pair[1].index)


def _of_pair(a: Step, b: Step, new: list[Step]) -> Iterator[Change]:
    """Yields what differs between a step and itself."""
    said = list(differences({a.op: a.said}, {b.op: b.said}, b.path[:-1]))
    if a.does == b.does:
        if said:
            what = "the same float32 constants" if b.effect is not None and b.effect[0] == ARITHMETIC else "the same by other words"
            yield Change("nothing", b.path, _line(said, a, b), what)
    elif said:
        for path, before, after in said:
            effect = "the examples that it reaches, or how, differ" if path[-1] == "when" else "what it does to them differs"
            reach = "" if path[-1] == "when" else b.reach
            yield Change("numbers", path, f"{before} → {after}", effect, reach)
    else:
        yield Change("numbers", b.path, "the same words, for other values", "what comes before makes it do something else", b.reach)
    if a.id != b.id and a.draws and b.draws:
        yield Change("numbers", b.path, f"its id was {a}, and is {b}", f"its draws differ; {_keeping(a, new)}", b.reach)


def _line(said: list[tuple[KeyPath, str, str]], a: Step, b: Step) -> str:
    """Returns a step in both words: `rescale: {to: [0, 1]} → {scale: 2.0}`."""
    names = dict.fromkeys(str(path[len(b.path)]) for path, _, _ in said if len(path) > len(b.path))
    old, new = (flow({name: step.said[name] for name in names or step.said if step.said.get(name) is not None}) for step in (a, b))
    return f"{a.op}: {old} → {b.op}: {new}" if a.op != b.op else f"{old} → {new}"


def _keeping(a: Step, new: list[Step]) -> str:
    """Says how a step keeps its draws."""
    taker = next((step for step in new if step.id == a.id), None)
    pin = f"`id: {in_words(a.id)}` keeps them"
    if taker is None:
        return pin
    return f"{pin}, with another `id` for the `{taker.op}` that is {a} now"


def _moves(pairs: list[tuple[Step, Step]]) -> Iterator[Change]:
    """Yields the steps that other steps have changed places with: as few as explain the new order."""
    stays = _longest_rise([before.index for before, _ in pairs])
    for k, (before, after) in enumerate(pairs):
        if before.index not in stays and after.effect is not None:
            earlier = pairs[k - 1][1] if k else None
            where = f"it comes after {earlier} now" if earlier is not None else "it comes first now"
            yield Change(
                "numbers", after.path, where, "steps act in another order; its draws stay" if after.draws else "steps act in another order"
            )


def _longest_rise(numbers: list[int]) -> set[int]:
    """Returns a longest increasing subsequence, by patience sorting: it keeps the least end of each length, and what came before."""
    last: list[int] = []
    before: dict[int, int | None] = {}
    for number in numbers:
        length = bisect_left(last, number)
        before[number] = last[length - 1] if length else None
        last[length : length + 1] = [number]
    found: set[int] = set()
    at = last[-1] if last else None
    while at is not None:
        found.add(at)
        at = before[at]
    return found


def _gone(step: Step, shifts: bool) -> Change:
    if step.effect is None:
        return Change("nothing", step.path, "it is no longer written out", "it holds by default")
    kept = "; no other step's draws move" if step.draws and not shifts else ""
    return Change("numbers", step.path, GONE, f"it acts no more{kept}", step.reach)


def _fresh(step: Step, shifts: bool) -> Change:
    if step.effect is None:
        return Change("nothing", step.path, "it is written out", "it holds by default")
    kept = "; no other step's draws move" if step.draws and not shifts else ""
    return Change("numbers", step.path, "it is new", f"one more step acts{kept}", step.reach)


def _draws(pairs: list[tuple[Step, Step]], seeds: tuple[Any, Any]) -> Draws:
    drawing = [(a, b) for a, b in pairs if a.draws and b.draws]
    if seeds[0] != seeds[1]:
        return Draws((), tuple((b.id, "another seed") for _, b in drawing))
    kept = tuple(b.id for a, b in drawing if a.id == b.id)
    return Draws(kept, tuple((b.id, f"the id was {a.id}") for a, b in drawing if a.id != b.id))
