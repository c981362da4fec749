"""Work on the data of a spec other than training: `pipegen.prepare`, `pipegen.report` and `pipegen.test`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

from pipegen.api.fitting import fit
from pipegen.arguments import called_with_count, file_or_folder, got, one_of, whole
from pipegen.data.collect import collect
from pipegen.data.manifest import Manifest
from pipegen.data.testing import Chosen, choose
from pipegen.diagnostics.diagnostic import Diagnostic, Severity
from pipegen.diagnostics.fixes import suppressed
from pipegen.diagnostics.text import render_text
from pipegen.errors import DataError, OpError, SpecError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.data_test import ExampleTest, Watch
from pipegen.page import Page
from pipegen.phases.compilation import bind, collect_data, load
from pipegen.phases.data_tests import Run, begin, run_cheap, run_on_files, with_test_functions
from pipegen.phases.specs import BoundSpec, Spec
from pipegen.phases.user_functions import allowed_modules, with_functions
from pipegen.preparing.options import ENCODINGS, FORMATS, OF_RECORDS, QUALITY, Encoding, Format, Options, Prepared, not_here
from pipegen.quality.leaks import Leaks
from pipegen.quality.looks import look_at
from pipegen.quality.survey import Survey, briefly, findings, survey
from pipegen.terminal import progress as bar
from pipegen.views.data_test_report import DataTestReport

RUNNERS = ("local", "beam")


def prepare(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Spec,
    out: str | os.PathLike[str],
    *,
    format: Format = "raw",
    at: str | None = None,
    shorter_side: int | None = None,
    quality: int = QUALITY,
    encoding: Encoding | None = None,
    verify: bool = False,
    params: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    allow_code: Sequence[str] = (),
    allow_write: Sequence[str | os.PathLike[str]] = (),
    allow_env: Sequence[str] = (),
    runner: Literal["local", "beam"] = "local",
    beam_options: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Prepared:
    """Runs a spec up to its last deterministic step, stores the results, and writes a spec that reads them and runs the rest.

    Stored examples keep their splits, ids and draws. Interrupted work continues when it is called again.

    Args:
        spec: The path of a spec, a map with its sections, or a `pipegen.Spec`.
        out: The folder of the store: a new or empty one, or one of interrupted work.
        format: `raw` stores pixels as rows of bytes, which are equal to the spec's, bit for bit; `jpeg` encodes images again; `tfrecord`,
            `webdataset` and `array_record` write whole records, which other programs read, too.
        at: The name or the id of the step to stop behind; by default the last possible one.
        shorter_side: Shrink images to this shorter side first, in pixels; this changes the values computed.
        quality: JPEG quality, 1 to 100.
        encoding: The encoding of images in whole records: `original` keeps their files, `jpeg` encodes them again, and `png` does so
            without loss. The default is `original` if only decoding comes before the cut and `quality` is not given, else `jpeg`.
        verify: Check every checksum afterwards, and compare some examples with those of the spec.
        params: Values for declared params.
        overrides: Values for anything by its path.
        data: For the source `arrays`, its arrays by name.
        allow_code: Modules whose functions the spec may call.
        allow_write: Folders, besides its own and the working directory, where the spec may write files.
        allow_env: Environment variables that the spec may use anywhere, secrets included.
        runner: `beam` distributes the shards to workers of Apache Beam, which must see the data and `out` under the same paths. It needs
            `pip install 'pipegen[beam]'`.
        beam_options: Options of Beam and its runners, such as `["--runner=FlinkRunner", "--parallelism=8"]`.
        progress: Called with the number of examples done.

    Raises:
        SpecError: When the spec is wrong or cannot be prepared in this way, or the disk is too small.
        FileExistsError: When the folder contains something else.
        DataError: For a record that cannot be read, or a damaged store.
        ValueError: For options that exclude each other, and for a URL in place of a folder.
    """
    tick = called_with_count(progress)
    format = one_of("format", format, FORMATS)
    shorter_side = None if shorter_side is None else whole("shorter_side", shorter_side, 1)
    quality = whole("quality", quality, 1, 100)
    encoding = None if encoding is None else one_of("encoding", encoding, ENCODINGS)
    if encoding not in (None, "jpeg") and format not in OF_RECORDS:
        raise ValueError(f"`encoding` needs a format of whole records ({', '.join(sorted(OF_RECORDS))}), got {format}")
    options = Options(format, at, shorter_side, quality, encoding)
    folder = file_or_folder("out", out, "prepared/").absolute()
    elsewhere = not_here(os.fspath(out))
    if elsewhere is not None:
        raise ValueError(elsewhere)
    one_of("runner", runner, RUNNERS)
    if beam_options and runner != "beam":
        raise ValueError(f"`beam_options` need the runner `beam`, got {runner!r}")
    if data is not None and runner == "beam":
        raise ValueError("workers of Apache Beam read data from files; `data` needs the runner `local`")
    given = Path(spec) if isinstance(spec, str) else spec
    loaded = load(given, params=params, overrides=overrides, allow_write=allow_write, allow_env=allow_env)
    from pipegen.preparing.beam import Beam
    from pipegen.preparing.prepare import prepare as run
    from pipegen.preparing.work import listed

    on = Beam(beam_options, allow_code) if runner == "beam" else None
    return run(listed(loaded, allow_code, data), folder, options, verify=verify, runner=on, progress=tick)


_READABLE = frozenset({"PG404", "PG405", "PG406", "PG407"})  # errors after which the data can still be surveyed


@dataclass(frozen=True, eq=False)
class DataReport:
    """A survey of a spec's data.

    Attributes:
        spec: The spec.
        survey: The measurements.
        diagnostics: The findings: copies in two splits are errors or warnings, odd images are notes.
    """

    spec: Spec
    survey: Survey
    diagnostics: tuple[Diagnostic, ...]

    @property
    def leaks(self) -> Leaks:
        """The records that splits share, with the keys to exclude."""
        return self.survey.leaks

    @property
    def manifest(self) -> Manifest:
        """The records and their splits."""
        return self.survey.manifest

    def html(self) -> Page:
        """Makes an HTML page with pictures and without scripts; its `.save(FILE)` writes it."""
        from pipegen.views.data_report import data_report

        return data_report(self.spec, self.survey, tuple(briefly(self.diagnostics)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file.

        Raises:
            OSError: When the file cannot be written.
        """
        self.html().save(path)

    def __repr__(self) -> str:
        return render_text(briefly(self.diagnostics), sources=self.spec.loaded.texts).rstrip("\n") or "no findings"

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
    """Surveys every image of a spec: finds images that splits share, duplicates, odd images and uneven classes.

    Pillow decodes each file once: the measurements are stored in the cache folder of the spec, else of the user.

    Args:
        spec: A path to a spec, a map with its sections, or a `pipegen.Spec`.
        params: See `load`.
        overrides: See `load`.
        runtime: See `load`.
        data: For the source `arrays`, its arrays by name.
        allow_write: See `load`.
        allow_env: See `load`.

    Raises:
        SpecError: When the spec is wrong, or its data cannot be listed.
    """
    loaded = load(spec, params=params, overrides=overrides, runtime=runtime, allow_write=allow_write, allow_env=allow_env)
    return look(loaded, data=data)


