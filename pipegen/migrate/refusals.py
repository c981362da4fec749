"""Reasons to leave the code of iterators as it is: an edit could change its meaning, or each round would draw the same numbers."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pipegen.migrate.draws import is_first, is_next
from pipegen.migrate.groups import Group
from pipegen.migrate.homes import branch_of, home_of, loop_around, of_function
from pipegen.migrate.interpret import Collected, Use
from pipegen.migrate.known import certain, origins_of
from pipegen.migrate.labels import folder_below
from pipegen.migrate.nodes import Comprehension, Function, Loop, begins_in, called, end, given_to, names_in, root_name, start, stored_in
from pipegen.migrate.pairs import problem_of
from pipegen.migrate.sources import Sources
from pipegen.migrate.steps import RANDOM
from pipegen.migrate.values import Flow, Frame, Generator, Unknown

BY_NUMBER = "by number"  # reason for batches that are not taken in order


@dataclass
class Refusals:
    """Checks one group."""

    group: Group
    found: Collected
    whole: frozenset[int] = frozenset()  # nodes that make several iterators, all of this group, and are replaced whole

    def reason(self) -> str:
        """Reason why the group's code is not edited; empty if it is."""
        flows = self.group.flows
        which = "the iterator is made" if len(flows) == 1 else "an iterator is made"
        looped = any(isinstance(f.frame.scope.node, ast.For) and id(f.node) not in self.whole for f in flows)
        if any(isinstance(of_function(f.frame).scope.node, ast.Lambda) for f in flows):
            return f"{which} by a lambda"
        if looped or any(home_of(f) is None for f in flows):
            return f"{which} in a branch or a loop"
        first = min(flows, key=lambda f: start(f.node))
        block, loop = branch_of(first), loop_around(first)
        if (block is not None and not all(begins_in(f.node, *block) for f in flows)) or not all(map(self._stays, flows)):
            return f"{which} in a branch"
        if loop is not None and not all(start(loop) <= start(f.node) <= end(loop) for f in flows):
            return "some of its iterators are made in a loop, and others outside of it"
        if not self.group.masks and any(self.found.is_paired(f) for f in flows):
            return "its iterators are advanced together, and must stay aligned"
        if any(id(f.node) in self.found.shared and id(f.node) not in self.whole for f in flows):
            return "one line makes several of the iterators"
        if any(isinstance(f.frame.scope.node, Comprehension) and id(f.node) not in self.whole for f in flows):
            return "an iterator is made in a comprehension that cannot be written out"
        if any(of_function(f.frame) is not of_function(flows[0].frame) for f in flows):
            return "its iterators are made in several functions"
        return self._of_left_out() or self._of_generators() or self._of_uses()

    def _stays(self, flow: Flow) -> bool:
        """True if an iterator made under a condition is used only there, and so is its variable."""
        block, home = branch_of(flow), home_of(flow)
        if block is None or home is None:
            return True
        bound = [b for name in stored_in(home) for b in of_function(flow.frame).scope.bindings.get(name, []) if b.kind != "changed"]
        alone = all(start(block[0]) <= b.after <= end(block[-1]) for b in bound)
        return alone and all(begins_in(u.node, *block) for u in self.found.uses_of(flow))

    def _of_left_out(self) -> str:
        left_out = Sources(self.group).left_out()
        if any(f.method != "flow_from_directory" or "directory" not in f.args for f in left_out):
            return "one of its iterators has labels, and another has none"
        if any(folder_below(f) is None or (folder_below(f) and not self._joins(f)) for f in left_out):
            return "an iterator without labels reads several folders or an unknown one"
        joined = (f for f in self.group.flows if self.group.masks and folder_below(f) and origins_of(f.argument("directory")))
        return "" if all(self._joins(f) for f in joined) else "a path is joined at run time, and `os` is not imported"

    def _joins(self, flow: Flow) -> bool:
        """True if a folder below that of an iterator can be named."""
        imports_os = [b.dotted for b in self.found.evaluator.module.scope.bindings.get("os", [])] == ["os"]
        return imports_os or isinstance(certain(flow.argument("directory")), str)

    def _of_generators(self) -> str:
        generators = [f.generator for f in self.group.flows]
        if any(isinstance(g, Unknown) for g in generators):
            return "its generator is not known"
        if any(isinstance(g, Generator) and g.classes for g in generators):
            return "its generator is a subclass of ImageDataGenerator"
        changed = any(owner is g for g in generators for owner, _, _ in self.found.assigned)
        return "its generator is changed after it was made" if changed else ""

    def _of_uses(self) -> str:
        flows = self.group.flows
        if self.group.masks:
            problems = (problem_of(self.found, zipped, self.group.parts[s], self.group.masks[s]) for s, zipped in self.group.zips.items())
            if problem := next(filter(None, problems), ""):
                return problem
        if any(_batch_of(f) != _batch_of(self.group.first) and self.found.is_drawn_from(f) for f in flows):
            return "code draws batches from one of its iterators, with another batch size than in training"
        if Sources(self.group).stray() is not None:
            return "an iterator takes a share of its data, but the spec takes all of it"
        uses = [(u, f) for f in flows for u in self.found.uses_of(f)]
        numbered = next((u for u, _ in uses if _is_by_number(u)), None)
        if numbered is not None:
            return f"line {numbered.line} takes batches {BY_NUMBER}, but a dataset gives them only in order"
        if owner_of(self.group, self.found) is None:
            return "its members are used in another function"
        several = next((u for u, _ in uses if not self._serves_alike(u)), None)
        return f"line {several.line} is used for several iterators" if several is not None else ""

    def _serves_alike(self, use: Use) -> bool:
        """True if an edit at a use is right for all iterators that reach it."""
        served = self.found.served_by(use)
        left_out = Sources(self.group).left_out()
        own = all(thing in self.group.flows and thing not in left_out for thing in served)
        return len(served) == 1 or (own and use.kind in ("model", "len", "loop", "other"))


