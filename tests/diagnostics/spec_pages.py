r"""Reads the pages of the catalogue with what a test must set up beside their specs.

Three more fences than the `yaml` ones may stand on a page:

- `files`: one line for each file, `PATH  KIND`. The kinds are `npz ARRAYS`, `jpeg WxH`, `png WxH`, `png16 WxH` (16 bits), `webp WxH`,
  `turned WxH` (a JPEG of the EXIF orientation 6),
  `scene WxH SEED [EDIT]` (a PNG of squares that the seed chooses; `dark`, `blurred` or `recoloured`), `truncated` (half a JPEG),
  `parquet ROWS COLUMNS` (row groups of 4; columns such as `image:bytes mask:path label:class`), `tfrecord COUNT KEY=WHAT … [cut]` (records
  whose keys hold `jpeg:WxH`, `int:N`, which is the row modulo N, or `float:N`, so many numbers; `cut` takes the last bytes away),
  `array_record`, `hdf5`, `sqlite` and `lmdb` likewise, `tfds` (the same, as a data set of TensorFlow Datasets: half of it is the split
  `train`, half `test`; the path is a folder), `empty` (0 bytes), `dir` (an empty folder) and `text CONTENT`, where `\n` in the content is a
  new line. A count, as in `jpeg*12 8x8`, repeats the file; `{i}` in the path is then 0, 1, 2 and so on, and added to the seed.
- `bytes` in place of the bad `yaml`: the spec's bytes, written with Python's escapes (`caf\xe9`).
- `absent` in place of the bad `yaml`: there is no spec at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipegen.diagnostics.catalog import page, page_sections


@dataclass(frozen=True, slots=True)
class PageFile:
    """One line of a `files` block.

    Attributes:
        path: Relative to the spec; `{i}` stands for a number when there are several.
        kind: `jpeg`, `png`, `png16`, `webp`, `turned`, `scene`, `truncated`, `empty`, `dir`, `text`, `parquet` or `npz`.
        size: `(width, height)` in pixels for images, else `None`.
        count: How many times the file is repeated.
        content: The text of a `text` file; what a `scene` shows; the arrays of a `npz` file, as `NAME=DTYPE:SHAPE` such as `y=int64:24x1`.
    """

    path: str
    kind: str
    size: tuple[int, int] | None = None
    count: int = 1
    content: str = ""

    def paths(self) -> tuple[str, ...]:
        """The path of each repetition."""
        return tuple(self.path.replace("{i}", str(i)) for i in range(self.count))


@dataclass(frozen=True, slots=True)
class SpecPage:
    """The explanation of one code.

    Attributes:
        code: The code.
        name: Its name, as in the title line.
        what: What the finding says.
        why: Why it matters.
        bad: A spec that yields the code; empty when `absent`.
        good: The same spec, mended.
        files: What stands beside both specs.
        text: The whole page as Markdown.
        raw: Whether `bad` is written as bytes with escapes.
        absent: Whether the bad case is that no spec exists.
    """

    code: str
    name: str
    what: str
    why: str
    bad: str
    good: str
    files: tuple[PageFile, ...] = field(default=())
    text: str = ""
    raw: bool = False
    absent: bool = False

    @property
    def bad_bytes(self) -> bytes | None:
        """The bad spec as the bytes of a file, or `None` when there is no file."""
        if self.absent:
            return None
        if self.raw:
            return self.bad.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1")
        return self.bad.encode()


RECORDS = ("tfrecord", "mds", "webdataset", "tfds", "array_record", "hdf5", "sqlite", "lmdb")
"""Files that hold many records each."""
_FENCE = re.compile(r"^```(\w+) *\n(.*?)^``` *$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^(?P<path>\S+) +(?P<kind>\w+)(?:\*(?P<count>\d+))?(?: +(?P<rest>.*))?$")


def spec_page(code: str) -> SpecPage:
    """The page of a code."""
    return parse_page(code, page(code).text)


def parse_page(code: str, text: str) -> SpecPage:
    """Parse the Markdown of a page.

    Raises:
        ValueError: If the page has not the form that the module's docstring describes.
    """
    name, sections = page_sections(code, text, ("What it finds", "Why", "Bad", "Good"))
    bad, good = ({m[1]: m[2] for m in _FENCE.finditer(sections[s] + "\n")} for s in ("Bad", "Good"))
    kinds = [k for k in ("yaml", "bytes", "absent") if k in bad]
    if len(kinds) != 1 or "yaml" not in good:
        raise ValueError(f"the page of {code} needs one spec under `## Bad` and one under `## Good`")
    return SpecPage(
        code=code,
        name=name,
        what=sections["What it finds"].strip(),
        why=sections["Why"].strip(),
        bad="" if kinds == ["absent"] else bad[kinds[0]].rstrip("\n") if kinds == ["bytes"] else bad["yaml"],
        good=good["yaml"],
        files=tuple(_parse_file(code, line) for line in bad.get("files", "").splitlines() if line.strip()),
        text=text,
        raw=kinds == ["bytes"],
        absent=kinds == ["absent"],
    )


def _parse_file(code: str, line: str) -> PageFile:
    match = _FILE.match(line.strip())
    kinds = ("jpeg", "png", "png16", "webp", "turned", "scene", "truncated", "empty", "dir", "text", "npz", "parquet", *RECORDS)
    if match is None or match["kind"] not in kinds:
        raise ValueError(f"the page of {code} has a file line that is no `PATH  KIND`: {line!r}")
    rest = match["rest"] or ""
    count = int(match["count"] or 1)
    if match["kind"] in ("text", "npz", "scene", "parquet", *RECORDS):
        return PageFile(match["path"], match["kind"], count=count, content=rest.replace("\\n", "\n"))
    size = re.fullmatch(r"(\d+)x(\d+)", rest.strip())
    if (size is None) == (match["kind"] in kinds[:5]):
        raise ValueError(f"the page of {code}: an image needs a size such as `32x24`, other files have none: {line!r}")
    return PageFile(match["path"], match["kind"], (int(size[1]), int(size[2])) if size else None, count)
