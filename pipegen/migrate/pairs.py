"""Images and masks from two iterators joined by `zip`: one source for both, and one split in place of the `zip`."""

from __future__ import annotations

import ast
import posixpath
import re

from pipegen.frozen import dataclass
from pipegen.migrate.calling import hands_on, passing_loop
from pipegen.migrate.homes import of_function
from pipegen.migrate.interpret import Collected, Use
from pipegen.migrate.known import certain, same
from pipegen.migrate.labels import folder_below
from pipegen.migrate.model_calls import edit_model_call
from pipegen.migrate.nodes import Function, end, flattened, start
from pipegen.migrate.removal import is_read_elsewhere
from pipegen.migrate.uses import UseEdits, access, is_dropped
from pipegen.migrate.values import Const, Flow, Generator, Unknown, Zipped

_MASKS = re.compile(r"mask|annot|segm|(?:^|[^a-z])(?:label|gt(?:[^a-z]|$)|seg(?:[^a-z]|$))")  # names of iterators and folders of masks
_ALIKE = ("target_size", "batch_size", "seed", "shuffle", "subset")
_VALUES = ("rescale", "preprocessing_function", "dtype")
"""Arguments that may differ between images and masks, since they change values and not positions."""


@dataclass(frozen=True, eq=False)
class Pair:
    """The iterators of images and of their masks, and what joins them."""

    image: Flow
    mask: Flow
    zipped: Zipped


def pairs_of(found: Collected) -> list[Pair]:
    """Pairs of an image's and a mask's iterator with equal geometry; none for two images, of which neither is known to be a mask."""
    pairs = []
    for zipped in found.pairs:
        a, b = zipped.flows
        a_is, b_is = _is_mask(found, a, b), _is_mask(found, b, a)
        if a_is != b_is and _move_together(a, b):
            pairs.append(Pair(b, a, zipped) if a_is else Pair(a, b, zipped))
    return pairs


def _move_together(a: Flow, b: Flow) -> bool:
    """True if two iterators without labels draw the same numbers for their images."""
    if any(f.method != "flow_from_directory" or "**" in f.args or "class_mode" not in f.args for f in (a, b)):
        return False
    if any(f.known("class_mode") is not None or folder_of(f) is None for f in (a, b)):
        return False
    if a.get("seed") is None or any(not _equal(a, b, n) for n in _ALIKE):
        return False
    one, other = a.generator, b.generator
    if not isinstance(one, Generator) or not isinstance(other, Generator) or one.classes or other.classes:
        return False
    names = {*one.args, *other.args} - set(_VALUES)
    return "**" not in names and all(_equal(one, other, n) for n in names)


def _equal(a: Flow | Generator, b: Flow | Generator, name: str) -> bool:
    return same(a.argument(name) or Const(None), b.argument(name) or Const(None)) and not isinstance(a.known(name), Unknown)


def _is_mask(found: Collected, flow: Flow, other: Flow) -> bool:
    """True if an iterator, or a folder that it does not share with the other, is named like one of masks."""
    own, others = ((folder_of(f) or "").lower().split("/") for f in (flow, other))
    words = [found.name_of(flow).lower(), *(part for part in own if part not in others)]
    return any(_MASKS.search(word) for word in words)


def folder_of(flow: Flow) -> str | None:
    """Folder whose files an iterator without labels reads, if known."""
    folder, below = flow.known("directory"), folder_below(flow)
    if not isinstance(folder, str) or not folder or below is None:
        return None
    return posixpath.join(folder, below) if below else folder


_COUNTS = ("samples", "n", "batch_size", "target_size")  # members of an iterator of images that its pairs have, too


def edit_pair(edits: UseEdits, zipped: Zipped) -> None:
    """Replaces two iterators and their `zip` by a split, and edits its uses."""
    text = edits.edits
    split = access(edits.pipe, edits.split)
    text.replace(zipped.node, split)
    for flow in zipped.flows:
        statement = edits.found.statements.get(id(flow))
        if statement is not None:
            text.delete(statement[0])
        for use in edits.found.uses_of(flow):
            if use.kind == "member":
                edits.edit(use)
            elif use.kind == "len":
                text.replace(use.node, split)
    uses = edits.found.uses_of(zipped)
    for use in sorted(uses, key=lambda u: u.kind == "model"):  # last, since their arguments include edited parts
        _edit_use(edits, use, split)


def _edit_use(edits: UseEdits, use: Use, split: str) -> None:
    whole = passes_on(use)
    given = split if use.node is use.of.node else edits.edits.source(use.node)
    if use.kind == "model":
        call = next(c for c in edits.found.calls if c.node is use.outer)
        edit_model_call(edits.edits, call, edits.found.evaluator, edits.findings, {})
    elif isinstance(whole, ast.GeneratorExp):
        around = (n for n in ast.walk(edits.edits.tree) if isinstance(n, ast.Call) and whole in n.args)
        shares = any(end(call.func) == start(whole) for call in around)  # its brackets are those of the call
        edits.edits.replace(whole, f"({given})" if shares else given)
    elif whole is not None:
        edits.edits.replace(whole, f"return {given}")
    else:
        edits.findings.add("PG622", use.line, "a loop over the pairs was infinite; over the dataset it is one pass")


def passes_on(use: Use) -> ast.stmt | ast.GeneratorExp | None:
    """The loop or generator expression of a use that only passes the pairs on, if it is one."""
    around = use.frame.scope.node
    if isinstance(use.outer, ast.For) and isinstance(around, Function):
        last = flattened(around.body)[-1]
        return last if passing_loop(last) is use.outer else None
    if isinstance(use.outer, ast.comprehension):
        inside = (n for n in ast.walk(around) if isinstance(n, ast.GeneratorExp))
        return next((n for n in inside if n.generators[0] is use.outer and hands_on(n, use.outer)), None)
    return None


def problem_of(found: Collected, zipped: Zipped, image: Flow, mask: Flow) -> str:
    """Reason why the code around a pair is not edited; empty if it is."""
    if zipped.flows != (image, mask):
        return "the masks come first in the `zip`, but second in the spec"
    if of_function(zipped.frame) is not of_function(image.frame):
        return "its iterators are joined in another function"
    if len([p for p in found.pairs if p.node is zipped.node]) > 1:
        return "one line joins several of the iterators"
    for flow in zipped.flows:
        odd = next((u for u in found.uses_of(flow) if u.outer is not zipped.node and not _counts(found, u)), None)
        if odd is not None:
            return f"an iterator of its pairs is used alone in line {odd.line}"
        if not _is_taken_out(found, flow, zipped):
            return "an iterator of its pairs is made or kept in a way that is not followed"
    uses = found.uses_of(zipped)
    served = any(u.kind == "model" or (u.kind == "loop" and passes_on(u) is None) for u in uses)
    return next(filter(None, (_of_use(found, u) for u in uses)), "" if served else "its pairs are not used in this file")


def _counts(found: Collected, use: Use) -> bool:
    """True if a use of one of the two only reads its counts, and can be edited."""
    if use.kind == "len" or is_dropped(found, use.node):
        return True
    given = use.flow.argument(use.name)
    return use.kind == "member" and use.name in _COUNTS and (given is None or not isinstance(certain(given), Unknown))


def _of_use(found: Collected, use: Use) -> str:
    if len(found.served_by(use)) > 1:
        return f"line {use.line} serves several iterators"
    if use.kind == "model" or (use.kind == "loop" and passes_on(use) is not None):
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
