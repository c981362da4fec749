"""The strings below fields are read without importing anything heavy, inherited ones too."""

from __future__ import annotations

from typing import ClassVar

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


def test_only_annotations_of_fields_are_texts() -> None:
    """Pydantic evaluates those of class variables once, not again for each class below; one that hides a field still does."""
    for cls in (*transforms().values(), *sources().values()):
        for base in cls.__mro__[: cls.__mro__.index(Model)]:
            if issubclass(base, Model):
                texts = {name for name, type_ in base.__annotations__.items() if type_ is not ClassVar}
                assert not texts & base.__class_vars__, base
    assert {"op", "family"} <= transforms()["flip"].__class_vars__
    assert "probability" not in transforms()["flip"].model_fields
