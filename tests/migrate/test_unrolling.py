"""Loops and comprehensions over what is written down: one iterator for each round, with the values of that round and no other."""

from __future__ import annotations

import re

import pytest

from pipegen.migrate.migration import migrate_code
from pipegen.migrate.reading import parse_code

HEAD = "from keras.preprocessing.image import ImageDataGenerator\ng = ImageDataGenerator()\n"
UNKNOWN = "path/to/data"


def folders(code: str) -> list[str]:
    """The folder of each spec, with the side of its images where that is not the default."""
    result = migrate_code(parse_code("t.py", (HEAD + code).encode()))
    found = []
    for text in result.specs.values():
        (folder,) = re.findall(r"  data: \{type: path, default: (\S+)\}", text)
        side = re.findall(r"  (?:size|height): \{type: int, default: (\d+)", text)
        found.append(folder + (f" {side[0]}" if side and side[0] != "256" else ""))
    return found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("for d in ('a', 'b'):\n    p = d + '/x'\n    it = g.flow_from_directory(p)\n", ["a/x", "b/x"]),
        ("for d in ('a', 'b'):\n    for s in ('x', 'y'):\n        it = g.flow_from_directory(d + s)\n", ["ax", "ay", "bx", "by"]),
        ("for i, d in enumerate(['a', 'b']):\n    it = g.flow_from_directory(f'{i}/{d}')\n", ["0/a", "1/b"]),
        (
            "def mk(d, n=3):\n    return g.flow_from_directory(d, (n, n))\nfor d, n in {'a': 1, 'b': 2}.items():\n    mk(d, n)\n",
            ["a 1", "b 2"],
        ),
        ("[g.flow_from_directory(d, (n, n)) for d, n in zip(('a', 'b'), (8, 9))]\n", ["a 8", "b 9"]),
        ("L = {'x': 'a', 'y': 'b'}\nd = {k: g.flow_from_directory(L[k]) for k in L}\n", ["a", "b"]),
        ("n = 5\nL = [n for n in (1, 2)]\ng.flow_from_directory('e', (n, n))\n", ["e 5"]),
        # What a round before this one, a branch or another loop gives is not known.
        ("prev = 'z'\nfor d in ('a', 'b'):\n    it = g.flow_from_directory(prev, (len(d), len(d)))\n    prev = d\n", [f"{UNKNOWN} 1"] * 2),
        ("n = 8\nfor d in ('a', 'b'):\n    n = n * 2\n    it = g.flow_from_directory(d, (n, n))\n", ["a 224", "b 224"]),
        ("n = 8\nfor d in ('a', 'b'):\n    if x:\n        n = 4\n    it = g.flow_from_directory(d, (n, n))\n", ["a 224", "b 224"]),
        ("s = [3, 4]\nfor d in ('a', 'b'):\n    it = g.flow_from_directory(d, s)\n    s.append(3)\n", ["a 224", "b 224"]),
        ("L = ['a', 'b']\nfor d in L:\n    it = g.flow_from_directory(d)\n    L.append('c')\n", [UNKNOWN]),
        ("for d in ('a', 'b'):\n    it = g.flow_from_directory(d)\n    if x:\n        break\n", [UNKNOWN]),
        ("for d in ('a', 'b'):\n    def f():\n        return g.flow_from_directory(d)\n", [UNKNOWN]),
        ("[g.flow_from_directory(d) for d in ('a', 'b') if d in x]\n", [UNKNOWN]),
        # Of a branch only the side that is taken, where the round says which; and nothing after `continue`.
        (
            "for s in ('a', 'b'):\n    if s == 'a':\n        it = g.flow_from_directory(s, (5, 5))\n"
            "    else:\n        it = g.flow_from_directory(s)\n",
            ["a 5", "b"],
        ),
        ("for s in ('a', 'b'):\n    if x:\n        it = g.flow_from_directory(s)\n", [UNKNOWN]),
        ("for s in ('a', 'b', 'c'):\n    if s == 'b':\n        continue\n    it = g.flow_from_directory(s)\n", ["a", "c"]),
        ("for s in ('a', 'b'):\n    if s in x:\n        continue\n    it = g.flow_from_directory(s)\n", [UNKNOWN]),
        ("for s in ('a', 'b'):\n    if s in x:\n        print(s)\n    it = g.flow_from_directory(s)\n", ["a", "b"]),
        ("for s in ('a', 'b'):\n    for x in z:\n        continue\n    it = g.flow_from_directory(s)\n", ["a", "b"]),
        ("for s in ('a', 'b'):\n    with x:\n        continue\n    it = g.flow_from_directory(s)\n", [UNKNOWN]),
        (
            "for s in ('a', 'b'):\n    if s == 'a':\n        if s != 'b':\n            continue\n        g.flow_from_directory('c')\n"
            "    it = g.flow_from_directory(s)\n",
            ["b"],
        ),
        ("[g.flow_from_directory(s, (5, 5)) if s == 'a' else g.flow_from_directory(s) for s in ('a', 'b')]\n", ["a 5", "b"]),
        ("for s in ('a', 'b'):\n    with x:\n        if s == 'b':\n            g.flow_from_directory(s)\n", [UNKNOWN]),
        ("for i in range(3):\n    it = g.flow_from_directory('a')\n", ["a"]),
    ],
)
def test_each_round_has_its_own_values(code: str, expected: list[str]) -> None:
    assert folders(code) == expected


def test_a_branch_that_is_not_taken_is_no_mistake() -> None:
    code = "for s in ('train', 'val'):\n    if s == 'train':\n        ImageDataGenerator(rotation_range=9).flow_from_directory(s)\n"
    code += "    else:\n        ImageDataGenerator().flow_from_directory(s)\n"
    result = migrate_code(parse_code("t.py", (HEAD + code).encode()))
    assert [f.code for f in result.findings.of("mistake")] == []
    assert sum("random_rotation" in text for text in result.specs.values()) == 1
