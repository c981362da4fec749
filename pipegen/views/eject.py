"""Ejecting: the compiled datasets of a spec as SavedModels that need TensorFlow alone, or as Python code."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.saved import save_dataset
from pipegen.backend.process import traced_functions
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.lowered import FORM, stage_names
from pipegen.data.manifest import Manifest
from pipegen.diagnostics.diagnostic import Diagnostic, Severity
from pipegen.errors import InternalError, SpecError
from pipegen.files import whole_place, write_whole
from pipegen.frozen import dataclass
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.stage import Stage
from pipegen.phases.compilation import read_once
from pipegen.phases.layered import ejection_findings, given_data, replaced_records
from pipegen.phases.specs import CompiledSpec
from pipegen.physical import nodes as p
from pipegen.plan.nodes import Element, Emit
from pipegen.plan.plan_text import stage_text
from pipegen.release import __version__
from pipegen.spec.source_map import with_texts
from pipegen.terminal import one_line

if TYPE_CHECKING:
    from pipegen.backend.datasets.engine import Engine


ABOUT = "datasets.json"  # the file with the content of the README for programs

_TEXT = """\
# {name}, as graphs

The datasets of spec `{spec_hash}`, compiled by pipegen {pipegen} with TensorFlow {tensorflow}. They need TensorFlow alone, and this folder
may be moved.

```python
import tensorflow as tf

{loaded}

for epoch in range(2):
    for {parts} in {first}.batches(epoch, 0):  # the epoch, and the step to begin with
        ...
```

- The epoch determines the order and the random draws, so increment it. `{first}.batches(3, 2)` starts at step 2 of epoch 3.
{moved}- A batch is the same to the bit as in pipegen, on the same version of TensorFlow and the same kind of processor.
- Nothing is cached: each epoch is computed again. For a split without random steps, such as validation, append `.cache()`.
- `{about}` has the same for programs: steps, types of a batch, classes.

