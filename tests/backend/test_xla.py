"""When XLA cannot compile a kernel: `auto` says so and goes on with the same numbers, `always` makes it an error."""

from __future__ import annotations

import logging
from pipes import FLIPPED, close, epoch_of, pipeline, shared
from typing import TYPE_CHECKING, Any

import pytest
from processes import in_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

KEEP = {"size": 8, "remainder": "keep"}
TINTED: list[Any] = [*FLIPPED, {"random_contrast": {"factor": 0.3}}, {"normalize": {"preset": "tf"}}]


@pytest.fixture
def no_xla(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Functions that XLA is to compile fail when they are called, as without a compiler for the device."""
    import tensorflow as tf

    from pipegen.backend.kernels import chain as kernels
    from pipegen.backend.process import traced_functions

    plain = tf.function

    def function(f: Any = None, *, jit_compile: Any = None, **own: Any) -> Any:
        if not jit_compile:
            return plain(f, jit_compile=jit_compile, **own)

        class Broken:
            def get_concrete_function(self, *_: Any) -> Any:
                raise tf.errors.UnimplementedError(None, None, "no XLA here\nand more")

            __call__ = get_concrete_function

        return Broken()

    monkeypatch.setattr(kernels.tf, "function", function)
    traced_functions.available.cache_clear()
    yield
    traced_functions.available.cache_clear()


def test_auto_falls_back_with_a_warning(photo_folder: Path, no_xla: None, caplog: pytest.LogCaptureFixture) -> None:
    pipe = pipeline(photo_folder, {"jit": "auto"}, transforms=TINTED, batch=KEEP)
    with caplog.at_level(logging.WARNING, "pipegen"):
        got = epoch_of(pipe, 1)
    assert [r.levelname for r in caplog.records if "XLA" in r.getMessage()]
    assert "no XLA here" in caplog.text
    assert "and more" not in caplog.text
    close(got, epoch_of(shared(photo_folder, {"jit": "never"}, transforms=TINTED, batch=KEEP), 1))


def test_always_raises(photo_folder: Path, no_xla: None) -> None:
    import tensorflow as tf

    with pytest.raises(tf.errors.OpError, match="no XLA here"):
        epoch_of(pipeline(photo_folder, {"jit": "always"}, transforms=TINTED, batch=KEEP), 1)


@pytest.mark.nightly
def test_the_fallback_equals_xla(photo_folder: Path) -> None:
    """One trace and one compile serve full batches and the smaller last one."""
    auto = shared(photo_folder, {"jit": "always"}, transforms=TINTED, batch=KEEP)
    close(epoch_of(auto, 2), epoch_of(shared(photo_folder, {"jit": "never"}, transforms=TINTED, batch=KEEP), 2))
    assert auto._engine.executor("train")._kernels


def test_each_kernel_is_compiled_once(photo_folder: Path, tmp_path: Path) -> None:
    """Over three epochs of two splits with a smaller last batch: warming up, every iterator and every batch share one program."""
    programs = in_process(
        photo_folder,
        f"""
        pipe = pipeline(folder, {{"jit": "always"}}, transforms=[*STEPS, {{"random_rotation": {{"degrees": 9}}}}], batch={KEEP!r},
                        splits={{"parts": {{"train": 0.7, "validation": 0.3}}}})
        for _ in range(3):
            for split in (pipe.train, pipe.validation):
                for _ in split:
                    pass
        made = [p.name.split(".", 1)[1] for p in Path({str(tmp_path)!r}).glob("*before_optimizations.txt")]
        print(json.dumps(made))
        """,
        XLA_FLAGS=f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text",
    )
    kernels = [name for name in programs if "_flat_" in name]
    assert len(kernels) >= 3
    assert len(set(kernels)) == len(kernels), "a kernel was compiled again"
    assert not [name for name in kernels if "config_proto" in name], "a kernel was compiled where no dataset can use it"
    index = [name for name in programs if "_flat_" not in name and "config_proto" not in name]
    assert len(index) == 2, "the draws, for full batches and for the last one"


def test_parameters_are_compiled_once_a_run_is_long(photo_folder: Path, tmp_path: Path) -> None:
    """Before that, XLA would delay the first batch; the numbers are the same."""
    programs, equal = in_process(
        photo_folder,
        f"""
        import numpy as np
        from pipegen.backend.running import execute

        def batches():
            made = pipeline(folder, {{"jit": "always"}}, transforms=[*STEPS, {{"random_rotation": {{"degrees": 9}}}}], batch={KEEP!r}).train
            return [batch[0].numpy() for _ in range(3) for batch in made]

        def programs():
            return len([p for p in Path({str(tmp_path)!r}).glob("*before_optimizations.txt") if "_late_" in p.name])

        short, before = batches(), programs()
        execute.LATE = 16
        late = batches()
        print(json.dumps([[before, programs()], all(map(np.array_equal, short, late))]))
        """,
        XLA_FLAGS=f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text",
    )
    assert programs == [0, 2], "one for full batches, one for the last, or they were compiled too early"
    assert equal
