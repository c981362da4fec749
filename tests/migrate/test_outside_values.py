"""What the command line, flags and the environment may change is followed, said, and handed over; what is not sure is not known."""

from __future__ import annotations

import pytest

from pipegen.migrate.migration import Migration, migrate_code
from pipegen.migrate.reading import parse_code

IMPORT = "import argparse, os\nfrom keras.preprocessing.image import ImageDataGenerator\n"
PARSER = "p = argparse.ArgumentParser()\n"
USE = "it = ImageDataGenerator().flow_from_directory('d', target_size=(SIZE, SIZE))\n"


def migrated(code: str) -> Migration:
    return migrate_code(parse_code("train.py", (IMPORT + code).encode()))


def side(result: Migration) -> str:
    """The default of the side that the spec has, or `unknown`."""
    (text,) = result.specs.values()
    line = next(line for line in text.splitlines() if line.startswith("  size:"))
    unknown = any(f.code == "PG610" and "`target_size` is not known" in f.message for f in result.findings.items)
    return "unknown" if unknown else line.split("default: ")[1].split(",")[0]


def codes(result: Migration) -> set[str]:
    return {f.code for f in result.findings.items}


@pytest.mark.parametrize(
    "code",
    [
        f"{PARSER}p.add_argument('--size', type=int, default=96)\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('-s', '--the-size', default='96', type=int)\nSIZE = p.parse_args().the_size",
        f"{PARSER}p.add_argument('-s', dest='side', default=48)\nargs = p.parse_args()\nSIZE = args.side * 2",
        f"{PARSER}p.add_argument('size', nargs='?', type=int, default=96)\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('--sizes', nargs='+', default=[96, 32])\nSIZE = p.parse_args().sizes[0]",
        f"{PARSER}g = p.add_argument_group('g')\ng.add_argument('--s', default=96)\nargs, rest = p.parse_known_args()\nSIZE = args.s",
        f"{PARSER}p.add_argument('--size', default=96)\nargs = vars(p.parse_args())\nSIZE = args['size']",
        f"{PARSER}p.add_argument('--size', default=96)\nargs = p.parse_args()\nprint(vars(args))\nSIZE = args.size",
        f"{PARSER}p.add_argument('--size', default=96)\ndef f(a):\n    return a.size\nSIZE = f(p.parse_args())",
        "def f():\n    p = argparse.ArgumentParser()\n    p.add_argument('-s', default=96)\n    return p.parse_args()\nSIZE = f().s",
        "SIZE = int(os.environ.get('SIZE', 96))",
        "os.environ['OTHER'] = '3'\nSIZE = int(os.getenv('SIZE', '96'))",
    ],
)
def test_defaults_are_followed_and_handed_over(code: str) -> None:
    result = migrated(f"{code}\n{USE}")
    assert side(result) == "96"
    assert "PG613" in codes(result)
    assert 'params={"size": SIZE}' in result.changed


