"""Element → Element, sixteen examples a call.

What a decoder needs to know (what a file is, how large its image is, which window is wanted) is arithmetic on a few numbers,
but TensorFlow takes a microsecond or more for each operation however small its operands are. A call that works on several
examples does that arithmetic once, on vectors; only decoding and resizing are left to do for each. A chunk never spans two
batches. Where examples are filtered, shuffled or cached one by one, they stay apart; and so they do in a short epoch, because what
is decoded is written into the graph for each of them, and TensorFlow looks through the graph whenever an iterator is made.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from pipegen.passes.base import Note, Pass, PassContext
from pipegen.plan.nodes import Batch, Element, Plan, Read

CHUNK = 16
"""With twice as many, a call gains 1 to 2 % of an ImageNet recipe, and starting up takes 0.3 s longer."""
LONG_EPOCH = 4096
"""Examples of an epoch that makes up for the larger graph: it costs some 0.7 s at the start, and an example gains 0.1 to 0.3 ms."""


def chunk_elements(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Let the element stage work on several examples at a time, where nothing else stands before the batch."""
    before = list(takewhile(lambda node: not isinstance(node, Batch), plan.nodes[1:]))
    if not any(isinstance(n, Element) for n in before) or not all(isinstance(n, (Read, Element)) for n in before):
        return plan
    if any(isinstance(n, Read) and n.parts for n in before):
        note("what the parts of the mix do alone is done for one example at a time")
        return plan
    if context.epoch_examples is not None and context.epoch_examples < LONG_EPOCH:
        note(f"an epoch of {context.epoch_examples} examples is too short to make up for a larger graph")
        return plan
    note(f"up to {CHUNK} examples a call")
    return plan.with_nodes([replace(n, chunk=CHUNK) if isinstance(n, Element) else n for n in plan.nodes])


CHUNK_ELEMENTS = Pass("chunk_elements", "E0", "what is small is worked out for several examples at once", chunk_elements)
