"""The finding about relative paths in shared bases, which have no folder of data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import write
from pipegen.spec.compose import flow
from pipegen.spec.source_map import format_path

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.spec.locate import Locator
    from pipegen.spec.source_map import KeyPath


def homeless(value: str, path: KeyPath, locate: Locator) -> Diagnostic | None:
    """The finding about a relative path in a shared base; `None` for other paths."""
    if "://" in value or os.path.isabs(os.path.expanduser(value)) or not locate.in_shared_base(path):
        return None
    said: Any = value
    for key in reversed(path):
        said = [said] if isinstance(key, int) else {key: said}
    help_: list[str] = [write(flow(said)[1:-1], "spec", "set the path in the spec that extends the base: {}")]
    if path[0] == "params":
        help_.append("or, in the base, leave the default out, so that each spec that extends it sets the path of its data")
    else:
        help_.append("or, in the base, declare `params: {data: {type: path}}` without a default, and use `$data` here")
    message = f"`{format_path(path)}` is the relative path `{value}` in a shared base, which has no folder of data"
    return make("PG114", message, locate.label(path), help=tuple(help_))
