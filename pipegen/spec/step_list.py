"""The list of steps: names and ids, which key random draws, and `transforms` as a map, which edits the steps of a base by their ids.

Steps that stay keep their ids, and so their draws: an id that would be counted differently is written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Diagnostics, Edit, Fix, Label
from pipegen.diagnostics.suggest import closest, hints
from pipegen.ops.data_test import DataTest
from pipegen.ops.registry import transforms
from pipegen.ops.transform import Transform
from pipegen.spec.compose import needs_quotes, quoted
from pipegen.spec.expect import one_of, show
from pipegen.spec.source_map import KeyPath, SourceMap, Tree, format_path, lookup


def ids_of(steps: Iterable[Transform | DataTest], above: str = "") -> tuple[str, ...]:
    """The ids of steps or tests: their own `id`, or their name with a count per name.

    `random_flip` is the first flip and `random_flip#2` the second, whatever is between them, so that inserting another kind of
    step keeps the draws. For the steps inside a step `above` is its id and a slash, as in `one_of/random_flip#2`.
    """
    return tuple(_counted(((step.op, step.id) for step in steps), above))


def _counted(named: Iterable[tuple[str, str | None]], above: str) -> Iterator[str]:
    """Yields the ids of steps with these names and their own ids."""
    seen: Counter[str] = Counter()
    for name, own in named:
        seen[name] += 1
        yield own or f"{above}{name}{'' if seen[name] == 1 else f'#{seen[name]}'}"


def every_id(steps: Sequence[Transform], path: KeyPath = (), above: str = "") -> list[tuple[KeyPath, str]]:
    """The ids of steps and of those inside them, with their paths below `transforms`."""
    found: list[tuple[KeyPath, str]] = []
    for index, (step, step_id) in enumerate(zip(steps, ids_of(steps, above), strict=True)):
        here = (*path, index, step.op)
        found.append((here, step_id))
        found += every_id(step.inner_steps(), (*here, "steps"), f"{step_id}/")
    return found


def step_hash(step_id: str) -> int:
    """The 32-bit hash of a step id in the counter of its random draws."""
    return int.from_bytes(blake2b(step_id.encode(), digest_size=4).digest(), "big")


def collisions(found: Iterable[tuple[KeyPath, str]]) -> list[tuple[tuple[KeyPath, str], tuple[KeyPath, str]]]:
    """The pairs of steps of `every_id` that would share their random draws, the earlier one first."""
    first: dict[int, tuple[KeyPath, str]] = {}
    pairs = ((first.setdefault(step_hash(step[1]), step), step) for step in found)
    return [(other, step) for other, step in pairs if other is not step]


INNER = "steps"  # the argument that holds the steps inside a step


def step_name(step: Any) -> str | None:
    """The word of a step; `None` if it is neither a word nor a map with one key."""
    if isinstance(step, dict) and len(step) == 1:
        return str(next(iter(step)))
    return step if isinstance(step, str) else None


def own_id(step: Any) -> str | None:
    """The `id` argument of a step, if any."""
    arguments = step.get(step_name(step)) if isinstance(step, dict) else None
    own = arguments.get("id") if isinstance(arguments, dict) else None
    return own if isinstance(own, str) else None


def inner_steps(step: Any) -> list[Any] | None:
    """The list of steps inside a step, if it has one."""
    arguments = step.get(step_name(step)) if isinstance(step, dict) else None
    inner = arguments.get(INNER) if isinstance(arguments, dict) else None
    return inner if isinstance(inner, list) else None


def raw_ids(steps: list[Any], above: str = "") -> list[str]:
    """The ids of steps as plain values, see `ids_of`; those inside a step begin with its id, `above`."""
    return [*_counted(((step_name(step) or "", own_id(step)) for step in steps), above)]


def arguments_of(steps: list[Any], index: int, name: str) -> dict[str, Any]:
    """The arguments of a step, to be changed in place; a word becomes a step with arguments."""
    step = steps[index]
    if not isinstance(step, dict):
        step = steps[index] = {name: {}}
    if not isinstance(step[name], dict):
        step[name] = {}
    arguments: dict[str, Any] = step[name]
    return arguments


STEPS = "transforms"
FORMS = {
    "set": "{ID: {probability: 0.5}}",
    "replace": "{ID: {random_flip: {axis: both}}}",
    "remove": "[ID]",
    "before": "{ID: [random_flip]}",
    "after": "{ID: [random_flip]}",
    "append": "[random_flip]",
}
"""The keys of the map, each with an example value."""

_VALUES = {"set": "maps of arguments", "replace": "steps"}
_OWN = {
    "id": "it keys the draws of the step: `replace` puts another step in its place",
    INNER: "the steps inside have ids of their own, such as `one_of/random_hue`",
}
"""Arguments that are not set, with what is done in place of that."""

V = TypeVar("V")


def is_edit(value: Any) -> bool:
    """Tests if the value of `transforms` is a map of edits, rather than of steps."""
    return isinstance(value, dict) and (any(key in FORMS for key in value) or not any(key in transforms() for key in value))


def edited(base: Tree, over: Tree, out: Diagnostics) -> Tree:
    """Applies the edits of `over`, if any, to the steps of `base`, in place; returns `over` without them."""
    if not is_edit(over.value.get(STEPS)) or not isinstance(base.value.get(STEPS), list):
        return over
    edit_steps(base, over, out)

    def without(known: dict[KeyPath, V]) -> dict[KeyPath, V]:
        return {path: what for path, what in known.items() if path[:1] != (STEPS,)}

    spans = SourceMap(without(over.spans.values), without(over.spans.keys))
    return Tree({key: value for key, value in over.value.items() if key != STEPS}, spans, without(over.odd_keys), over.partial)


def edit_steps(base: Tree, over: Tree, out: Diagnostics, by: str = "", noted: dict[KeyPath, str] | None = None) -> list[KeyPath]:
    """Edits the list of steps of `base` by the map of `over`, in place; returns the new paths of the steps of the map.

    `by` is the beginning of the messages, and `noted` are further notes by path in `base`, which move along.
    """
    wanted = _Wanted(base, over, out, by)
    moves = _Moves()
    base.value[STEPS] = _edit_list(base.value[STEPS], wanted, moves, (STEPS,), (STEPS,), "")
    moves.carry_out(base.spans.values, over.spans.values)
    moves.carry_out(base.spans.keys, over.spans.keys)
    moves.carry_out(base.odd_keys, over.odd_keys)
    moves.carry_out(noted if noted is not None else {}, {})
    for path in moves.arguments.values():
        step = base.spans.values.get(path[:-2])
        if step is not None:
            base.spans.values.setdefault(path[:-1], step)  # of a step that was a word
    for path in moves.named:
        span = base.spans.values.get(path) or base.spans.keys.get(path)
        if span is not None:
            at = (*path, step_name(lookup(base.value, path)) or "", "id")
            base.spans.values[at] = span
    return list(moves.over.values())


@dataclass(slots=True)
class _Entry:
    """A step of the base or of the map (`ours`), with its path there, and its id, once known."""

    step: Any
    path: KeyPath
    ours: bool
    id: str | None


@dataclass(slots=True)
class _Wanted:
    """The edits of a map; invalid ones are reported and left out."""

    base: Tree
    over: Tree
    out: Diagnostics
    by: str
    replaced: dict[str, _Entry] = field(default_factory=dict)  # the replacements, by the ids of the replaced steps
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)  # the arguments that are set, by the ids of their steps
    removed: dict[str, KeyPath] = field(default_factory=dict)  # the removed ids, with the paths where they are named
    beside: dict[str, dict[str, list[_Entry]]] = field(default_factory=lambda: {"before": {}, "after": {}})  # new steps, by id
    appended: list[_Entry] = field(default_factory=list)  # new steps at the end
    _ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ids = list(_every_id(self.base.value[STEPS]))
        for key, value in self.over.value[STEPS].items():
            self._read(key, value, (STEPS, key))
        for name in self.arguments:
            how = "removed" if name in self.removed else "replaced"
            gone = self.removed.get(name) or (self.replaced[name].path if name in self.replaced else None)
            if gone is not None:
                self._twice(f"`{name}` is {how}, and its arguments are set", (STEPS, "set", name), gone)

    def _read(self, key: str, value: Any, path: KeyPath) -> None:
        """Reads one kind of edits."""
        if key not in FORMS:
            self._unknown(key)
        elif key == "append":
            self.appended = self._steps(value, path)
        elif key == "remove":
            self._removals(value, path)
        elif not isinstance(value, dict):
            self._malformed(key, f"a map from ids to {_VALUES.get(key, 'lists of steps')}", value)
        else:
            for name, new in value.items():
                at = (*path, name)
                if not self._known(name, at, self._at(at, key=True)):
                    continue
                if key == "set":
                    self._set(name, new, at)
                elif key != "replace":
                    self.beside[key][name] = self._steps(new, at)
                elif name in self.removed:
                    self._twice(f"`{name}` is removed and replaced", at, self.removed[name])
                else:
                    self.replaced[name] = _Entry(new, at, True, own_id(new))

    def _removals(self, value: Any, path: KeyPath) -> None:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            self._malformed("remove", "a list of ids", value)
            return
        for i, name in enumerate(value):
            here = (*path, i)
            if not self._known(name, here, self._at(here)):
                continue
            if name in self.removed:
                self._twice(f"`{name}` is removed twice", here, self.removed[name])
            elif name in self.replaced:
                self._twice(f"`{name}` is replaced and removed", here, self.replaced[name].path)
            else:
                self.removed[name] = here

    def _set(self, name: str, value: Any, path: KeyPath) -> None:
        if not isinstance(value, dict):
            example = FORMS["set"].replace("ID", quoted(name) if needs_quotes(name) or "#" in name else name)
            self._add("PG104", f"`{format_path(path)}` is a map of arguments, got {show(value)}", self._at(path), f"such as `{example}`")
            return
        for argument, help_ in _OWN.items():
            if argument in value:
                self._add("PG104", f"`set` does not change `{argument}` of a step", self._at((*path, argument), key=True), help_)
        self.arguments[name] = {argument: new for argument, new in value.items() if argument not in _OWN}

    def _steps(self, value: Any, path: KeyPath) -> list[_Entry]:
        if isinstance(value, list):
            return [_Entry(step, (*path, i), True, own_id(step)) for i, step in enumerate(value)]
        self._add("PG104", f"`{format_path(path)}` is a list of steps, got {show(value)}", self._at(path), "begin each step with a dash")
        return []

    def _known(self, name: str, path: KeyPath, at: Label) -> bool:
        if name in self._ids or self.base.partial:  # a base that cannot be read may have it
            return name in self._ids
        near = closest(name, self._ids)
        fix = None
        if near is not None and at.span is not None:
            # The ids are those of another file, so this is only a guess.
            fix = Fix(f"write `{near}`", (Edit(at.span, quoted(near) if needs_quotes(near) else near),), Applicability.SUGGESTION)
        help_ = hints(name, self._ids, f"it has {one_of(self._ids, 'and')}" if self._ids else "it has no steps")
        base = Label(self.base.spans.values.get((STEPS,)), "the base's steps", STEPS)
        places = (at, base) if base.span is not None else (at,)
        self.out.add(make("PG121", f"{self.by}the base has no step with the id `{name}`", *places, help=help_, fix=fix))
        return False

    def _unknown(self, key: str) -> None:
        free = [known for known in FORMS if known not in self.over.value[STEPS]]
        near, help_ = closest(key, free), hints(key, free, f"the edits are {one_of(FORMS, 'and')}")
        at = self._at((STEPS, key), key=True)
        fix = Fix(f"rename `{key}` to `{near}`", (Edit(at.span, near),), Applicability.SUGGESTION) if near and at.span is not None else None
        self.out.add(make("PG102", f"{self.by}`transforms` as a map has no key `{key}`", at, help=help_, fix=fix))

    def _malformed(self, key: str, form: str, value: Any) -> None:
        named = value if isinstance(value, str) and value in self._ids else next(iter(self._ids), "ID")
        example = FORMS[key].replace("ID", quoted(named) if needs_quotes(named) or "#" in named else named)
        self._add("PG104", f"`{key}` is {form}, got {show(value)}", self._at((STEPS, key)), f"such as `{key}: {example}`")

    def _twice(self, message: str, path: KeyPath, first: KeyPath) -> None:
        self._add("PG122", message, self._at(path, key=True), "keep one of the two", self._at(first, "first here", key=True))

    def _add(self, code: str, message: str, at: Label, help_: str, *places: Label) -> None:
        self.out.add(make(code, f"{self.by}{message}", at, *places, help=(help_,)))

    def _at(self, path: KeyPath, text: str = "", *, key: bool = False) -> Label:
        keys, values = self.over.spans.keys, self.over.spans.values
        span = (keys.get(path) if key else None) or values.get(path)
        return Label(span, text, format_path(path))


@dataclass(slots=True)
class _Moves:
    """The moves of steps, by which their places follow."""

    base: dict[KeyPath, KeyPath | None] = field(default_factory=dict)  # new paths by old ones; `None` if removed
    over: dict[KeyPath, KeyPath] = field(default_factory=dict)  # the same for the steps of the map
    arguments: dict[KeyPath, KeyPath] = field(default_factory=dict)  # the same for the arguments that the map sets
    named: list[KeyPath] = field(default_factory=list)  # the paths of the steps whose ids were written out

    def carry_out(self, base: dict[KeyPath, V], over: dict[KeyPath, V]) -> None:
        """Moves the notes of `base` on its steps, and adds those of `over` on the steps of the map."""
        moved: dict[KeyPath, V] = {}
        for known, moves in ((base, self.base), (over, {**self.over, **self.arguments})):
            for path in [p for p in known if p[:1] == (STEPS,) and len(p) > 1]:
                n = next((n for n in range(len(path), 1, -1) if path[:n] in moves), None)
                to = moves[path[:n]] if n is not None else None
                if to is not None:
                    here = (*to, *path[n:])
                    moved[here] = known[path]
        for path in [p for p in base if p[:1] == (STEPS,) and len(p) > 1]:
            del base[path]
        base.update(moved)


def _edit_list(steps: list[Any], wanted: _Wanted, moves: _Moves, old: KeyPath, new: KeyPath, above: str) -> list[Any]:
    """Edits a list of steps, and the lists inside of them; its path changes from `old` to `new`."""
    entries = list(_entries(steps, wanted, old, above))
    _give_ids(entries, above)
    result: list[Any] = []
    for k, entry in enumerate(entries):
        here, name = (*new, k), step_name(entry.step)
        result.append(entry.step)
        if entry.ours:
            moves.over[entry.path] = here
            continue
        moves.base[entry.path] = here
        if entry.id in wanted.arguments and name is not None:
            arguments_of(result, k, name).update(wanted.arguments[entry.id])
            moves.arguments |= {(STEPS, "set", entry.id, argument): (*here, name, argument) for argument in wanted.arguments[entry.id]}
        inner = inner_steps(result[k])
        if inner is not None and name is not None:
            kept = _edit_list(inner, wanted, moves, (*entry.path, name, INNER), (*here, name, INNER), f"{entry.id}/")
            arguments_of(result, k, name)[INNER] = kept
    gone = {(*old, i) for i in range(len(steps))} - {entry.path for entry in entries}
    moves.base.update(dict.fromkeys(gone))
    for k, (entry, counted) in enumerate(zip(entries, raw_ids(result, above), strict=True)):
        name = step_name(entry.step)
        if entry.id not in (None, counted) and name is not None:
            arguments_of(result, k, name)["id"] = entry.id
            moves.named.append((*new, k))
    return result


def _entries(steps: list[Any], wanted: _Wanted, old: KeyPath, above: str) -> Iterator[_Entry]:
    """Yields the steps of the edited list, in order."""
    for i, (step, step_id) in enumerate(zip(steps, raw_ids(steps, above), strict=True)):
        yield from wanted.beside["before"].pop(step_id, [])
        if step_id in wanted.replaced:
            by = wanted.replaced.pop(step_id)
            # The id stays if a user chose it, or if the new step has the same name and so keeps the draws.
            stays = own_id(step) is not None or step_name(step) == step_name(by.step)
            by.id = by.id or (step_id if stays else None)
            yield by
        elif step_id not in wanted.removed:
            yield _Entry(step, (*old, i), False, step_id)
        yield from wanted.beside["after"].pop(step_id, [])
    if not above:
        yield from wanted.appended


def _give_ids(entries: list[_Entry], above: str) -> None:
    """Gives each new step without an id the first free one of its name."""
    taken = {entry.id for entry in entries}
    for entry in entries:
        name = step_name(entry.step)
        if entry.id is None and name is not None:
            number = 1
            while (step_id := f"{above}{name}{'' if number == 1 else f'#{number}'}") in taken:
                number += 1
            entry.id = step_id
            taken.add(step_id)


def _every_id(steps: list[Any], above: str = "") -> Iterator[str]:
    """Yields the ids of steps, and of those inside of them."""
    for step, step_id in zip(steps, raw_ids(steps, above), strict=True):
        yield step_id
        yield from _every_id(inner_steps(step) or [], f"{step_id}/")
