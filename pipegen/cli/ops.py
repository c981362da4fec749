"""`pipegen ops`."""

from __future__ import annotations

from typing import Annotated

import typer

from pipegen.cli.failures import CannotRun
from pipegen.terminal import say


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from pipegen.cli.reference.ops import all_ops, summary

    return [(name, summary(cls)) for name, cls in all_ops().items() if name.startswith(incomplete)]


def ops(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A step or a source, such as random_flip.", autocompletion=_complete)
    ] = None,
) -> None:
    """List the steps and sources, or explain one.

    Examples:
      pipegen ops                    every step and source in one table
      pipegen ops random_rotation
    """
    from pipegen.cli.reference.ops import all_ops, op_page, op_table

    if name is None:
        say(op_table())
        return
    known = all_ops()
    if name not in known:
        from pipegen.cli.reference.sections import PAGES
        from pipegen.diagnostics.suggest import closest
        from pipegen.spec.translate import instead_of_source, instead_of_step

        if name in PAGES:
            raise CannotRun(f"`{name}` is not a step or a source", f"it is a section of a spec: `pipegen help {name}`")
        near = closest(name, known)
        near_by = f"did you mean `{near}`?" if near else "`pipegen ops` lists them all"
        elsewhere = next(iter([*instead_of_step(name, None), *instead_of_source(name, None)]), None)
        raise CannotRun(f"there is no step or source `{name}`", str(elsewhere or near_by))
    say(op_page(known[name]))
