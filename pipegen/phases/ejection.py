"""Finds what of a pipeline cannot leave this process: what calls Python, and what is kept beside its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.data.places import argument
from pipegen.diagnostics.catalog import make
from pipegen.memory import ram_budget
from pipegen.mounts import content_of
from pipegen.ops.families.decoder import HEAD, Decodes, needs_whole
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan.nodes import Cache
from pipegen.spec.joined import part_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.families.decoder import DecodeTransform
    from pipegen.phases.specs import Spec
    from pipegen.plan.nodes import Plan
    from pipegen.spec.source_map import KeyPath
    from pipegen.types import ElementType

_LOOKED_AT = 2000
"""Files of a feature and a split whose formats are looked at, evenly spread; the graph itself refuses the others when it meets them."""
_BY_HAND = "or let Python stay: `pipegen eject --code` writes a page of code that calls it"
_IN_GRAPH = "records in TFRecord files or in tar files (`webdataset`) are read by the graph itself"


def ejection_findings(spec: Spec, manifest: Manifest, plans: Mapping[str, Plan]) -> list[Diagnostic]:
    """Returns what stands in the way of saving the datasets of some plans, and what stays behind, each once."""
    found: dict[tuple[str, object], Diagnostic] = {}
    for plan in plans.values():
        parts = manifest.of(plan.split)
        of_parts: list[Diagnostic] = []
        for (name, part), read in zip(parts.items(), plan.part_reads(len(parts)), strict=True):
            of_parts += [*_rows(spec, name, part, plan.split, read), *_files(spec, name, part, plan)]
        for finding in (*_steps(spec, plan), *of_parts, *_cache(spec, plan)):
            found.setdefault((finding.code, finding.primary), finding)
    replaced = replaced_records(spec)
    return [*([replaced] if replaced is not None and "train" in plans else []), *found.values()]


def replaced_records(spec: Spec) -> Diagnostic | None:
    """Returns what is wrong with a spec that lets other records take the place of damaged ones, which Python counts."""
    if spec.model.errors.skip is None:
        return None
    return make(
        "PG553",
        "`errors: {decode: {skip: …}}` counts damaged records in Python, which stays behind",
        spec.loaded.locate.label(("errors", "decode"), key=True),
        help=(
            "leave the damaged files out by name: `pipegen validate SPEC --data=all --write-exclude damaged.txt`, then "
            "`errors: {exclude: damaged.txt}`",
        ),
    )


def given_data(spec: Spec) -> Diagnostic | None:
    """Returns what is wrong with data, or batches, that a page of code cannot have which runs by itself."""
    if spec.model.source.mixed():
        place = spec.loaded.locate.label(("source", spec.model.source.op), key=True)
        message = "a page of code reads one source, and a `mix` has several, in exact shares"
        return make("PG555", message, place, help="`pipegen eject --graph` saves the datasets as they are")
    if spec.model.batch.buckets is not None:
        place = spec.loaded.locate.label(("batch", "buckets"), key=True)
        message = "a page of code stacks images of one size, and batches of buckets have several"
        return make("PG555", message, place, help="`pipegen eject --graph` saves the datasets as they are")
    if not spec.model.source.needs_data():
        return None
    place = spec.loaded.locate.label(("source", spec.model.source.op), key=True)
    help_ = "save arrays in a `.npz` file, or a table as CSV, and name its `path`; a graph takes arrays along"
    return make("PG555", "the data is handed over in Python, and a page of code cannot name it", place, help=help_)


def _by_hand(spec: Spec) -> tuple[str, ...]:
    """Returns the other way, which a mix does not have."""
    return () if spec.model.source.mixed() else (_BY_HAND,)


def _steps(spec: Spec, plan: Plan) -> Iterator[Diagnostic]:
    """Steps that call a Python function."""
    for ref in (ref for stage in plan.stages() for ref in stage.uses() if ref.step.calls_python == "always"):
        called = getattr(ref.step, "function", ref.step.op)
        yield make(
            "PG550",
            f"`{ref.step.op}` calls the Python function `{called}`, which no graph can take along",
            spec.loaded.locate.label(ref.path, key=True),
            help=("say it with steps of the language (`pipegen ops` lists them), or leave it out", *_by_hand(spec)),
        )


def source_of(spec: Spec, part: str) -> KeyPath:
    """The key path of the source, or of the part of a mix."""
    return part_path(part) if part else argument(spec.model, None)


def read_by_reader(manifest: Manifest, split: str, read: ElementType) -> list[str]:
    """Returns which features of what is read of a record the listing does not have itself, in columns."""
    columns, labels = manifest.columns(split), manifest.listing.labels
    return [name for name, t in read.items() if name not in columns and (labels is None or not kind_of(t).labels)]


def _rows(spec: Spec, part: str, manifest: Manifest, split: str, read: ElementType) -> Iterator[Diagnostic]:
    """Records that Python reads, such as rows of an array that is too large to be held; `read` is the type of what is read of one."""
    python = manifest.listing.reader(split).python(read_by_reader(manifest, split, read), ram_budget(spec.model.runtime))
    if python:
        arrays = ("an array is held by the graph where `runtime: {ram_budget: …}` has twice its size",) * spec.model.source.has_rows()
        yield make(
            "PG552",
            f"split `{split}` reads {python} by Python, which stays behind",
            spec.loaded.locate.label(source_of(spec, part), key=True),
            help=(*(arrays or (_IN_GRAPH,)), *_by_hand(spec)),
        )


def _files(spec: Spec, part: str, manifest: Manifest, plan: Plan) -> Iterator[Diagnostic]:
    """Files that TensorFlow has no decoder for, or would read otherwise."""
    if not manifest.listing.in_files or manifest.listing.shards is not None:
        return
    beside = manifest.beside(plan.split)
    for stage in (stage for stage in plan.stages() if isinstance(stage, Decodes)):
        files = beside.get(stage.feature, manifest.files(plan.split))
        some = range(0, len(files), max(1, len(files) // _LOOKED_AT))
        named = [(files[i], name) for i in some if (name := _format(files[i], stage.decode.step)) is not None]
        if named:
            many = f"at least {len(named)} files" if named[1:] else "a file"
            first = f", the first of them {named[0][0]}" if named[1:] else f": {named[0][0]}"
            yield make(
                "PG551",
                f"`{stage.feature}` of split `{plan.split}` has {many} that only Python reads ({named[0][1]}){first}",
                spec.loaded.locate.label(source_of(spec, part), key=True),
                help=("save them in a format that TensorFlow decodes: gray PNG for masks, else PNG or JPEG", *_by_hand(spec)),
            )


def _format(file: str, decoder: DecodeTransform) -> str | None:
    try:
        head = content_of(file, HEAD)
        return decoder.read_by_python(content_of(file) if needs_whole(head) else head)
    except OSError:
        return None  # reading it will say so


def _cache(spec: Spec, plan: Plan) -> Iterator[Diagnostic]:
    """A cache that the spec asks for, which holds what a run of this process has computed."""
    if spec.model.runtime.cache != "auto" and any(isinstance(node, Cache) for node in plan.nodes):
        yield make(
            "PG554",
            "the cache stays behind: the ejected datasets give the same batches and compute each of them anew",
            spec.loaded.locate.label(("runtime", "cache"), key=True),
            help=("of a split that draws nothing, such as validation, `.cache()` behind the ejected dataset keeps what it gives",),
        )