def look(spec: Spec, *, data: Mapping[str, object] | None = None) -> DataReport:
    """Surveys the images of a loaded spec, with progress bars on a terminal; see `report`."""
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


Tick = Callable[[int], None]
Bar = Callable[[str, "int | None"], AbstractContextManager[Tick]]


def test(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Spec,
    *,
    params: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    allow_code: Sequence[str] = (),
    allow_write: Sequence[str | os.PathLike[str]] = (),
    allow_env: Sequence[str] = (),
    select: Sequence[str] = (),
    sample: int | Literal["all"] | None = None,
    progress: Callable[[int], None] | None = None,
) -> DataTestReport:
    """Runs the section `tests` of a spec on its data.

    Args:
        spec: The path of a spec, a map with its sections, or a `pipegen.Spec`.
        params: Values for declared params: `{"size": 192}`.
        overrides: Values for anything by its path: `{"tests.examples.min": 10}`.
        data: For the source `arrays`, its arrays by name, as for `build`.
        allow_code: Modules whose functions the spec may call, such as `["my_pkg"]`.
        allow_write: Folders, besides its own and the working directory, where the spec may write files.
        allow_env: Environment variables that the spec may use anywhere, secrets included.
        select: Tests to run, by their ids or kinds, with `*` as a wildcard: `["balance", "im*"]`; by default all.
        sample: The number of examples of each split for tests of values, or `all`, in place of the spec's.
        progress: Called now and then with the number of files listed so far, then with the number of examples tested.

    Returns:
        The result of each test; `report.passed` is true if all passed.

    Raises:
        SpecError: With every finding, when the spec itself or its data is wrong, so that it cannot be tested.
        ValueError: For a selection that matches no test, and a sample without examples.
        TypeError: For an argument of the wrong type.
    """
    tick = called_with_count(progress)
    if isinstance(select, str) or not isinstance(select, Sequence) or not all(isinstance(s, str) for s in select):
        raise TypeError(f'`select` is a list of tests, such as ["balance"], got {got(select)}')
    if sample is not None and sample != "all" and (not isinstance(sample, int) or isinstance(sample, bool) or sample < 1):
        raise ValueError(f"`sample` is a number of examples of 1 or more, or 'all', got {got(sample)}")
    given = Path(spec) if isinstance(spec, str) else spec
    loaded = load(given, params=params, overrides=overrides, allow_write=allow_write, allow_env=allow_env)
    allowed = allowed_modules(allow_code)
    chosen = with_test_functions(loaded, choose(loaded.model, select), allowed)
    bound = bind(with_functions(loaded, allowed), collect_data(loaded, progress, data))
    return run_tests(bound, chosen, sample, bar=lambda _title, _total: nullcontext(tick))


