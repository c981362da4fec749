"""Runs the tests of a spec on its data: those that ask for values last, which alone take TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipegen.api.fitting import fit
from pipegen.arguments import called_with_count, got
from pipegen.data.testing import choose
from pipegen.errors import DataError, OpError
from pipegen.ops.testing.base import ExampleTest
from pipegen.phases.compilation import bind, collect_data, load
from pipegen.phases.data_tests import begin, run_cheap, run_on_files, with_test_functions
from pipegen.phases.functions import allowed_modules, with_functions
from pipegen.views.data_test_report import DataTestReport

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from pipegen.data.testing import Chosen
    from pipegen.ops.testing.base import Watch
    from pipegen.phases.data_tests import Run
    from pipegen.phases.specs import BoundSpec, Spec

    Tick = Callable[[int], None]
    Bar = Callable[[str, int | None], AbstractContextManager[Tick]]


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
    """Runs the tests of a spec, its section `tests`, on its data.

    Args:
        spec: The path of a spec, a map with its sections, or a `pipegen.Spec`.
        params: Values for declared params: `{"size": 192}`.
        overrides: Values for anything by its path: `{"tests.examples.min": 10}`.
        data: For the source `arrays`, its arrays by name, as for `build`.
        allow_code: Modules whose functions the spec may call, such as `["my_pkg"]`.
        allow_write: Folders that the spec may name files to write in, besides its own and the working directory.
        allow_env: Variables of the environment that the spec may use for anything, secrets among them.
        select: Tests to run, by their ids or kinds, with `*` for any letters: `["balance", "im*"]`; by default all.
        sample: How many examples of each split tests of values look at, or `all`, in place of what the spec says.
        progress: Called with the number of files listed so far, now and then; then of examples that were looked at.

    Returns:
        The result of each test; `report.passed` says whether all is well.

    Raises:
        SpecError: With every finding, when the spec itself or its data is wrong, so that it cannot be tested.
        ValueError: For a selection that no test is like, and a sample of no examples.
        TypeError: For an argument of another kind.
    """
    called_with_count("progress", progress)
    if isinstance(select, str) or not isinstance(select, Sequence) or not all(isinstance(s, str) for s in select):
        raise TypeError(f'`select` is a list of tests, such as ["balance"], got {got(select)}')
    if sample is not None and sample != "all" and (not isinstance(sample, int) or isinstance(sample, bool) or sample < 1):
        raise ValueError(f"`sample` is a number of examples of 1 or more, or 'all', got {got(sample)}")
    given = Path(spec) if isinstance(spec, str) else spec
    loaded = load(given, params=params, overrides=overrides, allow_write=allow_write, allow_env=allow_env)
    allowed = allowed_modules(allow_code)
    chosen = with_test_functions(loaded, choose(loaded.model, select), allowed)
    tick = progress or (lambda _done: None)
    bound = bind(with_functions(loaded, allowed), collect_data(loaded, progress, data))
    return run_tests(bound, chosen, sample, bar=lambda _title, _total: nullcontext(tick))


test.__test__ = False  # type: ignore[attr-defined] # pytest would take it for one of its own where it is imported by name


def run_tests(
    bound: BoundSpec, chosen: Sequence[Chosen], sample: int | Literal["all"] | None, *, bar: Bar, start: Callable[[], None] | None = None
) -> DataTestReport:
    """Runs chosen tests of a spec that is bound to its data.

    Args:
        bound: The spec and its data.
        chosen: The tests, with their functions.
        sample: What stands in place of the samples that the tests ask for.
        bar: Opens a bar of a title and a total.
        start: Called before TensorFlow is needed.
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
        _Examples(run, left, sample).look(bar)
    return DataTestReport.of(bound.spec, [run.results[index] for index in sorted(run.results)])


@dataclass
class _Watching:
    """A test at work: what watches for it, and how long that took."""

    chosen: Chosen
    test: ExampleTest
    watch: Watch
    splits: tuple[str, ...]
    seconds: float = 0.0
    error: OpError | None = None


class _Examples:
    """Takes the examples of each split once, for all tests that look at some of them."""

    def __init__(self, run: Run, chosen: Sequence[Chosen], sample: int | Literal["all"] | None) -> None:
        self.run = run
        self.sample = sample
        known = run.data.known
        tests = [(each, each.test) for each in chosen if isinstance(each.test, ExampleTest)]
        self.watching = [_Watching(each, test, test.watch(known), test.splits(known.splits)) for each, test in tests]

    def look(self, bar: Bar) -> None:
        """Runs the tests."""
        fitted = fit(self.run.bound)
        from pipegen.views.sampled import Sampled

        known = self.run.data.known
        parts = []
        for split in known.splits:
            here = [w for w in self.watching if split in w.splits]
            features = tuple(dict.fromkeys(f for w in here for f in w.test.features()))
            if here:
                parts.append((split, here, Sampled(fitted, split, features, self._largest(here))))
        done = 0
        with bar("looking at examples", sum(len(sampled) for _, _, sampled in parts)) as tick:
            for split, here, sampled in parts:
                self._pass_by(split, here, sampled, lambda n, before=done: tick(before + n))  # type: ignore[misc]
                done += len(sampled)
        for w in self.watching:
            index = w.chosen.index
            if w.error is not None:
                self.run.results[index] = self.run.report.error(w.chosen, w.error, w.seconds)
            else:
                self.run.results[index] = self.run.report.result(w.chosen, w.watch.outcome(), w.seconds)

    def _size(self, w: _Watching) -> int | Literal["all"]:
        return self.sample if self.sample is not None else w.test.sample

    def _largest(self, here: Sequence[_Watching]) -> int | Literal["all"]:
        sizes = [self._size(w) for w in here]
        return "all" if "all" in sizes else max(size for size in sizes if size != "all")

    def _pass_by(self, split: str, here: Sequence[_Watching], sampled: Any, tick: Tick) -> None:
        """Shows the examples of a split to the tests; each sees those of its own sample."""
        import numpy as np

        from pipegen.views.sampled import sample_of

        manifest = self.run.bound.manifest
        chosen = {size: sample_of(manifest, split, size) for size in {self._size(w) for w in here}}
        own = {size: None if places is None else manifest.numbers(split)[places] for size, places in chosen.items()}
        done, start = 0, time.perf_counter()
        try:
            for values, numbers, keys in sampled.batches():
                waited = (time.perf_counter() - start) / len(here)
                for w in here:
                    begun = time.perf_counter()
                    size = self._size(w)
                    wanted = own[size]
                    if wanted is not None:
                        rows = np.flatnonzero(np.isin(numbers, wanted))
                    else:  # of very many records the first that come are the sample
                        rows = np.arange(len(keys) if size == "all" else max(0, min(len(keys), size - done)))
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
