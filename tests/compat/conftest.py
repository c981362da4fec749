"""What tests of flows share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def plain_kernels() -> Iterator[None]:
    """Pipelines and flows without XLA, since each of its kernels takes seconds to compile."""
    import pipegen
    from pipegen.compat import base_iterator

    runtime = {"jit": "never", "cache": "none"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipegen, "build", partial(pipegen.build, runtime=runtime))
        patch.setattr(base_iterator, "build_by_place", partial(base_iterator.build_by_place, runtime=runtime))
        yield
