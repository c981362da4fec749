"""The catalogue and its pages agree, and pages have the form that the catalogue promises."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from spec_pages import RECORDS, PageFile, parse_page, spec_page

from pipegen.diagnostics.catalog import CODES, make, page
from pipegen.diagnostics.diagnostic import Label, Severity
from pipegen.diagnostics.page_files import described, with_files_in_words


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


NOTATION = re.compile(r"\{i\}|\w\*\d|\\n|=int:|=jpeg:|uint8:|:bytes|^\S+  \w|\bscene\b", re.MULTILINE)
"""What a test reads of a block of files, and a person does not."""


@pytest.mark.parametrize("code", CODES)
def test_readers_see_the_files_of_a_page_in_words(code: str) -> None:
    told, shown = spec_page(code), with_files_in_words(page(code).text)
    assert "```files" not in shown
    assert "```absent" not in shown
    for block in re.findall(r"^Files beside it:\n\n```text\n(.*?)^```", shown, re.MULTILINE | re.DOTALL):
        assert not NOTATION.search(block), block
        assert [path for path, _, what in (line.partition(": ") for line in block.splitlines()) if what and not path.startswith("  ")]
    assert all(f"\n{file.paths()[0]}" in shown for file in told.files)


def test_files_that_a_page_may_have_are_all_told() -> None:
    lines = {
        "a/{i}.jpg  jpeg*3 32x24": "a/0.jpg to 2.jpg: 3 JPEGs of 32×24 pixels",
        "a.png  png16 8x8": "a.png: a PNG of 8×8 pixels and 16 bits",
        "a.webp  webp 8x8": "a.webp: a WebP of 8×8 pixels",
        "b/{i}.png  scene*2 64x48 10": "b/0.png to 1.png: 2 pictures of 64×48 pixels",
        "c/copy.png  scene 64x48 11": "c/copy.png: a copy of b/1.png",
        "c/small.png  scene 32x24 10 blurred": "c/small.png: a copy of b/0.png, at 32×24 pixels, blurred",
        "d.png  scene 64x48 90 dark": "d.png: a picture of 64×48 pixels, very dark",
        "e.jpg  truncated": "e.jpg: a JPEG that ends half-way",
        "f.jpg  empty": "f.jpg: an empty file",
        "g  dir": "g: an empty folder",
        "h.db  text": "h.db: an empty file",
        "i.npz  npz x=uint8:24x8x8x3 y=int64:24": "i.npz: the arrays x (uint8, 24×8×8×3), y (int64, 24)",
        "j.parquet  parquet 12 image:bytes label:class": "j.parquet: 12 rows with image (image files), label (labels)",
        "k  tfds 24 image=jpeg:8x8": "k: a data set of TensorFlow Datasets with 24 records of image (a JPEG of 8×8 pixels); "
        "half of them are `train`, half `test`",
        **{
            f"l  {kind} 4 label=int:3 cut": "4 records of label (a whole number from 0 to 2); its last bytes are missing"
            for kind in RECORDS
        },
    }
    lines = {line: said for line, said in lines.items() if not line.startswith("l  tfds")}
    for said, shown in zip(lines.values(), described(list(lines)), strict=True):
        assert shown.endswith(said)
    assert described(["m.csv  text file,breed\\na,b\\n"]) == ["m.csv: this text", "    file,breed", "    a,b"]
    with pytest.raises(ValueError, match="no words"):
        described(["n.xyz  hologram 3"])
    with pytest.raises(ValueError, match="does not describe a file"):
        described(["n.xyz"])


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
