"""Finds where findings about data point: the key paths of the arguments that sources and split methods name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.diagnostic import Label
from pipegen.spec.source_map import format_path

if TYPE_CHECKING:
    from pipegen.spec.models import PipelineSpec


def path_only(path: tuple[str | int, ...], text: str = "", *, key: bool = False) -> Label:  # noqa: ARG001
    """A label that knows the key path alone."""
    return Label(None, text, format_path(path))


def argument(spec: PipelineSpec, field: str | None) -> tuple[str | int, ...]:
    """The key path of an argument of the source, dotted where it is nested; `parts.SPLIT` is one of `splits`."""
    if field is not None and field.startswith("parts.") and spec.splits.method == "folder":
        return ("splits", *field.split("."))
    return ("source", spec.source.op, *(field.split(".") if field else ()))


def place_within(spec: PipelineSpec, field: str, section: str = "") -> tuple[str | int, ...]:
    """The key path of what turned out wrong while the data of a section was looked at: in a feature of the source, or in the section."""
    if field.startswith("features."):
        return argument(spec, field)
    return (*filter(None, [section]), *field.split("."))
