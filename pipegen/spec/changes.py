"""The differences between the meanings of two specs, setting by setting and step by step, and their effects on the numbers."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict
from difflib import SequenceMatcher
from typing import Any, Literal

from pipegen.diagnostics.diagnostic import Span
from pipegen.frozen import dataclass
from pipegen.spec.compose import flow
from pipegen.spec.models import UNENCODED, Batch
from pipegen.spec.source_map import KeyPath, format_path
from pipegen.spec.spec_hash import ARITHMETIC, LONGEST_RUN, Effect, without_places

Kind = Literal["numbers", "perhaps", "speed", "nothing"]
"""The effect of a change:

- `numbers`: the model sees other numbers.
- `perhaps`: the specs alone cannot tell: the data lies elsewhere, or a version changed.
- `speed`: it runs elsewhere, or at another speed.
- `nothing`: names, comments, and other words for the same.
"""
GONE = "it is no longer there"
KINDS: tuple[Kind, ...] = ("numbers", "perhaps", "speed", "nothing")


@dataclass(frozen=True, slots=True)
class Change:
    """A difference."""

    kind: Kind  # the kind of its effect
    path: KeyPath  # its key path in a spec, as in `transforms[1].random_flip.axis`
    text: str  # the difference, in words
    effect: str  # its effect, in words
    splits: str = ""  # the splits that it affects, in words; empty for all, or if that is obvious
    span: Span | None = None  # its place in the second spec, or in the first if it is gone in the second

    def __str__(self) -> str:
        return f"{format_path(self.path)}: {self.text}" if self.path else self.text

    @property
    def gone(self) -> bool:
        """The second spec lacks what the change is about."""
        return self.text == GONE

    @property
    def whole_effect(self) -> str:
        """The effect, after the splits that it is on."""
        return f"{self.splits}: {self.effect}" if self.splits else self.effect

    def as_json(self) -> dict[str, Any]:
        """Converts the change to plain values."""
        return asdict(self) | {"path": format_path(self.path)}


@dataclass(frozen=True, slots=True)
class Draws:
    """The ids of the steps of both specs that keep their random draws, and of those that do not, with why."""

    kept: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()


def meaning_changes(a: dict[str, object], b: dict[str, object]) -> tuple[list[Change], Draws]:
    """Compares two meanings; also returns the effects on the draws."""
    a, b, folded = fold_runs(a, b)
    steps, draws = step_changes(a, b)
    return [*section_changes(a, b), *steps, *folded], draws


_MEANS: tuple[tuple[KeyPath, str, str], ...] = (
    (("pipegen",), "the language differs", ""),
    (("source", "mix", "epoch"), "epochs have another length", "train"),
    (("source", "mix", "parts", "*", "weight"), "an epoch has other shares of the parts", "train"),
    (("source", "mix", "parts", "*", "transforms"), "other steps act on the examples of this part", ""),
    (("source", "mix", "parts", "*", "splits"), "other examples are in the splits, so scores cannot be compared", ""),
    (("source", "mix", "parts", "*", "sampling"), "examples are seen more or less often", "train"),
    (("source", "mix", "parts", "*", "order"), "examples are seen earlier or later in training", "train"),
    (("source",), "other records, or other values of theirs", ""),
    (("splits",), "other examples are in the splits, so scores cannot be compared", ""),
    (("seed",), "another order, and other draws of every step", "train"),
    (("shuffle",), "the same examples in another order", "train"),
    (("epoch",), "epochs have another length", "train"),
    (("sampling", "subset"), "other examples are trained on", "train"),
    (("sampling",), "examples are seen more or less often", "train"),
    (("order",), "examples are seen earlier or later in training", "train"),
    (("batch", "size"), "the same examples in batches of another size, and another number of steps", ""),
    (("batch", "remainder"), "a last batch that is not full is treated otherwise", ""),
    (("batch", "pad"), "examples are padded to another length, with another value, or others are left out", ""),
    (("batch", "buckets"), "examples of other sizes are batched together", ""),
    (("images",), "images that no other one is aligned with draw other numbers", "train"),
    (("views",), "the model sees other views of an example", "train"),
    (("output",), "what the model receives has another form", ""),
    (("errors", "missing"), "nothing differs as long as no record lacks a file", ""),
    (("errors",), "nothing differs as long as every file is whole", ""),
    (("stages",), "training goes through other stages", "train"),
    ((), "a section differs that this version of pipegen does not have", ""),
)
"""The effect of a difference, by the start of its path, and the splits that it affects; "" for all."""


def section_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Compares the sections of two meanings; see `spec_hash.meaning`."""
    ours = ("transforms", "effects", "inner")
    old, new = ({key: value for key, value in side.items() if key not in ours} for side in alike(a, b))
    for path, before, after in differences(old, new):
        begun = (m for m in _MEANS if len(path) >= len(m[0]) and all(key in ("*", own) for key, own in zip(m[0], path, strict=False)))
        _, effect, reach = next(begun)
        if path[:2] == ("batch", "remainder") and len(path) > 2:
            reach = str(path[2])
        at, text = _in_spec(path, old, new), f"{before} → {after}"
        if at[0] == "views" and len(path) == 4 and len(at) == 5:  # a whole step
            text = "it is new" if path[3] not in old["views"].get(path[1], {}).get("transforms", {}) else GONE
        yield Change("numbers", at, text, effect, reach)