@pytest.mark.parametrize(
    "code",
    [
        f"{PARSER}p.add_argument('--size', type=int)\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('--size', type=int, default=96, required=True)\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('size', type=int, default=96)\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('--size', type=even, default='96')\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('--size', default=96)\nargs = p.parse_args()\nargs.size = 32\nSIZE = args.size",
        f"{PARSER}p.add_argument('--size', default=96)\nargs = p.parse_args()\nsetattr(args, name, 32)\nSIZE = args.size",
        f"{PARSER}p.add_argument('--size', default=96)\nargs = p.parse_args()\nvars(args)['size'] = 32\nSIZE = args.size",
        f"{PARSER}p.add_argument('--size', default=96)\nargs = p.parse_args()\nargs.__dict__.update(other)\nSIZE = args.size",
        f"{PARSER}p.add_argument('--size', default=96)\nd = vars(p.parse_args())\nd['size'] = 32\nSIZE = d['size']",
        f"{PARSER}p.add_argument('--size', default=96)\ndef f(a):\n    a.size = 3\nargs = p.parse_args()\nf(args)\nSIZE = args.size",
        f"{PARSER}p.add_argument('--size', default=96)\np.set_defaults(size=32)\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('--size', default=96)\np.set_defaults(**other)\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('--size', default=96)\nSIZE = p.parse_args(['--size', '32']).size",
        f"{PARSER}p.add_argument('--size', default=96)\nq.add_argument('--size', default=32)\nSIZE = p.parse_args().size",
        f"{PARSER}for n in names:\n    p.add_argument('--' + n)\np.add_argument('--size', default=96)\nSIZE = p.parse_args().size",
        f"{PARSER}a = p.add_argument('--size', default=96)\na.default = 3\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('--big', action='store_true')\nSIZE = 96 if p.parse_args().big else 32",
        f"{PARSER}p.add_argument('--size', default=argparse.SUPPRESS)\nSIZE = p.parse_args().size",
        "p = argparse.ArgumentParser(argument_default=3)\np.add_argument('--size', default=96)\nSIZE = p.parse_args().size",
        f"{PARSER}p.add_argument('--sizes', nargs='+', default=[96, 3])\nSIZE = [s for s in p.parse_args().sizes][0]",
        "SIZE = int(os.environ['SIZE'])",
        "os.environ['SIZE'] = '32'\nSIZE = int(os.environ.get('SIZE', 96))",
        "os.environ.setdefault('SIZE', '32')\nSIZE = int(os.environ.get('SIZE', 96))",
        "os.environ.update(other)\nSIZE = int(os.environ.get('SIZE', 96))",
        "from absl import flags\nflags.DEFINE_integer('size', None, 'side')\nSIZE = flags.FLAGS.size",
        "from absl import flags\nflags.DEFINE_integer('size', 96, 'side')\nflags.FLAGS.size = 3\nSIZE = flags.FLAGS.size",
        "from absl import flags\nflags.DEFINE_integer('s', 96, 'side')\nflags.set_default(flags.FLAGS['s'], 3)\nSIZE = flags.FLAGS.s",
    ],
)
def test_what_may_be_something_else_is_not_known(code: str) -> None:
    assert side(migrated(f"{code}\n{USE}")) == "unknown"


def test_a_command_line_without_words_is_certain() -> None:
    result = migrated(f"{PARSER}p.add_argument('--size', default=96)\nSIZE = p.parse_args(args=[]).size\n{USE}")
    assert side(result) == "96"
    assert "PG613" not in codes(result)
    assert "params" not in result.changed


@pytest.mark.parametrize(
    "code",
    [
        "class C:\n    size = 96\nSIZE = C().size",
        "class C:\n    def __init__(self, size=96):\n        self.size = size\nSIZE = C().size",
        "class C:\n    def __init__(self, size, n=1):\n        self.n = size // 2\n        self.size = self.n * 2\nSIZE = C(96, n=3).size",
        "class A:\n    size = 96\nclass C(A):\n    pass\nSIZE = C.size",
        "class A:\n    size = 96\nclass C(A):\n    def __init__(self):\n        self.x = 1\nSIZE = C().size",
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass C:\n    a: int\n    size: int = 96\nSIZE = C(1).size",
        "from typing import NamedTuple\nclass C(NamedTuple):\n    size: int = 3\nSIZE = C(size=96).size",
    ],
)
def test_objects_are_followed(code: str) -> None:
    assert side(migrated(f"{code}\n{USE}")) == "96"


