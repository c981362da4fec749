"""Looks at the data of a spec and reports on it: `pipegen.report`. TensorFlow is not needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.data.collect import collect
from pipegen.diagnostics.diagnostic import Severity
from pipegen.diagnostics.ignore import suppressed
from pipegen.diagnostics.text import render_text
from pipegen.errors import SpecError
from pipegen.phases.compilation import load
from pipegen.quality.findings import briefly, findings
from pipegen.quality.looks import look_at
from pipegen.quality.survey import survey
from pipegen.terminal import progress as bar

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.page import Page
    from pipegen.phases.specs import Spec
    from pipegen.quality.leaks import Leaks
    from pipegen.quality.survey import Survey

_READABLE = frozenset({"PG404", "PG405", "PG406", "PG407"})
"""Errors of the data that leave it to be looked at all the same."""


@dataclass(frozen=True, eq=False)
class DataReport:
    """Holds what was seen of a spec's data.

    Attributes:
        spec: The spec.
        survey: What was seen.
        diagnostics: What was found: copies in two splits are errors or warnings, and what is odd is a note.
    """

    spec: Spec
    survey: Survey
    diagnostics: tuple[Diagnostic, ...]

    @property
    def leaks(self) -> Leaks:
        """The records that splits share, with the keys to leave out."""
        return self.survey.leaks

    @property
    def manifest(self) -> Manifest:
        """The records and their splits."""
        return self.survey.manifest

    def html(self) -> Page:
        """Makes one page of it, with pictures and without scripts; `.save(FILE)` of it writes it."""
        from pipegen.views.data_report import data_report

        return data_report(self.spec, self.survey, tuple(briefly(self.diagnostics)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file.

        Raises:
            OSError: When that does not work.
        """
        self.html().save(path)

    def __repr__(self) -> str:
        return render_text(briefly(self.diagnostics), sources=self.spec.loaded.texts).rstrip("\n") or "nothing was found"

    def _repr_html_(self) -> str:
        return self.html()._repr_html_()


def report(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Spec,
    *,
    params: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    runtime: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    allow_write: Sequence[str | os.PathLike[str]] = (),
    allow_env: Sequence[str] = (),
) -> DataReport:
    """Looks at every picture of a spec: what two splits share, what is repeated, odd, or of uneven classes.

    Pillow decodes the files, once: what was seen is kept in the folder of the spec's caches, or else in the user's cache folder.

    Args:
        spec: A path to a spec, a map with its sections, or a `pipegen.Spec`.
        params: See `load`.
        overrides: Likewise.
        runtime: Likewise.
        data: The arrays of a source that takes them from Python.
        allow_write: See `load`.
        allow_env: Likewise.

    Raises:
        SpecError: When the spec is wrong, or its data cannot be listed.
    """
    loaded = load(spec, params=params, overrides=overrides, runtime=runtime, allow_write=allow_write, allow_env=allow_env)
    return look(loaded, data=data)


def look(spec: Spec, *, data: Mapping[str, object] | None = None) -> DataReport:
    """Does what `report` does of a spec that is loaded, with bars on a terminal."""
    locate = spec.loaded.locate.label
    with bar("listing") as listed:
        collected = collect(spec.model, locate=locate, base=spec.loaded.base, progress=listed, data=data)
    manifest = collected.assigned
    wrong = [d for d in collected.diagnostics if d.severity is Severity.ERROR and d.code not in _READABLE]
    if manifest is None or wrong:
        raise SpecError(collected.diagnostics.sorted())
    with bar("looking", sum(map(manifest.num_examples, manifest.splits))) as tick:
        looks = look_at(manifest, spec.model.runtime, progress=tick)
    with bar("comparing") as tick:
        seen = survey(manifest, looks, spec.model.runtime, tick)
    found, _ = suppressed([*findings(spec.model, seen, locate), *collected.diagnostics.items], spec.loaded.texts)
    return DataReport(spec, seen, tuple(found))
