"""`validate --data`: lists the data of a spec, decodes files, and reports those that cannot be read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipegen.cli.common import start_tensorflow, write_text
from pipegen.cli.failures import CannotRun
from pipegen.data.content import compared_checksums, damaged_files
from pipegen.data.event_times import late_events
from pipegen.data.manifest import Manifest
from pipegen.data.named_files import HEADERS, argument
from pipegen.data.rounding import spread
from pipegen.data.split_checks import WITHOUT_DATA
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Label, Severity
from pipegen.diagnostics.fixes import suppressed
from pipegen.phases.compilation import bind, compile_plans, findings_with_data, warnings_with_data
from pipegen.phases.data_tests import cheap_results
from pipegen.phases.memory_budget import memory_findings
from pipegen.phases.specs import BoundSpec, Inspection, Spec
from pipegen.phases.user_functions import with_functions
from pipegen.spec.compose import flow
from pipegen.spec.extends import through_chain
from pipegen.spec.load import of_stage
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.terminal import note, progress

if TYPE_CHECKING:
    from pipegen.backend.datasets.probe import Damaged


def write_exclude(file: str, section: Literal["errors", "splits"], known: Iterable[str], keys: Iterable[str], base: Path) -> None:
    """Writes a list of excluded keys: a header, those known already, and new ones.

    The `section` of the spec reads it; the spec's paths are relative to `base`. A file that does not begin with the header is replaced only
    if it lists known keys alone. Raises `CannotRun` if the file exists and is not such a list, or cannot be written."""
    known, header = set(known), HEADERS[section]
    if os.path.exists(file) and not _is_list(file, header, known):
        raise CannotRun(f"{file} exists and is not a list written by pipegen; it is unchanged", "name another file")
    listed = sorted(known | set(keys))
    write_text(file, "".join(f"{line}\n" for line in (header, *listed)).encode(errors="surrogateescape"))
    named = os.path.relpath(file, base).replace(os.sep, "/")
    names = "name" if len(listed) == 1 else "names"
    note(f"wrote {len(listed):,} {names} to {file}; exclude them with `{section}: {{exclude: {flow(named)}}}`")


def without_new_list(model: PipelineSpec, section: Literal["errors", "splits"], base: Path, target: str | None) -> PipelineSpec:
    """Removes the `exclude` of a section if it names a `target` that the command will write, and that does not exist yet."""
    own = getattr(model, section)
    named = os.path.abspath(base / own.exclude) if own.exclude is not None else ""
    if target is None or named != os.path.abspath(target) or os.path.exists(named):
        return model
    return model.model_copy(update={section: own.model_copy(update={"exclude": None})})


def _is_list(file: str, header: str, known: set[str]) -> bool:
    """Checks if a file may be replaced: it was written by pipegen, or lists only known keys."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return False
    return lines[:1] == [header] or {line for line in lines if line and not line.startswith("#")} <= known


SAMPLE = 200  # files of each split that `--data` decodes
_SHOWN = 20
_READABLE = frozenset({"PG405", "PG406", "PG407"})  # errors after which files can still be decoded
_HELP = "leave them out: `pipegen validate SPEC --data=all --write-exclude damaged.txt`, then `errors: {exclude: damaged.txt}`"


def check_data(
    inspection: Inspection, spec: Spec, sample: int | None, target: str | None = None, allowed: tuple[str, ...] = ()
) -> tuple[list[Diagnostic], str]:
    """Lists and decodes the data of a spec without errors; returns every finding, also about its text, and a phrase on what was checked.

    `sample` is the number of files of each split to decode (`None` for all), `target` the list of unreadable ones to write. The spec may
    call functions of the `allowed` modules.
    """
    from pipegen.data.collect import collect
    from pipegen.errors import SpecError

    loaded, model = spec.loaded, spec.model
    if model.source.needs_data():
        return _merge(inspection, []), "; the arrays come from `pipegen.build(data=)`, so they were not checked"
    with progress("listing") as listed:
        listing = without_new_list(model, "errors", loaded.base, target)
        collected = collect(listing, locate=loaded.locate.label, base=loaded.base, progress=listed)
    manifest, seen, about = collected.assigned, list(collected.diagnostics.items), ""
    if manifest is not None:
        inspection = replace(inspection, diagnostics=Diagnostics([d for d in inspection.diagnostics.items if d.code not in WITHOUT_DATA]))
    if manifest is not None and collected.manifest is None:
        seen += findings_with_data(spec, manifest)
        for number, stage in enumerate(spec.stages):
            seen += of_stage(findings_with_data(stage, manifest), seen, number, stage.loaded.locate)
    is_error = any(d.severity is Severity.ERROR for d in collected.lost)
    missing = collected.missing if is_error else ()
    stops = [d for d in seen if d.severity is Severity.ERROR and d.code not in _READABLE and d not in collected.lost]
    if manifest is None or stops:
        if target is not None and missing:
            write_exclude(target, "errors", collected.excluded, missing, loaded.base)
        return _merge(inspection, seen), about
    # Empty files were counted by size; decoding names each one.
    seen = [d for d in seen if d.code != "PG406"]
    try:
        bound = bind(with_functions(spec, allowed), manifest)
        seen += [*warnings_with_data(spec, manifest), *_memory(spec, manifest)]
        tests = cheap_results(bound)
        damaged, decoded = _decode(bound, sample)
    except SpecError as error:
        return _merge(inspection, [*seen, *error.diagnostics]), about
    seen += [finding for result in tests for finding in result.findings]
    seen += _findings(model, loaded.locate.label, damaged)
    seen += late_events(model, manifest, loaded.locate.label, sample)
    if sample is None:
        for said in compared_checksums(manifest):
            note(said)
        seen += [make("PG430", text, _place(model, loaded.locate.label)) for text in damaged_files(manifest)]
    if target is not None:
        keys = (*missing, *(d.key for d in damaged))
        write_exclude(target, "errors", collected.excluded, keys, loaded.base)
    read = "rows read" if model.source.has_rows() else "files decoded"
    tested = f"; {len(tests)} of {len(model.tests)} tests run" if model.tests else ""
    return _merge(inspection, seen), f"; {decoded:,} of {sum(map(len, manifest.members.values())):,} {read}{tested}"


