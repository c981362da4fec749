"""The loader: from a spec's text, file or mapping to a `PipelineSpec`, with all findings in one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, FullError, Label
from pipegen.frozen import dataclass
from pipegen.spec.allowed import NOTHING, Allowed, granted
from pipegen.spec.drafts import Draft
from pipegen.spec.extends import Files, follow, merge, read_bytes, read_file, read_text
from pipegen.spec.locate import Locator, Place
from pipegen.spec.models import PipelineSpec, Stretch, TrainingStage
from pipegen.spec.overrides import Outside, lay_over, plain
from pipegen.spec.params import Given, Params, Substitution
from pipegen.spec.places import make_absolute
from pipegen.spec.sections import build
from pipegen.spec.shared_bases import GitFile
from pipegen.spec.short_forms import read_classes, share_common, told_once
from pipegen.spec.source_map import KeyPath, SourceMap, Tree, format_path
from pipegen.spec.trust import check_trust

SHARED: tuple[KeyPath, ...] = (("source",), ("splits",), ("seed",), ("errors", "exclude"), ("errors", "missing"), ("sampling", "subset"))
"""The settings that all stages share: the records, their splits, and the seed of order and draws."""
_SIZE: KeyPath = ("batch", "size")


def with_batch(tree: Tree, stage: TrainingStage, number: int, locate: Locator) -> None:
    """Replaces the batch size of the spec by that of a stage, with its place."""
    if stage.batch is None:
        return
    given = tree.value.get("batch")
    tree.value["batch"] = {**(given if isinstance(given, dict) else {}), "size": stage.batch}
    for path in [path for path in locate.outside if path[:2] == _SIZE]:
        del locate.outside[path]
    at: KeyPath = ("stages", number, "batch")
    for spans in (tree.spans.values, tree.spans.keys):
        if at in spans:
            spans[_SIZE] = spans[at]
            spans.setdefault(_SIZE[:1], spans[at])


def beyond_reach(stage: TrainingStage, number: int, locate: Locator) -> Iterable[Diagnostic]:
    """Finds params of a stage that change a setting that all stages share."""
    help_ = "leave it out here, or train with a spec of its own: the stages share one set of records in one order"
    for name in stage.params:
        used = (path for path, filled in locate.filled.items() if any(one.name == name for one in filled))
        reached = next(((path, shared) for path in used for shared in SHARED if path[: len(shared)] == shared), None)
        if reached is not None:
            places = locate.label(("stages", number, "params", name), key=True), locate.label(reached[0], "used here")
            message = f"the param `{name}` changes `{format_path(reached[1])}`, which all stages share"
            yield make("PG560", message, *places, help=help_)


def of_stage(found: Iterable[Diagnostic], known: Iterable[Diagnostic], number: int, locate: Locator) -> list[Diagnostic]:
    """The findings that only a stage has, each with the place of the stage."""
    said = {(d.code, d.message, d.span) for d in known}
    here = locate.label(("stages", number), f"in stage {number}")
    own = [d for d in found if d.code != "PG107" and (d.code, d.message, d.span) not in said]
    return [d if here in d.labels else replace(d, labels=(*d.labels, here)) for d in own]


_NOTHING: Mapping[str, Any] = {}
_MOST = 1000  # findings after which the loader stops, as a damaged or hostile file could have any number


@dataclass(slots=True)
class Loaded:
    """The outcome of loading a spec."""

    spec: PipelineSpec | None  # the spec with every default filled in; `None` if there are errors
    draft: Draft | None  # the valid part of a spec with errors, if any
    diagnostics: Diagnostics  # all findings
    locate: Locator  # the places of values
    base: Path  # the absolute folder of the spec's file, or the working directory
    file: str | None  # the name of the file in findings; `None` for a mapping
    raw: dict[str, Any]  # the plain values with merged bases, filled-in params and absolute paths
    texts: dict[str, str] = field(default_factory=dict)  # the texts of all files that were read, by their names in findings
    stages: tuple[Loaded, ...] = ()  # the spec in each stage of training, if it has no errors
    written: dict[str, Any] = field(default_factory=dict)  # the plain values before params were filled in, of a spec with stages
    allowed: Allowed = NOTHING  # the permissions given by the caller


def load(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    params: Mapping[str, Any] = _NOTHING,
    overrides: Mapping[str, Any] = _NOTHING,
    overrides_from: str = "overrides=",
    runtime: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    text: str | bytes | None = None,
    git: Callable[[GitFile, int], bytes] | None = None,
    allowed: Allowed = NOTHING,
) -> Loaded:
    """Loads a spec.

    Args:
        source: A path, or a mapping of the same shape; with `text`, the name in findings.
        params: Values for the spec's params, called `params=` in findings; texts are converted to the declared types.
        overrides: Values for params, or for anything else by its path, such as `batch.size`.
        overrides_from: The name of `overrides` in findings: `overrides=` or `--set`.
        runtime: Settings merged over the `runtime` section.
        env: The environment, by default that of the process.
        text: The spec's text, if it is not read from a file, for example standard input.
        git: The reader of bases from git, by default the nearest lock.
        allowed: The permissions given by the caller, beside those of the command line.

    Returns:
        The spec and all findings; an invalid spec raises nothing.
    """
    out = Diagnostics(most=_MOST)
    files = Files(git=git)
    cwd = Path.cwd()
    file = None if isinstance(source, Mapping) else os.fspath(source)
    named = file is not None and file != "-" and not file.startswith("<")
    base = Path(os.path.abspath(file)).parent if file is not None and named else cwd
    allowed = allowed | granted()
    nothing = Loaded(None, None, out, Locator(SourceMap(), files, cwd), base, file, {}, files.texts)
    try:
        tree = _read(source, file, text, base, files, out)
        if tree is None:
            return nothing
        tree = follow(tree, base, file if named else None, files, out)
        given, paths = _outside(tree, Outside(params, "params="), Outside(overrides, overrides_from))
        locate = Locator(tree.spans, files, cwd)
        lay_over(tree, paths, locate, out)
        section = Params(locate, cwd, given, os.environ if env is None else env, out, tree.partial, allowed)
        section.evaluate(tree.value.get("params"))
        common = share_common(tree, locate, Place(locate, (), out))
        written = _copied(tree, locate) if "stages" in tree.value else None
        built = _built(tree, section, runtime, nothing)
        told_once(out, common)
        if built is None:
            return nothing
    except FullError:
        out.most = None
        out.add(make("PG003", f"more than {_MOST:,} findings: the rest of the spec was not checked", Label(None, path=file or "the spec")))
        return nothing
    tree, draft = built
    spec = draft.spec if draft is not None and not out.has_errors else None
    found = Loaded(spec, None, out, locate, base, file, tree.value, files.texts, allowed=allowed)
    if spec is not None and written is not None:
        found.stages = _stages(spec, *written, section, runtime, found)
        found.spec = spec = spec if not out.has_errors else None
    found.draft = draft if spec is None else None
    found.written = written[0].value if written is not None else {}
    return found


def _copied(tree: Tree, locate: Locator) -> tuple[Tree, Locator]:
    """Copies a spec with its places, before params are filled in."""
    spans = SourceMap(dict(tree.spans.values), dict(tree.spans.keys))
    known = Locator(spans, locate.files, locate.base, outside=dict(locate.outside))
    return Tree(deepcopy(tree.value), spans, dict(tree.odd_keys), tree.partial), known


def _built(
    tree: Tree, section: Params, runtime: Mapping[str, Any] | None, whole: Loaded, stage: tuple[TrainingStage, int] | None = None
) -> tuple[Tree, Draft | None] | None:
    """Fills values of params, `runtime=`, a stage, and absolute paths into a tree, and builds its spec; `None` if it becomes too large."""
    locate, out = section.locate, section.out
    substitution = Substitution(section.values, locate, out)
    if not substitution.apply(tree):
        return None
    if runtime:
        over = Tree({})
        over.value = {"runtime": plain(runtime, over, out, ("runtime",))}
        for key, value in over.value["runtime"].items():
            locate.lay_over(("runtime", key), f"runtime={{{key!r}: {value!r}}}")
        tree = merge(tree, over)
    if stage is not None:
        with_batch(tree, *stage, locate)
    place = Place(locate, (), out, substitution.spoiled, tree.partial)
    make_absolute(tree.value, place)
    read_classes(tree.value, place)
    locate.raw = tree.value
    check_trust(tree.value, place, whole.base, section.allowed, section.env)
    return tree, build(tree, place, whole.file, section.declared)


def _stages(
    spec: PipelineSpec, written: Tree, places: Locator, section: Params, runtime: Mapping[str, Any] | None, whole: Loaded
) -> tuple[Loaded, ...]:
    """Builds the spec of each stage; adds findings to those of the whole, unless it has them already."""
    loaded: list[Loaded] = []
    first = examples = 0
    for number, stage in enumerate(spec.stages):
        own = {name: section.in_stage(name, value, ("stages", number, "params", name)) for name, value in stage.params.items()}
        found = Diagnostics(most=_MOST)
        tree, locate = _copied(written, places)
        del tree.value["stages"]
        built = _built(tree, replace(section, locate=locate, out=found, values=section.values | own), runtime, whole, (stage, number))
        if built is None:
            whole.diagnostics.extend(found.items)
            continue
        tree, draft = built
        whole.diagnostics.extend(beyond_reach(stage, number, locate))
        whole.diagnostics.extend(of_stage(found.items, whole.diagnostics.items, number, locate))
        if draft is not None and not whole.diagnostics.has_errors:
            stage._resolved, begin = draft.spec, first
            first += stage.epochs
            draft.spec._stretch = Stretch(begin, first, examples)
            if draft.spec.epoch != "pass":
                examples += stage.epochs * draft.spec.epoch.steps * draft.spec.batch.size
            loaded.append(Loaded(draft.spec, None, found, locate, whole.base, whole.file, tree.value, whole.texts, allowed=whole.allowed))
    return tuple(loaded) if len(loaded) == len(spec.stages) else ()


def _outside(tree: Tree, params: Outside, overrides: Outside) -> tuple[dict[str, Given], Outside]:
    """Splits the values from outside into those for params and those for paths; a lone word that is not a section is a misspelt param."""
    declared = tree.value.get("params")
    names, sections = set(declared if isinstance(declared, dict) else ()), ("extends", *PipelineSpec.model_fields)
    paths = {n: v for n, v in overrides.values.items() if n not in names and (set(n) & set(".[\"'") or n in sections)}
    given = ((name, source) for source in (overrides, params) for name in source.values if source is params or name not in paths)
    return {name: (source.values[name], source.origin(name)) for name, source in given}, Outside(paths, overrides.by)


def _read(source: Any, file: str | None, text: str | bytes | None, base: Path, files: Files, out: Diagnostics) -> Tree | None:
    if isinstance(source, Mapping):
        tree = Tree({})
        tree.value = plain(source, tree, out)
        return tree
    if file is None:
        return None
    if text is None:
        return read_file(Path(file), file, files, out)
    return read_bytes(text, file, base, files, out) if isinstance(text, bytes) else read_text(text, file, base, files, out)
