"""Writes a pipeline down, for people and for other programs: the part of `Pipeline` that explains it as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pipegen.arguments import called_with_count, file_or_folder, got
from pipegen.untraced import untraced

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.running.lowered import Lowered
    from pipegen.page import Page
    from pipegen.phases.specs import CompiledSpec
    from pipegen.plan.nodes import Plan
    from pipegen.views.eject import Ejected


@untraced
class WrittenDown:
    """Adds to a pipeline what is written of it."""

    _compiled: CompiledSpec
    _engine: Engine
    _plans: dict[str, Plan]

    def _require(self, split: str) -> None:
        """Raises a `KeyError` for a split that is unknown."""
        raise NotImplementedError

    def explain_html(self, split: str | None = None, *, pictures: bool = True, physical: bool = False) -> Page:
        """Explains the compiled plans as a page of HTML: nodes, types, costs, what each pass did, and examples at each edge.

        The page is one file without scripts, which fetches nothing: `.save("plan.html")` writes it, and a notebook shows it.

        Args:
            split: The split; by default every one.
            pictures: Run the first examples of each split through its steps, and show them at each edge.
            physical: Also show what runs: each operation of the dataset, and what it calls.
        """
        from pipegen.views.summary import explained_html

        if split is not None:
            self._require(split)
        chosen = list(self._plans) if split is None else [split]
        return explained_html(self._compiled, self._engine, chosen, pictures=pictures, physical=physical)

    def eject(
        self,
        path: str | os.PathLike[str],
        form: Literal["graph", "code"] = "graph",
        *,
        splits: Sequence[str] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Ejected:
        """Writes the datasets so that they run without the spec, for those who go on without pipegen or by hand.

        A `graph` is a folder with a SavedModel for each split, which needs TensorFlow alone: of what `tf.saved_model.load` gives,
        `.batches(epoch, step)` is the dataset that `pipe.dataset(SPLIT, epoch=, step=)` is, to the bit. Its README says how to load it;
        the data stays where it is, and may move. `code` is a page of Python, written on `pipe.lowered`, whose lines are the operations
        of the compiled plan.

        Args:
            path: A new or empty folder for a `graph`, a new file for `code`.
            form: `graph` or `code`.
            splits: Which splits; by default all.
            progress: Called with how many splits are written.

        Raises:
            SpecError: With a finding for each thing that cannot go, such as Python functions in a graph.
            FileExistsError: Where something is there already.
        """
        from pipegen.views.eject import eject_graph
        from pipegen.views.eject_code import eject_code

        if form not in ("graph", "code"):
            raise ValueError(f'`form` is "graph" or "code", got {got(form)}')
        chosen = list(self._plans) if splits is None else list(splits)
        for split in chosen:
            self._require(split)
        eject = eject_graph if form == "graph" else eject_code
        called_with_count("progress", progress)
        return eject(self._compiled, self._engine, file_or_folder("path", path, "ejected/"), chosen, progress)

    def lowered(self, split: str) -> Lowered:
        """Gives the parts of a split's compiled plan as functions of TensorFlow, for code that puts its datasets together by hand.

        `pipegen eject --code` writes a page that does. The parts know no cache, and work on one example at a time up to the batch.
        """
        from pipegen.backend.running.lowered import Lowered
        from pipegen.views.eject import lowered_executor

        self._require(split)
        return Lowered(lowered_executor(self._compiled, self._engine, split))
