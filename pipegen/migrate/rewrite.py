"""Edits the training code where the result is certain, and reports the rest with the reason."""

from __future__ import annotations

import ast
import posixpath
from dataclasses import dataclass, field, replace
from typing import cast

from pipegen.migrate import uses
from pipegen.migrate.edits import Edits
from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import Group, Pair, Written, folder_below, owner_of
from pipegen.migrate.hoisting import at_calls, exchange, unused
from pipegen.migrate.homes import branch_of, home_of, loops_around, of_function
from pipegen.migrate.interpret import Collected, Use
from pipegen.migrate.nodes import Comprehension, Function, Loop, begins_in, called, end, given_to, names_in, start, stored_in
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
    done: list[Flow] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    moved: list[ast.Call] = field(default_factory=list)  # calls of functions of the file that stand for iterators
    gone: list[Function] = field(default_factory=list)  # removed functions

    def __post_init__(self) -> None:
        self.edits = Edits(self.code.text, cast("ast.Module", self.code.tree))

    def run(self, specs: list[Written]) -> str:
        """The new code, for the groups that have a spec; what is left of it takes `ImageDataGenerator` from `pipegen.compat`."""
        for written in specs:
            self._group(written)
        if not self.done:
            return self.code.text
        Removal(self.edits, self.found, self.done, self.gone).run()
        Leftovers(self.edits, self.found, self.findings, self.done, self.names[0] if len(self.names) == 1 else "pipe").report()
        exchange_imports(self.edits, self.code.hidden())
        return self.edits.apply()

    def _group(self, written: Written) -> None:
        move = at_calls(self.found, written.group) if Refusals(written.group, self.found).reason() else None
        if move is not None:
            group, makers = move
            before = self.found.flows, self.found.uses
            exchange(self.found, written.group, group)
            if not Refusals(group, self.found).reason():
                self._edit(replace(written, group=group))
                self.moved += [flow.node for flow in group.flows]
                for function in unused(self.edits.tree, makers, self.moved):
                    self.edits.delete(function)
                    self.gone += [function]
                return
            self.found.flows, self.found.uses = before
        self._edit(written)

    def _edit(self, written: Written) -> None:
        """Edits the code of a group, or reports why it cannot."""
        group = written.group
        home = home_of(min(group.flows, key=lambda f: start(f.node)))
        left_out = Sources(group).left_out()
        problem = Refusals(group, self.found).reason()
        if problem or home is None:
            self._refuse(written, problem)
            return
        build = BuildCall(written, self.found.evaluator, self.edits, self.findings, home, left_out)
        call = build.text()
        if call is None or self._draws_again(group, call):
            self._refuse(written, build.problem if call is None else f"each round makes a new iterator {IN_LOOP}")
            return
        owner = owner_of(group, self.found)
        self.names.append(self.edits.new_name("pipe"))
        pipe = f"{owner}.{self.names[-1]}" if owner else self.names[-1]
        self.edits.before(home, f"{pipe} = {call}")
        self.done += group.flows
        for split, flow in group.parts.items():
            endless = uses.ENDLESS if uses.goes_on(self.found, flow) else ""
            own = f"{pipe}.predict_on({self._folder(flow)})" if flow in left_out else uses.access(pipe, split) + endless
            edits = uses.UseEdits(self.edits, self.found, self.findings, pipe, split, flow in left_out, own)
            if split in group.pairs:
                uses.edit_pair(edits, group.pairs[split].zipped)
                continue
            if not any(u.kind == "loop" and u.node is flow.node for u in self.found.uses_of(flow)):
                self.edits.replace(flow.node, own)
            for use in self.found.uses_of(flow):
                edits.edit(use)

    def _refuse(self, written: Written, problem: str) -> None:
        """Reports why the code of a group is not edited, and what to write."""
        group = written.group
        split = group.split_of(group.first)
        missing = next((what for what in ("arrays", "table") if problem.startswith(f"the {what} of")), "")
        where = f" where all its {missing} are there" if missing == "arrays" else " where its tables are there" if missing else ""
        instead = "both" if group.pairs else "the iterator"
        help_ = f"write `pipe = {hint(written)}`{where}, and `{uses.access('pipe', split)}` instead of {instead}"
        if IN_LOOP in problem:
            help_ = f"write `pipe = {hint(written)}` once before it, since a pipeline that is built again draws the same numbers again"
            help_ += _ONLY_THE_IMPORT
        elif problem == _IN_ANOTHER:
            help_ = f"return the pipeline as well: `pipe = {hint(written)}`, with `{uses.access('pipe', split)}` instead of {instead}"
            help_ += _ONLY_THE_IMPORT
        elif "together" in problem and not group.pairs:
            help_ = "write one spec with a feature for each of them"
        elif BY_NUMBER in problem:
            help_ = "`from pipegen.compat import ImageDataGenerator` also has batches by number, and the other code stays as it is"
        self.findings.add("PG615", min(f.line for f in group.flows), f"this code is not edited: {problem}", help_)
        for flow in Sources(group).left_out():
            folder = self._folder(flow) if "directory" in flow.args else "FOLDER"
            message = f"the {group.split_of(flow)} data of line {flow.line} is not in a spec, since it has no labels"
            self.findings.add("PG615", flow.line, message, f"write `pipe.predict_on({folder})` instead of its iterator")

    def _draws_again(self, group: Group, call: str) -> bool:
        """True if `build` would be called in each round of a loop, and each would begin with the same numbers: for the same data, or for
        single batches."""
        if not any(map(varies, group.flows)):
            return False
        function = of_function(group.first.frame).scope.node
        rounds = [(stored_in(loop), names_in(ast.parse(call, mode="eval"))) for loop in loops_around(group.first)]
        for loop in (n for n in ast.walk(self.edits.tree) if isinstance(n, Loop) and isinstance(function, Function)):
            counts = isinstance(loop, ast.For) and called(loop.iter) == "range"
            bound = stored_in(loop) - (stored_in(loop.target) if counts and isinstance(loop, ast.For) else set())
            inside = (n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Call))
            rounds += [(bound, names_in(*given_to(n))) for n in inside if called(n) == getattr(function, "name", "")]
        drawn = any(u.is_next or u.is_first for f in group.flows for u in self.found.uses_of(f))
        return any(drawn or not bound & read for bound, read in rounds)

    def _folder(self, flow: Flow) -> str:
        """Folder of an iterator without labels, as an expression."""
        node, below = flow.args["directory"].node, folder_below(flow)
        known = certain(flow.argument("directory"))
        if not below:
            within = any(n is node for n in ast.walk(flow.node))  # else it is the name of a parameter where the iterator was made
            return self.edits.source(node) if within or not isinstance(known, str) else repr(str(known))
        return repr(posixpath.join(known, below)) if isinstance(known, str) else f"os.path.join({self.edits.source(node)}, {below!r})"


