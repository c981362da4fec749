"""The catalogue and its pages agree, and pages have the form that the catalogue promises."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from spec_pages import PageFile, parse_page, spec_page

from pipegen.diagnostics.catalog import CODES, make, page
from pipegen.diagnostics.diagnostic import Label, Severity


def test_codes_are_in_order_and_well_formed() -> None:
    assert list(CODES) == sorted(CODES)
    assert all(key == code.code and re.fullmatch(r"PG\d{3}", key) for key, code in CODES.items())
    names = [c.name for c in CODES.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", n) for n in names)
    assert not any(c.title.endswith(".") for c in CODES.values())


def test_lints_are_never_errors_and_the_rest_mostly_is() -> None:
    assert all(c.severity is not Severity.ERROR for c in CODES.values() if c.code.startswith(("PG50", "PG51", "PG52")))
    assert all(c.severity is Severity.ERROR for c in CODES.values() if c.code[:3] in ("PG0", "PG2", "PG3"))


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    folder = files("pipegen.diagnostics") / "rules"
    assert sorted(p.name for p in folder.iterdir()) == [f"{code}.md" for code in CODES]


@pytest.mark.parametrize("code", CODES)
def test_page(code: str) -> None:
    told = spec_page(code)
    assert (told.code, told.name) == (code, CODES[code].name)
    assert told.what.endswith(".")
    assert told.why.endswith(".")
    assert "pipegen: 1" in told.good
    assert told.bad_bytes != told.good.encode()
    assert code not in told.what + told.why
    assert all(len(line) <= 250 for line in told.text.splitlines())


def test_bad_bytes_are_not_utf8_where_that_is_the_point() -> None:
    raw = spec_page("PG001").bad_bytes
    assert raw is not None
    assert b"caf\xe9\n" in raw
    with pytest.raises(UnicodeDecodeError):
        raw.decode()


def test_a_missing_spec_has_no_bytes() -> None:
    assert spec_page("PG005").absent
    assert spec_page("PG005").bad_bytes is None


_PAGE = """# PG999 a-problem

## What it finds

It.

## Why

Because.

## Bad

```files
a/{i}.jpg  jpeg*3 32x24
b.txt  text one\\ntwo
c  dir
```

```yaml
pipegen: 2
```

## Good

```yaml
pipegen: 1
```
"""


def test_parse_page() -> None:
    told = parse_page("PG999", _PAGE)
    assert (told.what, told.why, told.bad, told.good) == ("It.", "Because.", "pipegen: 2\n", "pipegen: 1\n")
    assert told.files == (
        PageFile("a/{i}.jpg", "jpeg", (32, 24), 3),
        PageFile("b.txt", "text", content="one\ntwo"),
        PageFile("c", "dir"),
    )
    assert told.files[0].paths() == ("a/0.jpg", "a/1.jpg", "a/2.jpg")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# PG999", "# PG998", "must start with"),
        ("## Why", "## Because", "sections"),
        ("```yaml\npipegen: 2\n```", "", "needs one spec"),
        ("jpeg*3 32x24", "jpeg*3", "needs a size"),
        ("c  dir", "c  dir 3x4", "needs a size"),
        ("c  dir", "c  jpg 3x4", "no `PATH  KIND`"),
    ],
)
def test_a_malformed_page_says_what_is_wrong(old: str, new: str, said: str) -> None:
    assert old in _PAGE
    with pytest.raises(ValueError, match=said):
        parse_page("PG999", _PAGE.replace(old, new))


def test_an_unknown_code_has_no_page() -> None:
    with pytest.raises(KeyError, match="PG999"):
        page("PG999")


def test_make_takes_the_severity_of_the_table() -> None:
    place = Label(None, path="seed")
    made = make("PG503", "m", place, help="one line")
    assert (made.severity, made.labels, made.help) == (Severity.WARNING, (place,), ("one line",))
    assert make("PG403", "m", severity=Severity.ERROR).severity is Severity.ERROR
    assert make("PG101", "m", help=("a", "b")).help == ("a", "b")
    with pytest.raises(KeyError, match="PG999"):
        make("PG999", "m")
