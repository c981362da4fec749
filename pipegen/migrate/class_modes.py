"""Finds the kind of labels that an iterator gives, and the folders and rows that it reads for them."""

from __future__ import annotations

from typing import Any

from pipegen.migrate.values import Flow, Generator, OneHot, plain

UNLABELLED = (None, "input")
WITHOUT_CLASSES = ("raw", "other", "multi_output")
"""Class modes whose labels are numbers or several columns."""


def takes_share(flow: Flow) -> bool:
    """Returns whether a `subset` of this iterator is less than all of the data, as far as is known."""
    if not isinstance(flow.generator, Generator):
        return True
    return "validation_split" in flow.generator.args and plain(flow.generator.args["validation_split"].value) not in (None, 0, False)


def class_mode(flow: Flow) -> Any:
    """The kind of labels of an iterator, by Keras' word; for those of `flow` by what the labels are known to be."""
    if flow.method == "flow":
        return "categorical" if isinstance(flow.argument("y"), OneHot) else "sparse"
    if "class_mode" in flow.args and plain(flow.args["class_mode"].value) is None:
        return None
    return flow.get("class_mode", "categorical")


def weighted(flow: Flow) -> bool:
    """Returns whether the examples have weights."""
    name = {"flow": "sample_weight", "flow_from_dataframe": "weight_col"}.get(flow.method, "")
    given = flow.args.get(name)
    return given is not None and plain(given.value) is not None


def targets(flow: Flow) -> int:
    """Counts the columns that are targets."""
    value = flow.get("y_col", "class")
    return len(value) if isinstance(value, (list, tuple)) else 1


def folder_below(flow: Flow) -> str | None:
    """The one folder below `directory` that an iterator without labels reads; empty for all of it, `None` where that is not known."""
    classes = flow.get("classes")
    if "classes" not in flow.args or all_in_one(flow) or plain(flow.args["classes"].value) is None:
        return ""
    single = isinstance(classes, (list, tuple)) and len(classes) == 1 and isinstance(classes[0], str)
    return classes[0] if single else None


def names_folders(flow: Flow) -> bool:
    """Returns whether an iterator reads those folders alone that `classes` names."""
    classes = flow.get("classes")
    named = isinstance(classes, (list, tuple)) and bool(classes) and all(isinstance(c, str) for c in classes)
    return flow.method == "flow_from_directory" and named and not all_in_one(flow)


def all_in_one(flow: Flow) -> bool:
    """The way to read a folder without classes: `classes=['.']`, or the folder itself as the only class of its parent."""
    classes = flow.get("classes")
    return flow.method == "flow_from_directory" and isinstance(classes, (list, tuple)) and list(classes) in (["."], [""])
