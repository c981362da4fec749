"""Holds the formats of shards, a file each; `named` finds one by the name that `--format` has."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipegen.preparing.formats.base import ShardFormat

_MODULES = {"raw": "pixel_files", "jpeg": "pixel_files"}


def named(name: str) -> type[ShardFormat]:
    """Returns a format: the class `Format` of the module of its name."""
    module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
    found: type[ShardFormat] = module.Format
    return found