| split | examples | steps | a batch |
|---|---:|---:|---|
{rows}
"""
_MOVED = '- Files are read below `{root}`. If the data has moved, pass its new folder: `{first}.batches(0, 0, "/new/folder")`.\n'
_IN_PLACE = "- The files of records are mapped into memory from their current place. If they have moved, put a link there.\n"


def readme(about: dict[str, Any]) -> str:
    """Writes the README from the content of `datasets.json`."""
    splits, root = about["splits"], about["root"]
    split = "train" if "train" in splits else next(iter(splits))
    names, classes = _variables(splits), ", ".join(map(one_line, about["class_names"]))
    rows = [f"| `{name}` | {one['examples']:,} | {one['steps']:,} | `{_typed(one['element_spec'])}` |" for name, one in splits.items()]
    text = _TEXT.format(
        name=one_line(about["name"] or "pipeline"),
        spec_hash=about["spec_hash"][:12],
        pipegen=about["pipegen"],
        tensorflow=about["tensorflow"],
        loaded="\n".join(f'{names[name]} = tf.saved_model.load("{name}")  # a folder beside this file' for name in splits),
        parts=", ".join(("x", "y", "weight")[: len(splits[split]["element_spec"].get("tuple", [None]))]),
        first=names[split],
        moved=_IN_PLACE if about["in_place"] else _MOVED.format(root=one_line(root), first=names[split]) if root else "",
        about=ABOUT,
        rows="\n".join(rows),
    )
    return text + (f"\nClasses, in the order of their indices: {classes}.\n" if classes else "")


def _variables(splits: Iterable[str]) -> dict[str, str]:
    """A variable of Python for each split, all different."""
    found: dict[str, str] = {}
    for split in splits:
        name = "".join(c if c.isalnum() else "_" for c in split)
        name = name if name.isidentifier() and not iskeyword(name) else f"split_{name}"
        while name in found.values():
            name += "_"
        found[split] = name
    return found


def _typed(spec: dict[str, Any]) -> str:
    if "tuple" in spec:
        return f"({', '.join(map(_typed, spec['tuple']))})"
    if "dict" in spec:
        return "{" + ", ".join(f"{name}: {_typed(part)}" for name, part in spec["dict"].items()) + "}"
    return f"{spec['dtype']}[{', '.join('?' if side is None else str(side) for side in spec['shape'])}]"


_NUMBERS = re.compile(r"\[\n\s*(?:\d+|null)(?:,\n\s*(?:\d+|null))*\n\s*\]")
"""Pattern of a list of numbers over several lines of JSON, such as a shape."""


@dataclass(frozen=True)
class Ejected:
    """The result of ejecting."""

    path: str  # the folder, or the file of code
    splits: tuple[str, ...]  # the splits in it
    remarks: tuple[Diagnostic, ...] = ()  # what was not written, as findings


def lowered_executor(compiled: CompiledSpec, engine: Engine, split: str) -> Executor:
    """Makes an executor of a split without a cache, which works on one example at a time up to the batch. Raises `ValueError` for batches
    of buckets."""
    plan = read_once(compiled.spec.model, compiled.plans[split], compiled.manifest)
    if plan.buckets:
        raise ValueError(f"split `{split}` has batches of buckets, which have several sizes; `lowered` makes batches of one")
    nodes = [replace(node, chunk=1) if isinstance(node, Element) else node for node in plan.nodes]
    return engine.executor_of(plan.with_nodes(nodes), split, engine.shard)


def eject_graph(compiled: CompiledSpec, engine: Engine, folder: Path, splits: Sequence[str], progress: Callable[[int], None]) -> Ejected:
    """Writes SavedModels; for the arguments and the errors see `Pipeline.eject`."""
    found = ejection_findings(compiled.spec, compiled.manifest, {split: compiled.splits[split].plan for split in splits})
    if any(finding.severity is Severity.ERROR for finding in found):
        raise SpecError(found)
    target = folder.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(errno.EEXIST, "it exists, and is not an empty folder", str(folder))
    model, manifest = compiled.spec.model, compiled.manifest
    in_place = any(reader.in_place for part in manifest.by_part().values() for reader in part.listing.readers.values())
    root = "" if in_place else data_root(manifest)
    about: dict[str, Any] = {
        "version": 1,
        "name": model.name,
        "spec_hash": compiled.spec.hash,
        "fingerprint": manifest.fingerprint,
        "pipegen": __version__,
        "tensorflow": tf.version.VERSION,
        "root": root,
        "in_place": in_place,
        "class_names": list(manifest.class_names),
        "splits": {},
    }
    with whole_place(target, new=True) as made:
        made.mkdir()
        for number, split in enumerate(splits):
            executor = engine.executor_of(read_once(model, compiled.plans[split], manifest), split, engine.shard)
            spec = save_dataset(executor, str(made / split), None if in_place else root)
            about["splits"][split] = {
                "examples": manifest.num_examples(split),
                "steps": executor.steps,
                "batch": model.batch.size,
                "shard": list(engine.shard),
                "element_spec": element_json(spec),
            }
            progress(number + 1)
        text = _NUMBERS.sub(lambda found: " ".join(found[0].split()).replace("[ ", "[").replace(" ]", "]"), json.dumps(about, indent=2))
        (made / ABOUT).write_text(f"{text}\n", encoding="utf-8")
        (made / "README.md").write_text(readme(about), encoding="utf-8", errors="surrogateescape")
    return Ejected(str(folder), tuple(splits), tuple(found))


def data_root(manifest: Manifest) -> str:
    """Finds the innermost folder that contains every file of the data; "" without one, or without files."""
    listing = manifest.listing
    if listing.location.kind != "file":
        return ""
    columns = [files.paths for files in (listing.location, *listing.beside.values())]
    # The prefix of the first and the last path in sorted order is common to all.
    folders = [os.path.dirname(file) for files in columns if len(files) for file in (min(files), max(files))]
    return os.path.commonpath(folders).removesuffix("/") if folders else ""


def element_json(spec: Any) -> Any:
    """Converts the types of a batch to JSON: `{"dtype", "shape"}` for a tensor, `{"tuple": […]}` or `{"dict": {…}}` for several."""
    if isinstance(spec, dict):
        return {"dict": {name: element_json(part) for name, part in spec.items()}}
    if isinstance(spec, (tuple, list)):
        return {"tuple": [element_json(part) for part in spec]}
    return {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}


_WIDTH = 140
_ELSEWHERE = ("params", "extends", "stages", "tests")
"""Sections that the code omits: their values are filled in, or they are about training and the data, not about batches."""
_HEAD = '''"""{name}: its datasets, written by `pipegen eject --code` of pipegen {version}, to be edited by hand.

Each line is an operation of the compiled plan. The parts come from `pipe.lowered`: the order and the draws of an epoch, reading, and each
stage by its name. `f` maps features to tensors, of one example and then of a batch: insert your own TensorFlow between any two lines.
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


