"""`FieldType`, the type of what is stored under a key, and errors of stores. Imported without NumPy.

A key may name a field of JSON: `json.label` is the field `label` of the member `json`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from typing import Any, Literal

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import how_to_install, np

BYTES, TEXT, NUMERAL = "bytes", "text", "numeral"
"""Dtypes of byte strings, such as encoded images, of texts, and of numbers that are written as text."""

Form = Literal["label", "list", "cell"]
"""The form in which a value of a record is read: a label, which is a number, a text or bytes; a list of numbers or texts, perhaps nested,
or an array; or a short value, `None` for a record without it."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """Type of the values under a key of records."""

    dtype: str = BYTES  # a NumPy dtype's name, `BYTES`, `TEXT` or `NUMERAL`; empty if no feature can be built from it
    shape: tuple[int, ...] = ()  # the shape of one record's value
    head: bytes = b""  # bytes before the numbers of each value: the header of an `.npy` file
    path: tuple[str, ...] = ()  # path of the field in the JSON that the value holds, if it is one
    called: str = ""  # the storage in words, for messages; by default dtype and shape
    samples: str = ""  # for byte strings: the dtype of the list of numbers that is read as a file of these, such as a WAV

    @property
    def encoded(self) -> bool:
        """Whether values are byte strings."""
        return self.dtype in (BYTES, TEXT, NUMERAL)

    @property
    def numeric(self) -> bool:
        """Whether values are arrays of numbers."""
        return not self.encoded and bool(self.dtype)

    @property
    def counts(self) -> bool:
        """Whether values are numbers, perhaps written as text."""
        return self.numeric or self.dtype == NUMERAL

    @property
    def is_content(self) -> bool:
        """Whether values are the bytes of files."""
        return self.dtype == BYTES and not self.shape and not self.path

    def __str__(self) -> str:
        one = {BYTES: "byte strings", TEXT: "text", NUMERAL: "a number as text"}.get(self.dtype, f"one {self.dtype}")
        if self.called or self.path:
            return self.called or "a field of JSON"
        return f"{one.removeprefix('one ')} of shape {list(self.shape)}" if self.shape else one

    @classmethod
    def of_member(cls, content: bytes, path: tuple[str, ...] = ()) -> FieldType:
        """Returns the type of a member of an archive by its content, or that of its field: an `.npy` file, a number as text, or bytes."""
        if not content.startswith(b"\x93NUMPY"):
            try:
                is_number = len([float(word) for word in content.split()]) == 1
            except ValueError:
                is_number = False
            return cls(NUMERAL if is_number else BYTES, path=path, called="" if is_number else f"{content[:20]!r}")
        stream = io.BytesIO(content)
        try:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(stream)
        except Exception as error:  # NumPy evaluates the header as Python, which raises anything
            return cls("", called=f"an invalid `.npy` file ({error})")
        if dtype.hasobject or dtype.kind not in "biuf" or (fortran and len(shape) > 1) or dtype.byteorder == ">":
            return cls("", called=f"{dtype}{' in Fortran order' * fortran}, not numbers in C order")
        return cls(dtype.name, shape, content[: stream.tell()], path)

    def member(self, content: bytes) -> bytes:
        """Returns the value, or its field as a member of its own would store it; `ValueError` without one."""
        return field_of(content, self.path) if self.path else content

    def read(self, form: Form, content: bytes, *, texts: bool = False) -> Any:
        """Reads the label, list or cell in a value; with `texts`, a list may be a text or one number. `ValueError` without one, but `None`
        for a cell without its field."""
        numbers = np.frombuffer(content, np.dtype(self.dtype).newbyteorder("<")) if self.numeric else None
        if form == "list":
            return list_in(content, self.path, texts=texts) if numbers is None else numbers.reshape(self.shape)
        if form == "cell" and self.path:
            return optional_at(content, self.path)
        return self.member(content) if numbers is None else numbers[0].item()


class StoreError(ValueError):
    """A file of records cannot be opened, or one of its records cannot be read. The message is one line without the name of the file."""


class MissingValue(StoreError):
    """A record's value in a column is null."""


class Unsuitable(StoreError):
    """A complete file whose records cannot be read one by one, or only with more arguments: `field` is the argument that it concerns,
    `help` what to do."""

    def __init__(self, message: str, help_: str, field: str = "path") -> None:
        super().__init__(message)
        self.field, self.help = field, help_


