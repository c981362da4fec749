"""`pipe.val` and its kin: an attribute that looks like a split says which splits there are, and what is meant."""

from __future__ import annotations

import ast
import re

import pytest

from pipegen.api.pipeline import Pipeline
from pipegen.diagnostics.suggest import Row, every_row


def pipeline_of(*splits: str) -> Pipeline:
    """A pipeline that knows its splits and nothing else."""
    pipe = object.__new__(Pipeline)
    pipe._plans = dict.fromkeys(splits)  # type: ignore[arg-type]
    return pipe


@pytest.mark.parametrize(
    ("splits", "name", "meant"),
    [
        (("train", "validation"), "val", "is `pipe.validation` meant?"),
        (("train", "validation"), "valid", "is `pipe.validation` meant?"),
        (("train", "validation"), "dev", "is `pipe.validation` meant?"),
        (("train", "validation"), "trian", "is `pipe.train` meant?"),
        (("train", "test"), "testing", "is `pipe.test` meant?"),
        (("train", "val"), "val", 'is `pipe["val"]` meant?'),
        (("train", "val"), "valid", 'is `pipe["val"]` meant?'),
        (("train", "fold_1"), "fold_1", 'is `pipe["fold_1"]` meant?'),
    ],
)
def test_an_attribute_that_looks_like_a_split(splits: tuple[str, ...], name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'") as caught:
        getattr(pipeline_of(*splits), name)
    assert meant in str(caught.value)
    assert f"the splits are {', '.join(splits)}" in str(caught.value)
    assert caught.value.name == name


def test_a_split_by_another_name() -> None:
    pipe = pipeline_of("train", "val")
    with pytest.raises(KeyError) as caught:
        pipe.validation  # noqa: B018
    assert caught.value.args[0] == "there is no split 'validation'; is `pipe[\"val\"]` meant?; the splits are train, val"
    with pytest.raises(KeyError, match=r"is `pipe.validation` meant\?"):
        pipeline_of("train", "validation")["valid"]


def test_other_attributes_are_simply_not_there() -> None:
    pipe = pipeline_of("train")
    with pytest.raises(AttributeError, match=r"no attribute 'qwerty'; the splits are train$"):
        pipe.qwerty  # noqa: B018
    assert not hasattr(pipe, "_repr_markdown_")
    assert not hasattr(pipe, "__deepcopy__")
    assert not hasattr(object.__new__(Pipeline), "val"), "not even while it is made"


@pytest.mark.parametrize("row", [row for row in every_row() if row.place == "member"], ids=lambda row: row.words[0])
def test_members_of_other_libraries_are_answered_with_ours(row: Row) -> None:
    """The advice is an expression that begins with a member that a pipeline has."""
    names = set(re.findall(r"pipe\.(\w+)", row.lines))
    assert names
    assert all(hasattr(Pipeline, name) for name in names)
    ast.parse(row.lines, mode="eval")
    for word in row.words:
        if not hasattr(Pipeline, word):
            with pytest.raises(AttributeError) as caught:
                getattr(pipeline_of("train", "validation"), word)
            assert f"no attribute '{word}'; `{row.lines}` is {row.remark}" in str(caught.value)


@pytest.mark.tf
def test_a_dataset_names_what_its_pipeline_has() -> None:
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset

    dataset = object.__new__(PipelineDataset)
    with pytest.raises(
        AttributeError, match=r"no attribute 'class_names'; `pipe.class_names` is the classes in the order of their indices$"
    ):
        dataset.class_names  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'qwerty'$"):
        dataset.qwerty  # noqa: B018
    assert not hasattr(dataset, "__array__")
