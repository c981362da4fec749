"""Edits the training code where the result is certain, and reports the rest with the reason."""

from __future__ import annotations

import ast
import json
import posixpath
from dataclasses import dataclass, field, replace
from typing import cast

from pipegen.migrate import uses
from pipegen.migrate.edits import Edits
from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import Display, Group, Pair, Written, displays_of, folder_below, owner_of
from pipegen.migrate.hoisting import Hoisted, hoisted, unused
from pipegen.migrate.homes import branch_of, home_of, late_home, loop_around, of_function, waiting_name
from pipegen.migrate.interpret import Collected, Use
from pipegen.migrate.nodes import Comprehension, Function, Loop, begins_in, called, end, given_to, names_in, root_name, start, stored_in
from pipegen.migrate.reading import Code
from pipegen.migrate.removal import Leftovers, Removal, exchange_imports, is_read_elsewhere
from pipegen.migrate.sources import Sources
from pipegen.migrate.steps import RANDOM
from pipegen.migrate.values import Flow, Generator, Unknown, Zipped, certain, origins_of
from pipegen.migrate.write_spec import BuildCall, hint


@dataclass
class Rewriter:
    """Edits the code of one file."""

    code: Code
    found: Collected
    findings: Findings
    edits: Edits = field(init=False)
    draws: uses.Draws = field(init=False)
    done: list[Flow] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    moved: list[Flow] = field(default_factory=list)  # iterators that stand at calls of functions of the file
    gone: list[Function] = field(default_factory=list)  # removed functions
    compat: bool = False  # true if code remains that takes `ImageDataGenerator` from `pipegen.compat`

    def __post_init__(self) -> None:
        self.edits = Edits(self.code.text, cast("ast.Module", self.code.tree))
        self.draws = uses.Draws(self.edits, self.found)

    def run(self, specs: list[Written]) -> str:
        """The new code, for the groups that have a spec."""
        for written in specs:
            self._group(written)
        if not self.done and not self.compat:
            return self.code.text
        Removal(self.edits, self.found, self.done, self.gone).run()
        Leftovers(self.edits, self.found, self.findings, self.done, self.names[0] if len(self.names) == 1 else "pipe").report()
        exchange_imports(self.edits, self.findings, self.code.hidden(), pipegen=bool(self.done), compat=self.compat)
        return self.edits.apply()

    def _group(self, written: Written) -> None:
        move = hoisted(self.found, written.group)
        if move is not None:
            before = self.found.flows, self.found.pairs, self.found.uses
            move.apply(self.found)
            if self._edit(replace(written, group=move.group), move):
                self.moved += [new for _, new in move.moved]
                for function in unused(self.edits.tree, move.makers, [new.node for new in self.moved]):
                    self.edits.delete(function)
                    self.gone += [function]
                return
            self.found.flows, self.found.pairs, self.found.uses = before
        self._edit(written)

    def _edit(self, written: Written, move: Hoisted | None = None) -> bool:
        """Edits the code of a group. If it cannot, returns False and reports the reason, unless its iterators are moved."""
        group = written.group
        first = min(group.flows, key=lambda f: (f.node.lineno, f.node.col_offset))
        home = home_of(first)
        left_out = Sources(group).left_out()
        displays = [*displays_of(self.found, group, left_out), *(move.displays if move is not None else ())]
        problem = Refusals(group, self.found, frozenset(id(d.element) for d in displays)).reason()
        if problem or home is None:
            return self._refuse(written, problem, quiet=move is not None)
        nodes = move.nodes if move is not None else {}
        build = BuildCall(written, self.found.evaluator, self.edits, self.findings, home, left_out, nodes)
        build = self._out_of_loops(build, group)
        home, call = build.home, build.text()
        later = late_home(group.flows) if call is None and build.arrays_missing else None
        if later is not None:
            home, call = later, replace(build, home=later).text()
        if call is None:
            return self._refuse(written, build.problem, quiet=move is not None)
        loop = round_of(self.edits.tree, self.found, group, home, call)
        if loop is not None:
            return self._keep(group, loop, quiet=move is not None)
        owner = owner_of(group, self.found)
        self.names.append(self.edits.new_name("pipe"))
        pipe = f"{owner}.{self.names[-1]}" if owner else self.names[-1]
        self.edits.before(home, f"{pipe} = {call}")
        waiting = [flow for flow in group.flows if later is not None and home_of(flow) is not later]
        self.done += group.flows
        for display in displays:
            self._display(display, group, pipe)
        whole = {id(d.element) for d in displays}
        for split, flow in group.parts.items():
            fresh = f"{pipe}.predict_on({self._folder(flow)})" if flow in left_out else self._fresh(pipe, split, flow)
            own = self._of_place(flow, f"{uses.access(pipe, split)}{uses.ENDLESS}", home) or fresh
            edits = uses.UseEdits(self.edits, self.found, self.findings, pipe, split, self.draws, flow in left_out, own)
            if split in group.pairs:
                uses.edit_pair(edits, group.pairs[split].zipped)
                continue
            if flow in waiting:
                self.edits.before(home, f"{waiting_name(flow)} = {fresh}")
                self.edits.delete(cast("ast.stmt", home_of(flow)))
            elif id(flow.node) not in whole and not any(u.kind == "loop" and u.node is flow.node for u in self.found.uses_of(flow)):
                self.edits.replace(flow.node, own)
            for use in self.found.uses_of(flow):
                edits.edit(use)
        return True

    def _refuse(self, written: Written, problem: str, *, quiet: bool) -> bool:
        """Reports why the code of a group is not edited, and what to write."""
        if quiet:
            return False
        group = written.group
        split = group.split_of(group.first)
        missing = next((what for what in ("arrays", "table") if problem.startswith(f"the {what} of")), "")
        where = f" where all its {missing} are there" if missing == "arrays" else " where its tables are there" if missing else ""
        help_ = f"write `pipe = {hint(written)}`{where}, and `{uses.access('pipe', split)}` instead of the iterator"
        if group.pairs:
            help_ = help_.removesuffix("the iterator") + "both"
        elif "together" in problem:
            help_ = "write one spec with a feature for each of them"
        elif BY_NUMBER in problem:
            help_ = "`from pipegen.compat import ImageDataGenerator` also has batches by number, and the other code stays as it is"
        return self._leave(group, problem, help_)

    def _keep(self, group: Group, loop: ast.stmt, *, quiet: bool) -> bool:
        """Leaves code to `pipegen.compat` if each of its rounds would begin with the same numbers."""
        if quiet:
            return False
        self.compat = True
        problem = f"each round of the loop in line {loop.lineno} makes a new iterator"
        problem += ", but a pipeline that is built in each round would draw the same numbers again"
        help_ = "`pipegen.compat` has the class, and draws other numbers in each round, as in Keras"
        help_ += "; or build once before the loop, and loop over `pipe.train`, which counts its epochs"
        return self._leave(group, problem, help_)

    def _leave(self, group: Group, problem: str, help_: str) -> bool:
        """Reports that code is not edited, and its data that no spec reads; returns False."""
        self.findings.add("PG615", min(f.line for f in group.flows), f"this code is not edited: {problem}", help_)
        for flow in Sources(group).left_out():
            folder = self._folder(flow) if "directory" in flow.args else "FOLDER"
            message = f"the {group.split_of(flow)} data of line {flow.line} is not in a spec, since it has no labels"
            self.findings.add("PG615", flow.line, message, f"write `pipe.predict_on({folder})` instead of its iterator")
        return False

    def _display(self, display: Display, group: Group, pipe: str) -> None:
        """Writes out a comprehension, or a call in a loop, that makes iterators."""
        texts = [self._fresh(pipe, group.split_of(flow), flow) for flow in display.flows]
        text = f"({', '.join(texts)})" if display.is_tuple else f"[{', '.join(texts)}]"
        if display.keys is not None:
            keys = [json.dumps(key, ensure_ascii=False) for key in display.keys]
            text = "{" + ", ".join(f"{key}: {text}" for key, text in zip(keys, texts, strict=True)) + "}"
        if display.name:
            text = texts[0] if len(texts) == 1 else f"{text}[{display.name}]"
        self.edits.replace(display.node, text)

    def _fresh(self, pipe: str, split: str, flow: Flow) -> str:
        return uses.access(pipe, split) + (uses.ENDLESS if uses.goes_on(self.found, flow) else "")

    def _out_of_loops(self, build: BuildCall, group: Group) -> BuildCall:
        """Moves the call before the loops that draw from an iterator made in each round, if it can be made once."""
        flow = group.first
        in_place = len(group.flows) == 1 and all(u.node is flow.node and (u.is_next or u.is_first) for u in self.found.uses_of(flow))
        begins_anew = flow.known("shuffle") is False or not varies(flow)  # each round then takes the same examples, not the next ones
        for loop in uses.loops_around(flow) if in_place and self.found.uses_of(flow) and not begins_anew else ():
            outer = replace(build, home=loop)
            if outer.text() is not None:
                return outer
        return build

    def _of_place(self, flow: Flow, endless: str, home: ast.stmt) -> str:
        """Iterator in place of a call from which several rounds take batches; empty for other calls."""
        if not any(u.node is flow.node and uses.region_of(u) is not None for u in uses.going_on(self.found, flow)):
            return ""
        name = self.edits.new_name("batches")
        self.edits.before(home, f"{name} = {endless}")
        return name

    def _folder(self, flow: Flow) -> str:
        """Folder of an iterator without labels, as an expression."""
        node, below = flow.args["directory"].node, folder_below(flow)
        known = certain(flow.argument("directory"))
        if not below:
            within = any(n is node for n in ast.walk(flow.node))  # else it is the name of a parameter where the iterator was made
            return self.edits.source(node) if within or not isinstance(known, str) else repr(str(known))
        return repr(posixpath.join(known, below)) if isinstance(known, str) else f"os.path.join({self.edits.source(node)}, {below!r})"


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
        if loop is not None and not all(begins_in(f.node, loop) for f in flows):
            return "some of its iterators are made in a loop, and others outside of it"
        if not self.group.pairs and any(self.found.is_paired(f) for f in flows):
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
        joined = (f for f in self.group.flows if self.group.pairs and folder_below(f) and origins_of(f.argument("directory")))
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
        if self.group.pairs:
            problems = (problem_of(self.found, pair) for pair in self.group.pairs.values())
            if problem := next(filter(None, problems), ""):
                return problem
        if any(_batch_of(f) != _batch_of(self.group.first) and self.found.is_drawn_from(f) for f in flows):
            return "code draws batches from one of its iterators, with another batch size than in training"
        if Sources(self.group).stray() is not None:
            return "an iterator takes a share of its data, but the spec takes all of it"
        used = [u for f in flows for u in self.found.uses_of(f)]
        numbered = next(filter(_is_by_number, used), None)
        if numbered is not None:
            return f"line {numbered.line} takes batches {BY_NUMBER}, but a dataset gives them only in order"
        if owner_of(self.group, self.found) is None:
            return "its members are used in another function"
        several = next((u for u in used if not self._serves_alike(u)), None)
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
    drawn = any(u.is_next or u.is_first for f in group.flows for u in found.uses_of(f))
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
    used = [u for f in group.flows for u in found.uses_of(f)]
    trained = [u.outer.func for u in used if u.kind == "model" and isinstance(u.outer, ast.Call)]
    return bool(trained) and len(trained) == len(used) and all(root_name(function) in _bound(loop) for function in trained)


