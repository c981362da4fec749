"""Writes the datasets of a spec as a page of Python: `tf.data` written out, on the lowered parts of the compiled plan."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from pipegen.backend.process import xla
from pipegen.backend.running.lowered import lowered_plan, stage_names
from pipegen.errors import InternalError, SpecError
from pipegen.ops.families.custom import CustomTransform
from pipegen.phases.ejection import given_data, replaced_records
from pipegen.physical import nodes as p
from pipegen.plan.nodes import Element
from pipegen.plan.render import stage_text
from pipegen.release import __version__
from pipegen.terminal import one_line
from pipegen.views.eject import Ejected, lowered_executor
from pipegen.whole_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.running.execute import Executor
    from pipegen.phases.specs import CompiledSpec
    from pipegen.plan.nodes import Emit
    from pipegen.plan.stages import Stage

_WIDTH = 140
_ELSEWHERE = ("params", "extends", "stages", "tests")
"""Sections that a page does without: their values are put in, or they are about training and the data, and not about batches."""
_HEAD = '''"""{name}: its datasets, written out by `pipegen eject --code` of pipegen {version}, to go on by hand.

Each line is an operation of the compiled plan. The parts come from `pipe.lowered`: the order and the draws of an epoch, reading, and each
stage by its name. `f` maps features to tensors, of one example and then of a batch: put TensorFlow of your own between any two lines.
"""

import tensorflow as tf

import pipegen

SPEC = {spec}
pipe = pipegen.build(SPEC, runtime={{"cache": "none"}}{code})
'''
_FOOT = """

if __name__ == "__main__":
    for batch in {name}_batches(epoch=0).take(1):
        print(tf.nest.map_structure(lambda t: f"{{t.dtype.name}}{{t.shape}}", batch))
"""
_PARALLEL = "tf.data.AUTOTUNE, deterministic=True"


def eject_code(
    compiled: CompiledSpec,
    engine: Engine,
    file: str | os.PathLike[str],
    splits: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> Ejected:
    """Writes the page; for the arguments see `Pipeline.eject`.

    Raises:
        SpecError: With a finding for each thing that cannot go.
        FileExistsError: When there is such a file.
        OSError: When it cannot be written.
    """
    replaced, spec = replaced_records(compiled.spec), compiled.spec
    found = [replaced] if replaced is not None and "train" in splits else []
    given = given_data(spec)
    found += [given] if given is not None else []
    if found:
        raise SpecError(found)
    text = code_page(compiled, engine, splits)
    if progress is not None:
        progress(len(splits))
    write_whole(file, text, new=True)
    return Ejected(str(file), tuple(splits))


def code_page(compiled: CompiledSpec, engine: Engine, splits: Sequence[str]) -> str:
    """Returns the page of some splits."""
    spec = compiled.spec
    raw = {key: _plain(value) for key, value in spec.loaded.raw.items() if key not in _ELSEWHERE}
    modules = sorted({step.module for step in spec.model.transforms if isinstance(step, CustomTransform)})
    head = _HEAD.format(
        name=one_line(spec.model.name or "pipeline").replace("\\", "/").replace('"', "'"),
        version=__version__,
        spec=_literal_spec(raw),
        code=f", allow_code={modules}" if modules else "",
    )
    parts = ["\n".join(_split(split, lowered_executor(compiled, engine, split))) for split in splits]
    return head + "\n\n".join(parts) + "\n" + _FOOT.format(name=_name(splits[0]))


def _literal_spec(raw: dict[str, Any]) -> str:
    """A spec as a map in Python: a line for each section, and for each step."""
    lines = []
    for key, value in raw.items():
        if isinstance(value, list) and value:
            lines += [f"    {_quoted(key)}: [", *(f"        {_literal(item)}," for item in value), "    ],"]
        else:
            lines.append(f"    {_quoted(key)}: {_literal(value)},")
    return "\n".join(["{", *lines, "}"])


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _plain(value: Any) -> Any:
    """A value of a spec as one that holds no param: a dollar is written twice."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


def _name(split: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in split)