def _in_spec(path: KeyPath, old: dict[str, Any], new: dict[str, Any]) -> KeyPath:
    """Converts the path of a setting in a meaning to that in a spec, which has lists of stages and of steps of `views`."""
    if path[0] == "stages":
        return (path[0], *map(int, path[1:2]), *path[2:])  # numbered by text, as in JSON
    if path[0] == "views" and path[2:3] == ("transforms",) and len(path) > 3:
        listed = [side["views"].get(path[1], {}).get("transforms", {}) for side in (new, old)]
        step = next(steps[path[3]] for steps in listed if path[3] in steps)
        return (*path[:3], step["at"], *(path[4:] or (next(key for key in step if key != "at"),)))
    return path


_ABSENT = "nothing"
_SHOWN_LONGEST = 60


def alike(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Prepares two meanings for a comparison, without paths of data.

    Steps of single views or parts with equal effects get the spelling of the first meaning.
    """
    old, new = ({**side, "source": without_places(side["source"])} if "source" in side else side for side in (a, b))
    views, parts = ([side.get("inner", {}).get(kind, {}) for side in (a, b)] for kind in ("views", "parts"))
    for name in views[0].keys() & views[1].keys():
        branch = new["views"][name]
        pairs = _effects_by_id(old, name), _effects_by_id(new, name)
        same = [step for step in pairs[0].keys() & pairs[1].keys() if pairs[0][step] == pairs[1][step]]
        said = {step: {**old["views"][name]["transforms"][step], "at": branch["transforms"][step]["at"]} for step in same}
        new = {**new, "views": {**new["views"], name: {**branch, "transforms": {**branch["transforms"], **said}}}}
    for name in parts[0].keys() & parts[1].keys():
        done = [[effect[:3] for effect in side[name] if effect is not None] for side in parts]
        if done[0] == done[1]:
            (word, mix), known = next(iter(new["source"].items())), next(iter(old["source"].values()))
            part = {**mix["parts"][name], "transforms": known["parts"][name]["transforms"]}
            new = {**new, "source": {word: {**mix, "parts": {**mix["parts"], name: part}}}}
    return old, new


def _effects_by_id(side: dict[str, Any], view: str) -> dict[str, Any]:
    listed = side["inner"]["views"][view]
    return {step: (listed[said["at"]] or [])[:3] for step, said in side["views"][view]["transforms"].items()}


def differences(a: Any, b: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str, str]]:
    """Yields the path of each setting that differs between two plain values, with both values in words."""
    if a == b:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        if path[:1] in (("transforms",), ("source",)) and len(path) < 3 and set(a) != set(b):
            yield path, in_words(next(iter(a), None)), in_words(next(iter(b), None))
            return
        for key in (*a, *(k for k in b if k not in a)):
            unsaid = _unsaid((*path, key))
            yield from differences(a.get(key, unsaid), b.get(key, unsaid), (*path, key))
    else:
        yield path, in_words(a), in_words(b)


def _unsaid(path: KeyPath) -> str:
    """The default of a setting that a canonical spec leaves out."""
    if path[:2] == ("batch", "remainder"):
        return Batch().remainder_for(str(path[-1]))
    return UNENCODED if path[:2] == ("output", "encode") else _ABSENT


def in_words(value: Any) -> str:
    """A value as text in a difference."""
    text = _ABSENT if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN_LONGEST else text[: _SHOWN_LONGEST - 1] + "…"


_WHEN = {"train": "train", "eval": "every split but train"}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of one of the two specs: its place in the list, its name, its arguments as written, its id, and its effect.

    The effect is `None` if a default step has the same effect.
    """

    index: int
    op: str
    said: dict[str, Any]
    id: str
    effect: Effect | None

    @property
    def does(self) -> str:
        """Its effect without its draws, as a text to compare."""
        return json.dumps(self.effect[:2] if self.effect is not None else None, sort_keys=True)

    @property
    def draws(self) -> bool:
        """It draws random numbers."""
        return self.effect is not None and self.effect[3]

    @property
    def path(self) -> KeyPath:
        """Its key path."""
        return ("transforms", self.index, self.op)

    @property
    def reach(self) -> str:
        """The splits that it runs on, in words; "" for all."""
        when = self.said.get("when")
        return ", ".join(when) if isinstance(when, list) else _WHEN.get(str(when), "")

    def __str__(self) -> str:
        return f"`{self.id}`"


def steps_of(meaning: dict[str, Any]) -> list[Step]:
    """Lists the steps of a spec's meaning; see `spec_hash.meaning`."""
    pairs = zip(meaning["transforms"], meaning["effects"], strict=True)
    return [Step(i, op, said, step_id, effect) for i, ((op, said, step_id), effect) in enumerate(pairs)]


def step_changes(a: dict[str, Any], b: dict[str, Any]) -> tuple[list[Change], Draws]:
    """Compares the steps of two meanings; also returns the effects on the draws."""
    old, new = steps_of(a), steps_of(b)
    pairs = _pairs(old, new)
    found = [change for before, after in pairs for change in _of_pair(before, after, new)]
    # As few steps move as explain the new order.
    stays = _longest_rise([before.index for before, _ in pairs])
    for k, (before, after) in enumerate(pairs):
        if before.index not in stays and after.effect is not None:
            where = f"it comes after {pairs[k - 1][1]} now" if k else "it comes first now"
            found.append(Change("numbers", after.path, where, f"steps act in another order{'; its draws stay' if after.draws else ''}"))
    paired = {before.index for before, _ in pairs}, {after.index for _, after in pairs}
    gone = [step for step in old if step.index not in paired[0]]
    fresh = [step for step in new if step.index not in paired[1]]
    shifted = {after.op for before, after in pairs if before.id != after.id and after.draws}
    found += [_unpaired(step, step.op in shifted, is_new=new) for new, steps in ((False, gone), (True, fresh)) for step in steps]
    reseeded = a["seed"] != b["seed"]
    drawing = [(before, after.id) for before, after in pairs if before.draws and after.draws]
    kept = tuple(step_id for before, step_id in drawing if before.id == step_id and not reseeded)
    why = ((step_id, "another seed" if reseeded else f"the id was {before.id}") for before, step_id in drawing)
    return found, Draws(kept, tuple((step_id, text) for step_id, text in why if step_id not in kept))


def _pairs(old: list[Step], new: list[Step]) -> list[tuple[Step, Step]]:
    """Pairs the steps of both: first equal steps, then those with the same effect, then with the same id, and last with the same name."""
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
    said = list(differences({a.op: a.said}, {b.op: b.said}, b.path[:-1]))
    if a.does == b.does:
        if said:
            what = "the same float32 constants" if b.effect is not None and b.effect[0] == ARITHMETIC else "the same by other words"
            names = dict.fromkeys(str(path[len(b.path)]) for path, _, _ in said if len(path) > len(b.path))
            old, now = (flow(_given({name: step.said[name] for name in names or step.said})) for step in (a, b))
            line = f"{a.op}: {old} → {b.op}: {now}" if a.op != b.op else f"{old} → {now}"
            yield Change("nothing", b.path, line, what)
    elif said:
        for path, before, after in said:
            effect = "the examples that it reaches, or how, differ" if path[-1] == "when" else "what it does to them differs"
            yield Change("numbers", path, f"{before} → {after}", effect, "" if path[-1] == "when" else b.reach)
    else:
        yield Change("numbers", b.path, "the same words, for other values", "what comes before makes it do something else", b.reach)
    if a.id != b.id and a.draws and b.draws:
        taker = next((step for step in new if step.id == a.id), None)
        other = f", with another `id` for the `{taker.op}` that is {a} now" if taker is not None else ""
        effect = f"its draws differ; `id: {in_words(a.id)}` keeps them{other}"
        yield Change("numbers", b.path, f"its id was {a}, and is {b}", effect, b.reach)


def _longest_rise(numbers: list[int]) -> set[int]:
    """Finds a longest increasing subsequence by patience sorting, which keeps the least end of each length and its predecessor."""
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


def _unpaired(step: Step, shifts: bool, *, is_new: bool) -> Change:
    """The change about a step that only one spec has; `shifts` if the ids of other steps of its name differ, too."""
    if step.effect is None:
        return Change("nothing", step.path, "it is written out" if is_new else "it is no longer written out", "it is the default")
    text, effect = ("it is new", "one more step acts") if is_new else (GONE, "it acts no more")
    kept = "; no other step's draws move" if step.draws and not shifts else ""
    return Change("numbers", step.path, text, f"{effect}{kept}", step.reach)


_FLOATS = ("float32", "float16", "bfloat16")
_WITH_STEPS_OF_THEIR_OWN = ("views", "stages", "inner")  # sections whose steps act on the result of the run
_SAID = "the same float32 constants; the spec hash differs, so a saved position does not fit"


def fold_runs(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[Change]]:
    """Folds the arithmetic at the end of both meanings to one step if the results are equal; also returns a change about it.

    The values in between have to be float32, and the result must not be rounded to whole numbers afterwards; see `fold_constants`.
    """
    runs = [_last_run(side) for side in (a, b)]
    if not all(runs) or any(name in side for side in (a, b) for name in _WITH_STEPS_OF_THEIR_OWN):
        return a, b, []
    if [a["effects"][i] for i in runs[0]] == [b["effects"][i] for i in runs[1]]:
        return a, b, []
    sides = list(zip((a, b), runs, strict=True))
    whole, other = (_whole(side["effects"], run) for side, run in sides)
    if whole is None or whole != other:
        return a, b, []
    steps = [[side["transforms"][place] for place in run] for side, run in sides]
    old, new = (", ".join(f"{op}: {flow(_given(said))}" for op, said, _ in run) for run in steps)
    folded = []
    for side, run in sides:
        kept = [place for place in range(len(side["effects"])) if place not in run]
        added = {"transforms": steps[1][-1], "effects": whole}
        folded.append({**side, **{key: [*(side[key][place] for place in kept), one] for key, one in added.items()}})
    path = ("transforms", runs[1][0], steps[1][0][0])
    return folded[0], folded[1], [Change("nothing", path, f"{old} → {new}", _SAID)]


def _last_run(side: dict[str, Any]) -> list[int]:
    """Finds the arithmetic steps of one reach at the end of the steps; none if the output is rounded."""
    if side["output"].get("dtype") not in (None, *_FLOATS):
        return []
    found: list[int] = []
    effects: list[Effect | None] = side["effects"]
    for place, effect in reversed([*enumerate(effects)]):
        if effect is None:
            continue
        if effect[0] != ARITHMETIC or (found and _reach(effect) != _reach(effects[found[0]])):
            break
        found.insert(0, place)
    return found


def _reach(effect: Effect | None) -> tuple[Any, list[str]]:
    return (effect[1]["when"], sorted(effect[1]["features"])) if effect is not None else (None, [])


def _whole(effects: list[Effect | None], run: list[int]) -> Effect | None:
    """The effect of a run as one step; `None` if it cannot be folded."""
    steps = [effect for effect in (effects[place] for place in run) if effect is not None]
    features: dict[str, list[Any]] = {}
    for name, constants in steps[-1][1]["features"].items():
        *folded, ends = constants
        if not len(run) <= len(folded) <= LONGEST_RUN:
            return None
        between = [step[1]["features"][name][0][2] for step in steps[:-1]]
        last = folded[len(run) - 1]
        if any(dtype != "float32" for dtype in between) or last[2] not in _FLOATS:
            return None
        alike = [numbers[:1] if len(set(numbers)) == 1 else numbers for numbers in last[:2]]  # one number for all channels
        features[name] = [[*alike, *last[2:]], ends]
    return [ARITHMETIC, {"when": steps[-1][1]["when"], "features": features}, None, False]


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
