"""An argument of another kind is called so, also if its value is wrong: to correct that would not help."""

from __future__ import annotations

from typing import Any

import pytest

import pipegen


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ({"kind": "label", "dtype": "fp32"}, "`arrays.features.x.dtype` belongs to tensors, and this is `kind: label`"),
        ({"kind": "boxes", "dtype": 7}, "`arrays.features.x.dtype` belongs to tensors, and this is `kind: boxes`"),
        ({"kind": "label", "size": "big"}, "`arrays.features.x.size` belongs to images, dense maps and masks, and this is `kind: label`"),
        ({"kind": "tensor", "dtype": "fp32"}, "did you mean `float32`?"),
        ({"kind": "lable", "dtype": "fp32"}, "`arrays.features.x.kind`"),
    ],
)
def test_a_wrong_value_of_another_kind_s_argument(feature: dict[str, Any], message: str) -> None:
    source = {"arrays": {"features": {"image": {"kind": "image"}, "x": feature}}}
    with pytest.raises(pipegen.SpecError) as caught:
        pipegen.load({"pipegen": 1, "source": source, "batch": {"size": 2}})
    assert message in str(caught.value)
    assert str(caught.value).count("dtype` is") == (feature["kind"] != "label" and feature["kind"] != "boxes")