class MissingLibrary(StoreError):
    """The library that reads a format cannot be imported; `help` says what to do."""

    def __init__(self, library: str, extra: str, error: ImportError) -> None:
        super().__init__(f"{library}, which cannot be imported: {error}")
        self.help = how_to_install(library, extra, error)

    def diagnosed(self, called: str) -> OpError:
        """Returns the error `PG440` for files of the format `called`."""
        return OpError("PG440", f"{called} files need {self}", help=self.help)


JSON = "json"
JSON_FIELDS = "fields of JSON"  # description of why reading such fields calls Python


def taken_apart(key: str) -> tuple[str, tuple[str, ...]]:
    """Splits a key into the ending of a member and the path of a field in it (empty for the whole member)."""
    parts = key.split(".")
    at = next((i for i, part in enumerate(parts[:-1]) if part.lower() == JSON), None)
    return (key, ()) if at is None else (".".join(parts[: at + 1]), tuple(parts[at + 1 :]))


def column_and_path(key: str, columns: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Splits a key into a column and the path of a field in its JSON (empty for a column itself, and if none matches)."""
    parts = key.split(".")
    ends = (end for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in columns)
    at = next(ends, len(parts))
    return ".".join(parts[:at]), tuple(parts[at:])


class MissingFieldError(ValueError):
    """JSON that lacks a field."""


def value_at(content: Any, path: tuple[str, ...], *, each: bool = False) -> Any:
    """Returns a field of JSON as a Python value; booleans become 1 and 0. `ValueError` if it is not JSON. With `each`, the name of a field
    in a list of objects gives the list of their fields."""
    try:
        value = json.loads(content) if isinstance(content, (str, bytes)) else content
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    for done, name in enumerate(path):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        elif each and isinstance(value, list) and not name.isdecimal() and all(isinstance(item, dict) for item in value):
            return [value_at(item, path[done:]) for item in value]
        else:
            known = ", ".join(map(repr, list(value)[:8])) if isinstance(value, dict) else f"{value!r:.60}"
            raise MissingFieldError(f"it has no {'.'.join(path[: done + 1])!r}, but {known or 'nothing'}")
    return int(value) if isinstance(value, bool) else value


def optional_at(content: Any, path: tuple[str, ...]) -> Any:
    """Returns a field of JSON as a Python value, `None` if it is missing; for errors see `value_at`."""
    try:
        return value_at(content, path)
    except MissingFieldError:
        return None


def list_in(content: Any, path: tuple[str, ...], *, texts: bool = False) -> Any:
    """Returns the list in a member: a field of JSON, all of it, or an `.npy` file; with `texts`, also a text or one number. `ValueError`
    without one."""
    if isinstance(content, bytes) and content.startswith(b"\x93NUMPY") and not path:
        return np.load(io.BytesIO(content), allow_pickle=False)
    try:
        found = value_at(content, path, each=True)
    except MissingFieldError:
        raise
    except ValueError:
        if not texts or path:
            raise
        return content
    if texts and isinstance(found, (int, float, str)):
        return content if not path else found if isinstance(found, str) else [found]
    if not isinstance(found, list):
        raise ValueError(f"it holds {found!r:.60}, not a list")
    return found


def field_of(content: Any, path: tuple[str, ...]) -> bytes:
    """Returns a field as a member of its own would store it: text and numbers as text, lists of numbers as a float32 `.npy` file;
    `ValueError` if it is missing or has another type."""
    value, named = value_at(content, path), ".".join(path)
    if isinstance(value, float) and value.is_integer():
        return str(int(value)).encode()
    if isinstance(value, (int, float, str)):
        return str(value).encode()
    try:
        numbers = np.asarray(value, np.float32)
    except (ValueError, TypeError):
        numbers = None
    if not isinstance(value, list) or numbers is None:
        raise ValueError(f"{named!r} holds {json.dumps(value)[:60]}; supported are text, numbers and lists of numbers of one shape")
    for exact, rounded in zip(np.asarray(value, object).ravel().tolist(), numbers.ravel().tolist(), strict=True):
        if isinstance(exact, int) and exact != rounded:
            raise ValueError(f"{named!r} holds {exact}, which float32 would round; `dtype: int64` works for fields of one number only")
    stream = io.BytesIO()
    np.lib.format.write_array(stream, numbers, version=(1, 0))
    return stream.getvalue()


def is_number(kind: Any) -> bool:
    """Tells whether an Arrow type is a number or a truth value."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def is_list(kind: Any) -> bool:
    """Tells whether an Arrow type is a list."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