BY_NUMBER = "by number"  # reason for batches that are not taken in order
IN_LOOP = "in a loop"  # reason for iterators that are made again and again
_IN_ANOTHER = "its members are used in another function"
_ONLY_THE_IMPORT = "; or only change the import: `from pipegen.compat import ImageDataGenerator`"


@dataclass
class Refusals:
    """Checks one group."""

    group: Group
    found: Collected

    def reason(self) -> str:
        """Reason why the group's code is not edited; empty if it is."""
        flows = self.group.flows
        which = "the iterator is made" if len(flows) == 1 else "an iterator is made"
        functions = [of_function(f.frame) for f in flows]
        if any(isinstance(f.scope.node, ast.Lambda) for f in functions):
            return f"{which} by a lambda"
        if any(isinstance(f.frame.scope.node, Comprehension) or loops_around(f) != loops_around(flows[0]) for f in flows):
            return f"{which} {IN_LOOP}"
        block = branch_of(min(flows, key=lambda f: start(f.node)))
        if any(home_of(f) is None for f in flows) or not all(self._stays(f, block) for f in flows):
            return f"{which} in a branch"
        if not self.group.pairs and any(self.found.is_paired(f) for f in flows):
            return "its iterators are advanced together, and must stay aligned"
        if any(id(f.node) in self.found.shared for f in flows):
            return "one line makes several of the iterators"
        if any(function is not functions[0] for function in functions):
            return "its iterators are made in several functions"
        return self._of_left_out() or self._of_generators() or self._of_uses()

    def _stays(self, flow: Flow, block: list[ast.stmt] | None) -> bool:
        """True if an iterator made under a condition is used only there, and so is its variable."""
        own, home = branch_of(flow), home_of(flow)
        if (block is not None and not begins_in(flow.node, *block)) or own is None or home is None:
            return block is None or begins_in(flow.node, *block)
        bound = [b for name in stored_in(home) for b in of_function(flow.frame).scope.bindings.get(name, []) if b.kind != "changed"]
        alone = all(start(own[0]) <= b.after <= end(own[-1]) for b in bound)
        return alone and all(begins_in(u.node, *own) for u in self.found.uses_of(flow))

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
            return _IN_ANOTHER
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


def varies(flow: Flow) -> bool:
    """True if a new iterator gives other batches than the previous one: without a seed, shuffled or augmented."""
    drawn = isinstance(flow.generator, Generator) and any(name in flow.generator.args for name in RANDOM)
    return "seed" not in flow.args and (drawn or flow.known("shuffle") is not False)


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