def _is_by_number(use: Use) -> bool:
    """True if code reads an arbitrary batch of an iterator, or the rows of the last one."""
    if use.kind == "item" and isinstance(use.outer, ast.Subscript):
        return not isinstance(use.outer.slice, ast.Constant)
    return use.kind in ("member", "method") and use.name in ("index_array", "_get_batches_of_transformed_samples")


def owner_of(group: Group, found: Collected) -> str | None:
    """Owner of the pipeline, so that every use of its iterators' members can reach it. Returns an empty text if a variable suffices, `self`
    if another method of the same class uses them, `None` if neither works."""
    home = of_function(group.first.frame)
    foreign = [of_function(u.frame) for f in group.flows for u in found.uses_of(f) if u.kind in ("member", "method")]
    foreign = [frame for frame in foreign if frame is not home]
    if not foreign or home.parent is None:
        return ""
    alike = all(frame.class_frame is not None and frame.class_frame is home.class_frame and _has_self(frame) for frame in foreign)
    return "self" if alike and _has_self(home) else None


def _has_self(frame: Frame) -> bool:
    args = getattr(frame.scope.node, "args", None)
    return isinstance(args, ast.arguments) and bool(args.args) and args.args[0].arg == "self"


def _batch_of(flow: Flow) -> tuple[object, frozenset[str]] | None:
    """Batch size, and what may change it; `None` if unknown."""
    if "batch_size" not in flow.args:
        return 32, frozenset()
    known = flow.known("batch_size")
    return None if isinstance(known, Unknown) else (known, frozenset(origins_of(flow.argument("batch_size"))))


def round_of(tree: ast.Module, found: Collected, group: Group, home: ast.stmt, call: str) -> ast.stmt | None:
    """Loop whose rounds would each start with the same numbers, if `build` is called before a statement.

    `None` if the call depends on values that change between rounds, such as the rows of a fold, or if each round trains its own model.
    Single batches that rounds draw start with the same numbers even for other data.
    """
    if not any(map(varies, group.flows)):
        return None
    reads = names_in(ast.parse(call, mode="eval"))
    function = of_function(group.first.frame).scope.node
    drawn = any(is_next(u) or is_first(u) for f in group.flows for u in found.uses_of(f))
    for loop in (n for n in ast.walk(function) if isinstance(n, Loop) and begins_in(home, *n.body)):
        if drawn or not (reads & _bound(loop) or _trains_its_own(found, group, loop)):
            return loop
    if not isinstance(function, Function):
        return None
    for loop in (n for n in ast.walk(tree) if isinstance(n, Loop)):
        calls = [n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Call) and called(n) == function.name]
        counter = [] if isinstance(loop, ast.While) or called(loop.iter) not in ("range", "trange", "count") else [loop.target]
        if any(not names_in(*given_to(n)) & (_bound(loop) - names_in(*counter)) for n in calls):
            return loop
    return None


def varies(flow: Flow) -> bool:
    """True if a new iterator gives other batches than the previous one: without a seed, shuffled or augmented."""
    drawn = isinstance(flow.generator, Generator) and any(name in flow.generator.args for name in RANDOM)
    return "seed" not in flow.args and (drawn or flow.known("shuffle") is not False)


def _bound(loop: Loop) -> set[str]:
    targets = [] if isinstance(loop, ast.While) else [loop.target]
    return set().union(*map(stored_in, (*targets, *loop.body)))


def _trains_its_own(found: Collected, group: Group, loop: Loop) -> bool:
    """True if a loop makes the models that it passes the iterators to."""
    uses = [u for f in group.flows for u in found.uses_of(f)]
    trained = [u.outer.func for u in uses if u.kind == "model" and isinstance(u.outer, ast.Call)]
    return bool(trained) and len(trained) == len(uses) and all(root_name(function) in _bound(loop) for function in trained)