def eject_code(compiled: CompiledSpec, engine: Engine, file: Path, splits: Sequence[str], progress: Callable[[int], None]) -> Ejected:
    """Writes the code; for the arguments and the errors see `Pipeline.eject`."""
    replaced = replaced_records(compiled.spec) if "train" in splits else None
    found = [finding for finding in (replaced, given_data(compiled.spec)) if finding is not None]
    if found:
        raise SpecError(found)
    spec = compiled.spec
    kept = {key: value for key, value in spec.loaded.raw.items() if key not in _ELSEWHERE}
    raw = with_texts(kept, lambda text, _: text.replace("$", "$$"))  # without params
    modules = sorted({step.module for step in spec.model.transforms if isinstance(step, CustomTransform)})
    sections = []
    for key, value in raw.items():
        items = [f"        {_literal(item)}," for item in value] if isinstance(value, list) else []
        written = "\n".join(["[", *items, "    ]"]) if items else _literal(value)
        sections.append(f"    {_quoted(key)}: {written},")
    head = _HEAD.format(
        name=one_line(spec.model.name or "pipeline").replace("\\", "/").replace('"', "'"),
        version=__version__,
        spec="\n".join(["{", *sections, "}"]),
        code=f", allow_code={modules}" if modules else "",
    )
    names = _variables(splits)
    parts = ["\n".join(_split(split, name, lowered_executor(compiled, engine, split))) for split, name in names.items()]
    progress(len(splits))
    write_whole(file, head + "\n\n".join(parts) + "\n" + _FOOT.format(name=names[splits[0]]), new=True)
    return Ejected(str(file), tuple(splits))


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _split(split: str, name: str, executor: Executor) -> Iterator[str]:
    plan, names = executor.physical(FORM), {id(stage): text for text, stage in stage_names(executor.plan)}
    count = f"{len(executor.records):,} examples, {executor.steps:,} steps of {executor.order.local_batch}"
    yield from ("", f"# {split}: {count}", f"{name} = pipe.lowered({_quoted(split)})")
    every = (function for function in plan.functions if isinstance(function, p.Kernel))
    kernels = {id(kernel): f"{name}_kernel_{number}" for number, kernel in enumerate(every, 1)}
    for function in plan.functions:
        if isinstance(function, p.Examples):
            yield from _definition(f"{name}_example", [s for n in function.nodes if isinstance(n, Element) for s in n.stages], names, name)
        elif isinstance(function, p.Kernel):
            compiled = function.node.compiled and plan.setting.jit and traced_functions.available()
            yield from _definition(kernels[id(function)], function.node.stages, names, name, compiled=compiled)
    yield from ("", "", f"def {name}_batches(epoch, step=0):", '    """Makes a dataset of an epoch from a step on."""')
    mapped = [(operation, operation.functions if isinstance(operation, p.Map) else (None,)) for operation in plan.operations]
    *lines, last = (line for operation, calls in mapped for called in calls for line in _operation(name, operation, called, kernels))
    yield from (f"    {line}" for line in lines)
    yield f"    {last.replace('ds = ', 'return ', 1)}"


def _definition(
    function: str, stages: Sequence[Stage], names: dict[int, str], split: str, *, compiled: bool | None = None
) -> Iterator[str]:
    """Writes a function of features, with a line for each stage; that of one example begins with reading."""
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


def _operation(name: str, operation: p.Operation, function: p.Function | None, kernels: Mapping[int, str]) -> list[str]:
    """Writes one operation, or one function that it maps, in `tf.data`."""
    match operation, function:
        case (p.Enter(), _) | (p.Map(), p.Deliver() | p.SetBatchSize() | p.PrefetchRemote()) | (p.Prefetch(steps=True), _):
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
            return [_kernel(kernels[id(function)], function)]
        case p.Map(), p.SliceOwnRows():
            return [f"ds = ds.map({name}.own)"]
        case p.Map(), p.Emit():
            return [f"ds = ds.map(lambda f: {_emitted(function.node, weighs=function.weighs)})"]
    raise InternalError(f"{type(function or operation).__name__} has no line of code")


def _kernel(name: str, kernel: p.Kernel) -> str:
    """Writes the map of a kernel; strings bypass it, since XLA has no strings."""
    if all(t.dtype != "string" for _, t in kernel.entry.items()):
        return f"ds = ds.map({name}, {_PARALLEL})"
    touched = sorted({feature for stage in kernel.node.stages for feature in stage.touches()})
    return f'ds = ds.map(lambda f: f | {name}({{k: f[k] for k in f if k[0] == "@" or k in {touched}}}), {_PARALLEL})'


def _emitted(emit: Emit, *, weighs: bool) -> str:
    """Writes the expression of a batch in the form that the model takes."""
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
    return json.dumps(text, ensure_ascii=not text.isprintable())
