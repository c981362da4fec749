"""A module that cannot be imported, since it needs one that is not there."""

from __future__ import annotations

import a_module_that_is_not_there  # type: ignore[import-not-found]  # noqa: F401
