"""What looks like a number or a yes in YAML and is text."""

from __future__ import annotations

import pytest
from spec_helpers import codes, fixed, marked, only, read


@pytest.mark.parametrize(
    ("body", "trap", "better"),
    [
        ("transforms: [{rescale: {scale: 1/255}}]", "1/255", "0.00392156862745098"),
        ("transforms: [{random_flip: {probability: 50%}}]", "50%", "0.5"),
        ("transforms:\n  - random_flip:\n      probability: 0,5\n", "0,5", "0.5"),
        ("seed: 1_000", "1_000", "1000"),
        ("seed: 1,000,000", "1,000,000", "1000000"),
        ("splits: {parts: {train: 4/5}}", "4/5", "0.8"),
        ("splits: {parts: {train: 80%}}", "80%", "0.8"),
        ("transforms: [{random_rotation: {degrees: 45/2}}]", "45/2", "22.5"),
        ("transforms: [{random_rotation: {degrees: [0, 45/2]}}]", "45/2", "22.5"),
        ("transforms: [{random_rotation: {degrees: 5, exact: yes}}]", "yes", "true"),
        ("transforms: [{random_rotation: {degrees: 5, exact: off}}]", "off", "false"),
        ("transforms: [{random_rotation: {degrees: 5, exact: 'True'}}]", "'True'", "true"),
        ("transforms: [{resize: {size: 1_000}}]", "1_000", "1000"),
    ],
)
def test_traps_offer_the_value(body: str, trap: str, better: str) -> None:
    loaded = read(body)
    finding = only(loaded)
    assert finding.code == "PG008"
    assert marked(finding, loaded) == trap
    assert any(f"`{better}`" in line for line in finding.help)
    mended = fixed(finding, loaded)
    assert mended == loaded.texts["spec.yaml"].replace(trap, better)
    assert codes(read(mended, head="")) == []


@pytest.mark.parametrize("body", ["seed: 12:30", "seed: 1/0", "seed: 1/3", "seed: 50%", "seed: yes", "batch: {size: ten}", "seed: 0b11"])
def test_where_no_value_is_certain_none_is_offered(body: str) -> None:
    finding = only(read(body))
    assert finding.code == "PG104"
    assert finding.fix is None


@pytest.mark.parametrize(
    ("body", "better"),
    [
        ("name: 2024", "'2024'"),
        ("errors: {exclude: 012}", "'012'"),
        ("name: true", "'true'"),
        ("seed: '17'", "17"),
        ('batch: {size: "64"}', "64"),
        ("batch: {size: 64.0}", "64"),
        ("transforms: [{random_flip: {probability: '0.5'}}]", "0.5"),
    ],
)
def test_quotes_too_many_or_too_few(body: str, better: str) -> None:
    loaded = read(body)
    finding = only(loaded)
    assert finding.code == "PG104"
    mended = fixed(finding, loaded)
    assert better in mended
    assert codes(read(mended, head="")) == []


def test_words_that_mean_yes_are_fine_where_text_is_due() -> None:
    loaded = read("name: yes\noutput: {x: {no: image}}\n")
    assert codes(loaded) == []
    assert loaded.spec is not None
    assert loaded.spec.output.x == {"no": "image"}


def test_a_decimal_comma_inside_braces_is_explained() -> None:
    finding = next(d for d in read("transforms: [{random_flip: {probability: 1,5}}]").diagnostics if d.code == "PG102")
    assert any("point" in line for line in finding.help)
