"""Holds what tests of keys share: which key is meant, and how it is looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from pipegen.errors import OpError
from pipegen.ops.testing.base import DataTest
from pipegen.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.ops.testing.evidence import Known, Listed

Name = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]


class KeyTest(DataTest):
    """A test of what identifies examples: a column of the table, the file of a feature, or a part of the path."""

    bare: ClassVar[str | None] = "key"

    key: Name | None = None
    """A column of the table, by its name or its number from 0; or a feature with a file, whose path is the key."""
    path: str | None = None
    """In place of `key`: a regular expression (RE2) searched in the relative path; its first group, or the whole match, is the key.
    Examples without a match have none."""

    @field_validator("path")
    @classmethod
    def _pattern(cls, value: str | None) -> str | None:
        if value is not None:
            compile_pattern(value)
        return value

    @model_validator(mode="after")
    def _one(self) -> KeyTest:
        if (self.key is None) == (self.path is None):
            raise ValueError("give `key` or `path`, and not both" if self.key is not None else "give `key` or `path`")
        return self

    def features(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else ()

    @property
    def field(self) -> str:
        """The argument that names the key."""
        return "key" if self.path is None else "path"

    @property
    def called(self) -> str:
        """Names the key in a sentence."""
        return f"`{self.key}`" if self.path is None else f"the part of the path that matches `{self.path}`"

    def problems(self, known: Known) -> Iterator[OpError]:
        files = [name for name, t in known.source.infer().items() if t.encoded]
        if self.path is not None and known.source.has_rows():
            yield OpError("PG700", f"`{self.op}` looks at paths, and `{known.source.op}` has rows without any", field="path")
        if self.key is not None and self.key not in files and not known.source.has_columns():
            message = f"`{known.source.op}` is no table with a column `{self.key}`"
            listed = " or ".join(f"`{name}`" for name in files)
            help_ = f"`key` can be the file of {listed}; for a part of the path give `path: REGEX`" if files else "remove the test"
            kinds = dict(known.source.infer().items())
            if self.key in kinds:
                message = f"`{self.key}` has no file in the source `{known.source.op}`, so it identifies no example"
            yield OpError("PG700", message, field="key", help=help_)

    def looked_up(self, data: Listed, split: str) -> Sequence[str]:
        """Returns the key of each example of a split; the empty text where it has none."""
        if self.path is not None:
            pattern = compile_pattern(self.path)
            found = (pattern.search(key) for key in data.keys(split))
            return ["" if m is None else m.whole if m.first is None else m.first for m in found]
        assert self.key is not None  # noqa: S101 - the validator has seen to it
        files = data.files(split, self.key) if isinstance(self.key, str) else None
        return files if files is not None else data.cells(split, self.key)
