"""Imports libraries in a separate process, which one of them may crash; prints a line of JSON before each, and after a failure.

`python -m pipegen.observe.imported pyarrow lmdb`
"""

from __future__ import annotations

import sys
from importlib import import_module

from pipegen.observe.asked import answer


def main(modules: list[str]) -> None:
    """Imports modules one after another."""
    for module in modules:
        answer(doing=module)
        try:
            import_module(module)
        except Exception as error:  # any error is an answer
            lines = str(error).strip().splitlines()
            named = "" if isinstance(error, ImportError) and lines else f"{type(error).__name__}{': ' * bool(lines)}"
            answer(failed=module, why=named + "".join(lines[:1])[:300], lacks_module=isinstance(error, ModuleNotFoundError))
    answer(doing=None)


if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working directory, where a script may have a library's name
    main(sys.argv[1:])
