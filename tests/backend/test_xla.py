"""When XLA cannot compile a kernel: `auto` says so and goes on with the same numbers, `always` makes it an error."""

from __future__ import annotations

import logging
from pipes import COLOUR, close, epoch_of, pipeline, shared
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

KEEP = {"size": 8, "remainder": "keep"}


@pytest.fixture
def no_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that XLA is to compile fail when they are called, as without a compiler for the device."""
    import tensorflow as tf

    from pipegen.backend import kernels

    plain = tf.function

    def function(f: Any = None, *, jit_compile: Any = None, **own: Any) -> Any:
        if not jit_compile:
            return plain(f, jit_compile=jit_compile, **own)

        class Broken:
            def get_concrete_function(self, *_: Any) -> Any:
                raise tf.errors.UnimplementedError(None, None, "no XLA here\nand more")

        return Broken()

    monkeypatch.setattr(kernels.tf, "function", function)


def test_auto_falls_back_with_a_warning(photo_folder: Path, no_xla: None, caplog: pytest.LogCaptureFixture) -> None:
    pipe = pipeline(photo_folder, {"jit": "auto"}, transforms=COLOUR, batch=KEEP)
    with caplog.at_level(logging.WARNING, "pipegen"):
        got = epoch_of(pipe, 1)
    assert [r.levelname for r in caplog.records if "XLA" in r.getMessage()]
    assert "no XLA here" in caplog.text
    assert "and more" not in caplog.text
    close(got, epoch_of(shared(photo_folder, {"jit": "never"}, transforms=COLOUR, batch=KEEP), 1))


def test_always_raises(photo_folder: Path, no_xla: None) -> None:
    import tensorflow as tf

    with pytest.raises(tf.errors.OpError, match="no XLA here"):
        epoch_of(pipeline(photo_folder, {"jit": "always"}, transforms=COLOUR, batch=KEEP), 1)


def test_the_fallback_equals_xla(photo_folder: Path) -> None:
    """One trace and one compile serve full batches and the smaller last one."""
    auto = shared(photo_folder, {"jit": "always"}, transforms=COLOUR, batch=KEEP)
    close(epoch_of(auto, 2), epoch_of(shared(photo_folder, {"jit": "never"}, transforms=COLOUR, batch=KEEP), 2))
    assert auto._engine.executor("train")._kernels
