"""What may be an iterator that was exchanged, and was not edited, is said at its line; what is something else is not."""

from __future__ import annotations

import pytest

from pipegen.migrate.migration import migrate_code
from pipegen.migrate.reading import parse_code

HEAD = """import pandas as pd
from net import build, model, Config, wrap
from keras.preprocessing.image import ImageDataGenerator
g = ImageDataGenerator()
"""


def remarks(code: str) -> list[tuple[str, str]]:
    """The last line's remarks on code that has to be edited by hand."""
    text = HEAD + code
    result = migrate_code(parse_code("train.py", text.encode()))
    assert "pipegen.build" in result.changed
    last = len(text.splitlines())
    return [(f.message, f.help) for f in result.findings.of("by hand") if f.line == last]


MAKE = "train = g.flow_from_directory('d')\n"


@pytest.mark.parametrize(
    ("code", "what", "help_"),
    [
        (
            "class D(Base):\n    def f(self):\n        self.t = g.flow_from_directory('d')\nprint(D().t.filenames)\n",
            "`.filenames`",
            "files",
        ),
        (
            "t = 0\ndef f():\n    global t\n    t = g.flow_from_directory('d')\nf()\nprint(t.batch_size)\n",
            "no `.batch_size`",
            "the number",
        ),
        (f"{MAKE}model.fit_generator(wrap(train), 9)\n", "`wrap` took a Keras iterator", ""),
        (
            f"{MAKE}many = wrap(train)\nmodel.fit_generator(many, 9)\n",
            "`fit_generator` does not exist in Keras 3; it is not edited",
            "write `fit`",
        ),
        (f"{MAKE}model.fit(**dict(x=train))\n", "its unpacked arguments may contain the iterator", "remove `steps_per_epoch`"),
    ],
)
def test_what_may_be_an_iterator_is_said(code: str, what: str, help_: str) -> None:
    found = remarks(code)
    assert any(what in message and help_ in text for message, text in found), found


@pytest.mark.parametrize(
    "code",
    [
        f"{MAKE}df = pd.DataFrame({{'n': train.filepaths}})\nprint(df.n, df.classes)\n",
        f"{MAKE}cfg = Config()\nprint(cfg.batch_size, cfg.num_classes, cfg.next())\n",
        f"{MAKE}net = build(train.num_classes)\nprint(net.classes, net.reset())\n",
        f"{MAKE}history = model.fit(train)\nprint(history.n, history.samples)\n",
        f"{MAKE}model.fit(train)\nscores = model.predict(train)\nprint(scores.n)\n",
        "class T:\n    def f(self, m):\n        self.t = g.flow_from_directory('d')\n        m.fit(self.t)\n    def h(self):\n"
        "        return self.batch_size\n",
        f"{MAKE}def f(rows):\n    return rows.n\n",
        f"{MAKE}model.fit_generator(train, steps_per_epoch=train.samples // 32)\n",
        f"{MAKE}print(train.samples)\n",
    ],
)
def test_what_is_something_else_is_not_said(code: str) -> None:
    assert remarks(code) == []