_COUNTS = ("samples", "n", "batch_size", "target_size")  # members of an iterator of images that its pairs have, too


def problem_of(found: Collected, pair: Pair) -> str:
    """Reason why the code around a pair is not edited; empty if it is."""
    zipped = pair.zipped
    if zipped.flows != (pair.image, pair.mask):
        return "the masks come first in the `zip`, but second in the spec"
    if of_function(zipped.frame) is not of_function(pair.image.frame):
        return "its iterators are joined in another function"
    if len([p for p in found.pairs if p.node is zipped.node]) > 1:
        return "one line joins several of the iterators"
    for flow in zipped.flows:
        odd = next((u for u in found.uses_of(flow) if u.outer is not zipped.node and not _counts(found, u)), None)
        if odd is not None:
            return f"an iterator of its pairs is used alone in line {odd.line}"
        if not _is_taken_out(found, flow, zipped):
            return "an iterator of its pairs is made or kept in a way that is not followed"
    used = found.uses_of(zipped)
    served = any(u.kind == "model" or (u.kind == "loop" and uses.passes_on(u) is None) for u in used)
    return next(filter(None, (_of_use(found, u) for u in used)), "" if served else "its pairs are not used in this file")


def _counts(found: Collected, use: Use) -> bool:
    """True if a use of one of the two only reads its counts, and can be edited."""
    if use.kind == "len" or uses.is_dropped(found, use.node):
        return True
    given = use.flow.argument(use.name)
    return use.kind == "member" and use.name in _COUNTS and (given is None or not isinstance(certain(given), Unknown))


def _of_use(found: Collected, use: Use) -> str:
    if len(found.served_by(use)) > 1:
        return f"line {use.line} serves several iterators"
    if use.kind == "model" or (use.kind == "loop" and uses.passes_on(use) is not None):
        return ""
    if use.kind != "loop":
        return f"the pairs are used in line {use.line} in a way that is not followed"
    frame = of_function(use.frame)
    yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(frame.scope.node))
    in_place = isinstance(use.outer, ast.For) and not (yields and frame.parent is not None)
    return "" if in_place else f"code changes or selects the pairs in line {use.line}, before the model gets them"


def _is_taken_out(found: Collected, flow: Flow, zipped: Zipped) -> bool:
    """True if an iterator is removed with its `zip`, or with its own statement, whose variable is not read elsewhere."""
    if start(zipped.node) <= start(flow.node) and end(flow.node) <= end(zipped.node):
        return True
    known = frozenset(id(u.node) for u in found.uses_of(flow))
    return id(flow) in found.statements and not is_read_elsewhere(found.evaluator, *found.statements[id(flow)], known)
