"""The base of everything that a spec is made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """The base of everything a spec is made of: frozen, strict about unknown keys, each field documented by the string
    below it (`ops/docs.py` reads those).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