def _memory(spec: Spec, manifest: Manifest) -> list[Diagnostic]:
    """Checks the expected memory of the spec and of each stage of its training; raises `PG410` where caches do not fit."""
    seen: list[Diagnostic] = []
    for number, one in enumerate((spec, *spec.stages)):
        plans = bind(one, manifest).plans
        found = memory_findings(one, manifest, compile_plans(one, manifest, plans))
        seen += found if one is spec else of_stage(found, seen, number - 1, one.loaded.locate)
    return seen


def _decode(bound: BoundSpec, sample: int | None) -> tuple[list[Damaged], int]:
    """Decodes records as the pipeline does; returns the damaged ones, and the number tried."""
    start_tensorflow()
    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.datasets.probe import probe, probing_plan
    from pipegen.jpeg_damage import available

    manifest, runtime = bound.manifest, bound.spec.model.runtime
    engine = Engine(bound, {split: probing_plan(plan, runtime) for split, plan in bound.plans.items()}, verifies=sample is None)
    wanted = {split: {*spread(manifest.num_examples(split), sample)} for split in manifest.splits}
    for split in (split for split in wanted if manifest.own(split).listing.shards is None):
        own = manifest.own(split)
        wanted[split].update((own.listing.sizes[own.members[split]] == 0).nonzero()[0].tolist())  # empty files
    if not available() and any(path.lower().endswith((".jpg", ".jpeg")) for path in manifest.listing.keys):
        note("JPEG files are decoded, but not checked for damage that decoders ignore; for that: pip install 'pipegen[check]'")
    total, done = sum(map(len, wanted.values())), 0
    damaged: list[Damaged] = []
    with progress("decoding", total) as tick:
        for split, records in wanted.items():
            damaged.extend(probe(engine, split, sorted(records), partial(lambda before, n: tick(before + n), done)))
            done += len(records)
    return damaged, total


def _findings(model: PipelineSpec, locate: Locate, damaged: list[Damaged]) -> list[Diagnostic]:
    """Makes a finding for each of the first unreadable files, and one for the rest."""
    label = _place(model, locate)
    texts = [f"{d.problem.rstrip('.')} (split `{d.split}`)" for d in damaged[:_SHOWN]]
    found = [make("PG406", text, label, help=_HELP if i == 0 else ()) for i, text in enumerate(texts)]
    rest = damaged[_SHOWN:]
    if rest:
        counted = ", ".join(f"{n:,} in split `{split}`" for split, n in Counter(d.split for d in rest).items())
        found.append(make("PG406", f"{len(rest):,} more {'file' if len(rest) == 1 else 'files'} cannot be read: {counted}", label))
    return found


def _place(model: PipelineSpec, locate: Locate) -> Label:
    return locate(argument(model, "path" if "path" in type(model.source).model_fields else None), key=True)


def _merge(inspection: Inspection, seen: list[Diagnostic]) -> list[Diagnostic]:
    """Merges findings about text and data; an ignore comment is unused only if it suppresses neither."""
    kept, idle = suppressed(seen, inspection.loaded.texts)
    idle_places = {d.span for d in idle}
    merged = Diagnostics()
    merged.extend(d for d in inspection.diagnostics.items if d.code != "PG511" or d.span in idle_places)
    merged.extend(through_chain(kept, inspection.loaded.locate.files))
    return merged.sorted()
