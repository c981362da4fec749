"""Finds relative paths in shared bases: the folder of a package, or of a lock, has no data beside it."""

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
    """Returns a finding about a path that a shared base says, where it is relative; else `None`."""
    if "://" in value or os.path.isabs(os.path.expanduser(value)) or not locate.in_shared_base(path):
        return None
    said: Any = value
    for key in reversed(path):
        said = [said] if isinstance(key, int) else {key: said}
    help_: list[str] = [write(flow(said)[1:-1], "spec", "say in the spec that extends it where that lies: {}")]
    if path[0] == "params":
        help_.append("whoever keeps the base: leave the default out, so that each spec that extends it says where its data lies")
    else:
        help_.append("whoever keeps the base: declare `params: {data: {type: path}}` without a default, and let the path here be `$data`")
    message = f"`{format_path(path)}` is the relative path `{value}` in a shared base, which has no folder of data beside it"
    return make("PG114", message, locate.label(path), help=tuple(help_))
