"""Lines of JSON in files that a spec names, such as a report of damaged records, whose first line says what the file is.

Names and queries in them may come from a stranger, so no line holds a character that a shell would act on.
"""

from __future__ import annotations

import errno
import json
import os

_HEAD = '{"pipegen_report": 1}\n'
_ACTIVE = str.maketrans({character: f"\\u{ord(character):04x}" for character in "$`!"})
"""Characters that a shell expands within double quotes, as escapes of JSON."""


def is_foreign(path: str) -> bool:
    """Tells whether a file exists that is no report; what cannot be read is none."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(len(_HEAD))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return bool(head) and head != _HEAD.encode()


def add_line(path: str, about: object) -> None:
    """Adds a line to a report, which is begun if needed, and so is its folder.

    Raises:
        OSError: When it cannot be written, or the file is no report.
    """
    if is_foreign(path):
        raise OSError(errno.EEXIST, "the file exists, and is not a report of damaged records", path)
    line = inert(json.dumps(about)) + "\n"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(line if os.fstat(stream.fileno()).st_size else _HEAD + line)


def inert(text: str) -> str:
    """Gives a text of JSON with escapes for what a shell would expand, should it ever read it."""
    return text.translate(_ACTIVE)