def _split(split: str, executor: Executor) -> Iterator[str]:
    """The functions of a split, and what puts them together."""
    name, plan, names = _name(split), lowered_plan(executor), {id(stage): text for text, stage in stage_names(executor.plan)}
    count = f"{len(executor.records):,} examples, {executor.steps:,} steps of {executor.order.local_batch}"
    yield from ("", f"# {split}: {count}", f"{name} = pipe.lowered({_quoted(split)})")
    lines: list[str] = []
    kernels = 0
    for function in plan.functions:
        if isinstance(function, p.Examples):
            yield from _definition(f"{name}_example", [s for n in function.nodes if isinstance(n, Element) for s in n.stages], names, name)
        elif isinstance(function, p.Kernel):
            kernels += 1
            compiled = function.node.compiled and plan.setting.jit and xla.available()
            yield from _definition(f"{name}_kernel_{kernels}", function.node.stages, names, name, compiled=compiled)
    yield from ("", "", f"def {name}_batches(epoch, step=0):", '    """Gives what is left of an epoch from a step on."""')
    kernels = 0
    for operation in plan.operations:
        for called in operation.functions if isinstance(operation, p.Map) else (None,):
            kernels += isinstance(called, p.Kernel)
            lines += [f"    {line}" for line in _operation(name, operation, called, kernels)]
    yield from lines[:-1]
    yield lines[-1].replace("ds = ", "return ", 1)


def _definition(
    function: str, stages: Sequence[Stage], names: dict[int, str], split: str, *, compiled: bool | None = None
) -> Iterator[str]:
    """A function of features, one line a stage; of one example it reads first."""
    yield from ("", "")
    if compiled:
        yield "@tf.function(jit_compile=True, autograph=False)"
    yield f"def {function}(f):"
    if compiled is None:
        yield f"    f = {split}.read(f)"
    for stage in stages:
        text = f'    f = {split}["{names[id(stage)]}"](f)  # {one_line(stage_text(stage))}'
        yield text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1].rstrip()}…"
    yield "    return f"


def _operation(name: str, operation: p.Operation, function: p.Function | None, kernels: int) -> list[str]:
    """Writes one operation, or one function that it maps, in `tf.data`."""
    match operation, function:
        case (p.Enter(), _) | (p.Map(), p.Deliver() | p.Settle() | p.Ahead()) | (p.Prefetch(steps=True), _):
            return []
        case p.Steps(), _:
            return [f"ds = tf.data.Dataset.range(step, {name}.steps)"]
        case p.Unbatch(), _:
            return ["ds = ds.unbatch()"]
        case p.Stack(held=False), _:
            return [f"ds = ds.batch({operation.size}, drop_remainder={operation.full})"]
        case p.Prefetch(), _:
            return [f"ds = ds.prefetch({operation.batches})"]
        case p.Map(), p.Index():
            return [f"ds = ds.map(lambda number: {name}.index(epoch, number))"]
        case p.Map(), p.Examples():
            return [f"ds = ds.map({name}_example, {_PARALLEL})"]
        case p.Map(), p.Rows():
            return [f"ds = ds.map({name}.read, {_PARALLEL})"]
        case p.Map(), p.Kernel():
            return [_kernel(f"{name}_kernel_{kernels}", function)]
        case p.Map(), p.Own():
            return [f"ds = ds.map({name}.own)"]
        case p.Map(), p.Emit():
            return [f"ds = ds.map(lambda f: {_emitted(function.node, weighs=function.weighs)})"]
    raise InternalError(f"{type(function or operation).__name__} has no line of code")


def _kernel(name: str, kernel: p.Kernel) -> str:
    """Its map; text, which XLA has no type for, goes past it."""
    if all(t.dtype != "string" for _, t in kernel.entry.items()):
        return f"ds = ds.map({name}, {_PARALLEL})"
    touched = sorted({feature for stage in kernel.node.stages for feature in stage.touches()})
    return f'ds = ds.map(lambda f: f | {name}({{k: f[k] for k in f if k[0] == "@" or k in {touched}}}), {_PARALLEL})'


def _emitted(emit: Emit, *, weighs: bool) -> str:
    """The batch as the model takes it, as an expression."""
    output = emit.output
    parts = [_arranged(output.x)]
    if output.y is not None:
        parts.append(_arranged(output.y))
        weight = _feature(output.sample_weight) if output.sample_weight else ""
        if weighs:
            weight = f'tf.cast({weight}, tf.float32) * f["@weight"]' if weight else 'f["@weight"]'
        parts += [weight] if weight else []
    if isinstance(output.x, list) and not parts[1:]:
        return f"({parts[0]},)"  # Keras takes the second of two tensors for targets
    return f"({', '.join(parts)})" if parts[1:] else parts[0]


def _arranged(wanted: str | list[str] | dict[str, str]) -> str:
    if isinstance(wanted, str):
        return _feature(wanted)
    if isinstance(wanted, dict):
        return "{" + ", ".join(f"{_quoted(key)}: {_feature(name)}" for key, name in wanted.items()) + "}"
    return f"({', '.join(map(_feature, wanted))}{',' * (len(wanted) == 1)})"


def _feature(name: str) -> str:
    return f"f[{_quoted(name)}]"


def _quoted(text: str) -> str:
    """A text as Python that has double quotes."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
