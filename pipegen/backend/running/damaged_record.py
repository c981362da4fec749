"""Finds the damaged record behind an error by running the records of the failed batch again, one by one."""

from __future__ import annotations

import re

import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.index.combined_groups import widened
from pipegen.backend.index.draws import acts
from pipegen.backend.index.order import From
from pipegen.backend.kernels.lower import apply_element
from pipegen.backend.reading.damage import NO_STAND_IN
from pipegen.backend.running.execute import Executor
from pipegen.errors import DataError
from pipegen.ops.families.decoder import Decode, Decodes, DecodeWindow
from pipegen.ops.lowering.python_calls import reason
from pipegen.ops.stage import Stage, StepRef
from pipegen.physical.extent import Position
from pipegen.plan.nodes import Read
from pipegen.types import ElementType

_FAILURES = (tf.errors.OpError, ValueError, OSError)  # errors outside a graph, where those of Python libraries are not wrapped


def explain_failure(executor: Executor, error: Exception, at: Position | None) -> Exception:
    """Translates an error of TensorFlow in the batch at a position; `None` is a derived dataset, whose guard has named the file. Returns a
    `DataError` whose first line names the file, the step, its place and the setting that would skip the file; the error itself if no record
    of the batch is at fault."""
    quarantine = executor.damage.quarantine
    if quarantine is not None and quarantine.failure is not None:  # with details of one record: a user's function may fail on all
        details = (find_problem(executor, record, 0 if at is None else at.epoch) for record in quarantine.damaged)
        problem = next(filter(None, details), None)
        more = "" if problem is None else f"; {problem.removesuffix(f'; {executor.damage.advice}')}"
        return DataError(f"{quarantine.failure}{more}")
    if at is None:
        named = re.search(r"\[pipegen: (.*)\] \[(\d+)\]", str(error)) or re.search(r"\[pipegen: (.*)\]()", str(error))
        if named is None:
            return error
        # If the record also fails in epoch 0, the message has details: a user's function may have failed.
        return DataError((find_problem(executor, int(named[2]), 0) if named[2] else None) or named[1])
    for record, cycle, occurrence, group in examples_of(executor, at):
        problem = find_problem(executor, record, cycle, occurrence, (at.epoch, group))
        if problem is not None:
            return DataError(f"{problem}; {NO_STAND_IN}" if NO_STAND_IN in str(error) else problem)
    return error


def examples_of(executor: Executor, at: Position) -> list[tuple[int, int, int, int]]:
    """Lists the records of one batch of this host, each with its cycle through the data, its occurrence there, and its group."""
    order, number, since = executor.order, tf.constant(at.step, tf.int64), From(at.origin, at.shift)
    wide = executor.wide
    slots = order.slots_of(number, since, at.epoch) if wide is None else widened(order, number, wide, since, at.epoch)[0]
    records, cycles, occurrences = order.found(at.epoch, slots, since)
    found = records, cycles, tf.zeros_like(cycles) if occurrences is None else occurrences, order.group(slots, since)
    return list(zip(*(part.numpy().tolist() for part in found), strict=True))


def find_problem(executor: Executor, record: int, cycle: int, occurrence: int = 0, group: tuple[int, int] | None = None) -> str | None:
    """Describes the damage of one record in a line; `None` if there is none. `group` is the epoch and the number of its group in it."""
    records = executor.records
    at = tf.constant(record, tf.int64)
    calendar, number = (tf.constant([n], tf.int64) for n in group or (cycle, 0))
    own = tf.constant([cycle], tf.int64), tf.constant([occurrence], tf.int64)
    draws = executor.draws(executor.tensors, at[None], *own, calendar=calendar, group=number)[0]
    features: Features = {"@record": at, "@draws": draws}
    for node in executor.nodes_of(record):
        if isinstance(node, Read):
            for name, t in node.out.items():
                try:
                    features.update(executor.tensors.read(at, ElementType(((name, t),))))
                except _FAILURES as error:
                    return f"cannot read {records.locate(record, (name,))}: {reason(error)}; {executor.damage.advice}"
            continue
        for stage in node.stages:
            try:
                apply_element(stage, features)
            except _FAILURES as error:
                path, why = records.locate(record, (_at_fault(stage, features),)), reason(error)
                ref = next((ref for ref in stage.uses() if not ref.conditional or bool(acts(ref, draws))), None)
                verb = "decode" if isinstance(stage, Decodes) else "process"
                if isinstance(stage, DecodeWindow) and "crop" in why and "exceeds" in why:
                    ref, verb = stage.crop, "crop"
                return f"cannot {verb} {path}{_place(executor, ref)}: {why}; {executor.damage.advice}"
    return None


def _at_fault(stage: Stage, features: Features) -> str:
    """Finds the feature whose file is damaged: a feature aligned with an image is compared with its size, so it may be the image's."""
    if isinstance(stage, Decode) and stage.like is not None:
        name, image = stage.like
        try:
            image.step.stored_size(features[name])
        except _FAILURES:
            return name
    return stage.feature


def _place(executor: Executor, ref: StepRef | None) -> str:
    """Formats a step and its place in brackets; "" for none."""
    return f" (step `{ref.id}`, {executor.damage.where(ref.path)})" if ref is not None else ""


def place_of_decode(executor: Executor) -> str:
    """Formats the step that decodes and its place in brackets; "" if nothing is decoded."""
    stages = (*executor.plan.part_stages(), *executor.plan.stages())
    decodes = (st.uses() for st in stages if isinstance(st, Decodes))
    return _place(executor, next(iter(next(decodes, ())), None))
