"""The strings below fields are read without importing anything heavy, inherited ones too."""

from __future__ import annotations

from pipegen.ops.model import Model, field_docs
from pipegen.ops.registry import sources, transforms
from pipegen.spec.models import Batch, PipelineSpec


def test_own_and_inherited_fields() -> None:
    docs = field_docs(transforms()["random_flip"])
    assert docs["axis"].startswith("Which way")
    assert docs["when"].startswith("The splits that it runs on")
    assert docs["probability"].startswith("The share of examples that is mirrored")  # its own, not the family's


def test_every_field_of_every_section_and_source_has_some() -> None:
    for model in (PipelineSpec, Batch, *sources().values()):
        assert set(field_docs(model)) == set(model.model_fields)


def test_line_breaks_stay_and_indentation_goes() -> None:
    assert field_docs(Batch)["remainder"].splitlines()[1].startswith("every split, or one per split")


def test_annotations_are_those_of_fields() -> None:
    """Class variables keep none, so that pydantic evaluates them once, and may still be set by the classes below."""
    for cls in (*transforms().values(), *sources().values()):
        for base in cls.__mro__[: cls.__mro__.index(Model)]:
            if issubclass(base, Model):
                assert set(base.__annotations__) <= set(base.model_fields), base
    assert {"op", "family"} <= next(iter(transforms().values())).__class_vars__