test.__test__ = False  # type: ignore[attr-defined] # imported by name, pytest would collect it


def run_tests(
    bound: BoundSpec, chosen: Sequence[Chosen], sample: int | Literal["all"] | None, *, bar: Bar, start: Callable[[], None] | None = None
) -> DataTestReport:
    """Runs selected tests, which have their functions, of a spec that is bound to its data.

    `sample` replaces the sample size of each test, `bar` opens a progress bar with a title and a total, and `start` is called before
    TensorFlow is needed.
    """
    run = begin(bound)
    left = run_cheap(run, chosen)
    if any(each.test.reads == "files" for each in left):
        with bar("comparing files", bound.manifest.total) as tick:
            run = begin(bound, tick, run.results)
            left = run_on_files(run, left)
    if left:
        if start is not None:
            start()
        _look_at_examples(run, left, sample, bar)
    name = bound.spec.loaded.file or bound.spec.model.name or "the spec"
    return DataTestReport(name, tuple(run.results[index] for index in sorted(run.results)), bound.spec.loaded.texts)


@dataclass
class _Watching:
    """A running test of examples, and its time."""

    chosen: Chosen
    test: ExampleTest
    watch: Watch
    splits: tuple[str, ...]
    size: int | Literal["all"]  # number of examples of each split
    seconds: float = 0.0
    error: OpError | None = None


def _look_at_examples(run: Run, chosen: Sequence[Chosen], sample: int | Literal["all"] | None, bar: Bar) -> None:
    """Passes over the examples of each split once, for all tests of examples."""
    fitted = fit(run.bound)
    from pipegen.views.drawn import Sampled

    known = run.data.known
    tests = [(each, each.test, sample or each.test.sample) for each in chosen if isinstance(each.test, ExampleTest)]
    watching = [_Watching(each, test, test.watch(known), test.splits(known.splits), size) for each, test, size in tests]
    parts = []
    for split in known.splits:
        here = [w for w in watching if split in w.splits]
        if here:
            features = tuple(dict.fromkeys(f for w in here for f in w.test.features()))
            sizes = [w.size for w in here if w.size != "all"]
            parts.append((split, here, Sampled(fitted, split, features, max(sizes) if len(sizes) == len(here) else "all")))
    done = 0
    with bar("looking at examples", sum(len(sampled) for _, _, sampled in parts)) as tick:
        for split, here, sampled in parts:
            _pass_by(run.bound.manifest, split, here, sampled, lambda n, before=done: tick(before + n))  # type: ignore[misc]
            done += len(sampled)
    for w in watching:
        run.done(w.chosen, w.error or w.watch.outcome(), w.seconds)


def _pass_by(manifest: Manifest, split: str, here: Sequence[_Watching], sampled: Any, tick: Tick) -> None:
    """Feeds the examples of a split to the tests; each gets those of its own sample."""
    from pipegen.views.drawn import sample_of

    chosen = {size: sample_of(manifest, split, size) for size in {w.size for w in here}}
    own = {size: None if places is None else manifest.numbers(split)[places] for size, places in chosen.items()}
    done, start = 0, time.perf_counter()
    try:
        for values, numbers, keys in sampled.batches():
            waited = (time.perf_counter() - start) / len(here)
            for w in here:
                begun = time.perf_counter()
                wanted = own[w.size]
                if wanted is not None:
                    rows = np.flatnonzero(np.isin(numbers, wanted))
                else:  # of very many records, the first ones are the sample
                    rows = np.arange(len(keys) if w.size == "all" else max(0, min(len(keys), w.size - done)))
                if len(rows):
                    w.watch.see(split, [values[f][rows] for f in w.test.features()], [keys[i] for i in rows.tolist()])
                w.seconds += waited + time.perf_counter() - begun
            done += len(keys)
            tick(done)
            start = time.perf_counter()
    except DataError as error:
        problem = OpError("PG722", str(error).splitlines()[0], help="`pipegen validate SPEC --data=all` finds every such file")
        for w in here:
            w.error = problem
