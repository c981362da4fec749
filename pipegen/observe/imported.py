"""Imports libraries in a separate process, which one of them may crash; prints a line of JSON before each, and after a failure.

`python -m pipegen.observe.imported pyarrow lmdb`
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from pipegen.terminal import say


def main(modules: list[str]) -> None:
    """Imports modules one after another."""
    for module in modules:
        _say(doing=module)
        try:
            import_module(module)
        except Exception as error:  # any error is an answer
            lines = str(error).strip().splitlines()
            named = "" if isinstance(error, ImportError) and lines else f"{type(error).__name__}{': ' * bool(lines)}"
            _say(failed=module, why=named + "".join(lines[:1])[:300], lacks_module=isinstance(error, ModuleNotFoundError))
    _say(doing=None)


def _say(**answers: Any) -> None:
    say(json.dumps(answers))
    sys.stdout.flush()


if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working directory, where a script may have a library's name
    main(sys.argv[1:])