@pytest.mark.parametrize(
    "code",
    [
        "class C:\n    size = 96\n    def __getattr__(self, n):\n        return 3\nSIZE = C().size",
        "class C:\n    size = 96\n    def grow(self):\n        self.size = 3\nc = C()\nc.grow()\nSIZE = c.size",
        "class C:\n    size = 96\n    def __init__(self):\n        if x:\n            self.size = 3\nSIZE = C().size",
        "class C:\n    size = 96\nc = C()\nc.size = 3\nSIZE = c.size",
        "class C:\n    size = 96\nfor n in names:\n    setattr(C, n, 3)\nSIZE = C().size",
        "@other\nclass C:\n    size = 96\nSIZE = C().size",
        "class C(Other):\n    size = 96\nSIZE = C().size",
        "SIZE = 96\nclass C(Other):\n    pass\nSIZE = C.SIZE",
        "class C:\n    @property\n    def size(self):\n        return 96\nSIZE = C().size",
        "import dataclasses as d\n@d.dataclass\nclass C:\n    s: int = 96\n    def __post_init__(self):\n        self.s = 3\nSIZE = C().s",
        "class A:\n    def __init__(self):\n        self.s = 3\nclass C(A):\n    def __init__(self):\n        self.s = 96\n"
        "        super().__init__()\nSIZE = C().s",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    size: int = 96\nc = C()\nc.size += 1\nSIZE = c.size",
        "import types\nc = types.SimpleNamespace(size=96)\nc.__dict__['size'] = 3\nSIZE = c.size",
        "SIZE = [s for s in (96, 3) if s != x][0]",
        "SIZE = [s for s in names][0]",
        "for SIZE in (96, 3):\n    pass",
    ],
)
def test_objects_that_are_not_certain(code: str) -> None:
    assert side(migrated(f"{code}\n{USE}")) == "unknown"


def test_options_with_equal_defaults_are_not_equal_values() -> None:
    code = f"{PARSER}p.add_argument('--a', default=1)\np.add_argument('--b', default=1)\nargs = p.parse_args()\n"
    flows = [
        f"ImageDataGenerator().flow_from_directory('{f}', class_mode=None, seed=args.{s})" for f, s in (("images", "a"), ("masks", "b"))
    ]
    apart = migrated(f"{code}model.fit(zip({', '.join(flows)}))\n")
    assert len(apart.specs) == 2
    together = migrated(f"{code}model.fit(zip({', '.join(flows)}))\n".replace("args.b", "args.a"))
    assert len(together.specs) == 1


def test_height_and_width_from_two_options_are_two_params() -> None:
    code = (
        f"{PARSER}p.add_argument('--h', default=96)\np.add_argument('--w', default=96)\nargs = p.parse_args()\nSHAPE = (args.h, args.w)\n"
    )
    result = migrated(code + "it = ImageDataGenerator().flow_from_directory('d', target_size=SHAPE)\nmodel.fit(it)\n")
    assert 'params={"height": SHAPE[0], "width": SHAPE[1]}' in result.changed
    assert "size: [$height, $width]" in result.specs["train.pipegen.yaml"]


def test_a_size_of_batches_that_may_change_is_not_written_into_the_code() -> None:
    code = f"{PARSER}p.add_argument('--batch', default=8)\nargs = p.parse_args()\n"
    code += "it = ImageDataGenerator().flow_from_directory('d', batch_size=args.batch)\nmodel.fit(it)\nprint(it.batch_size)\n"
    result = migrated(code)
    assert "print(args.batch)" in result.changed
    assert "PG615" not in codes(result)


def test_what_cannot_be_handed_over_is_said() -> None:
    code = f"{PARSER}p.add_argument('--batch', default=8)\nargs = p.parse_args()\n"
    code += "a = ImageDataGenerator().flow_from_directory('d')\nBATCH = args.batch\n"
    code += "b = ImageDataGenerator().flow_from_directory('e', batch_size=BATCH)\nmodel.fit(b, validation_data=a)\n"
    result = migrated(code)
    assert "params" not in result.changed
    assert any(f.code == "PG615" and "is not passed on" in f.message for f in result.findings.items)


@pytest.mark.parametrize("body", ["return g.n", "print(g.class_indices)"])
def test_a_line_that_serves_several_iterators_is_not_edited(body: str) -> None:
    code = "d = ImageDataGenerator()\na = d.flow_from_directory('train')\nb = d.flow_from_directory('val')\n"
    code += f"def show(g):\n    {body}\nmodel.fit(a, validation_data=b)\n"
    result = migrated(code + "show(a)\nshow(b)\n")
    assert result.changed == result.code.text
    assert "PG615" in codes(result)
