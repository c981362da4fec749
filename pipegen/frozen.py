"""Dataclasses that are made quickly: importing pipegen makes some 230 of them.

The standard library compiles up to six methods for each, one by one. Here a frozen class gets a compiled `__init__` alone; `==`, `hash` and
`repr` are functions that all classes share. Fields, `replace`, `asdict`, `match` and pickles are those of `dataclasses`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    from reprlib import recursive_repr

    _MISSING = dataclasses.MISSING
    _set = object.__setattr__

    def _setattr(self: Any, name: str, value: Any) -> None:  # noqa: ARG001
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _delattr(self: Any, name: str) -> None:  # noqa: ARG001
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def _eq(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__compared__)

    def _hash(self: Any) -> int:
        return hash(tuple([getattr(self, name) for name in self.__hashed__]))

    def _getstate(self: Any) -> list[Any]:
        return [getattr(self, f.name) for f in dataclasses.fields(self)]

    def _setstate(self: Any, state: list[Any]) -> None:
        for f, value in zip(dataclasses.fields(self), state, strict=True):
            _set(self, f.name, value)

    @recursive_repr()
    def _repr(self: Any) -> str:
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Makes a dataclass as `dataclasses.dataclass` does; what is not a plain frozen class is left to that."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if not _is_plain(cls, options):
            return dataclasses.dataclass(cls, **options)
        own = {name: cls.__dict__[name] for name in ("__eq__", "__hash__", "__repr__") if cls.__dict__.get(name) is not None}
        bases = [base.__dict__["__dataclass_params__"] for base in cls.__mro__[1:] if "__dataclass_params__" in base.__dict__]
        for params in bases:  # only frozen classes may derive from frozen ones, and `frozen` would compile two methods
            params.frozen = False
        doc = cls.__doc__
        cls.__doc__ = doc or cls.__name__  # else the signature would be worked out for it
        try:
            made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=options.get("slots", False))
        finally:
            for params in bases:
                params.frozen = True
        made.__dataclass_params__.frozen = made.__dataclass_params__.eq = made.__dataclass_params__.init = (
            made.__dataclass_params__.repr
        ) = True
        fields = dataclasses.fields(made)
        made.__init__ = _initialiser(made, fields)
        made.__setattr__, made.__delattr__ = _setattr, _delattr
        made.__compared__ = tuple(f.name for f in fields if f.compare)
        made.__hashed__ = tuple(f.name for f in fields if (f.compare if f.hash is None else f.hash))
        for name, shared in (("__eq__", _eq), ("__hash__", _hash), ("__repr__", _repr)):
            if name not in own:
                setattr(made, name, shared)
        if options.get("slots"):  # as `dataclasses` does for frozen ones, which cannot be filled by `setattr`
            for name, shared in (("__getstate__", _getstate), ("__setstate__", _setstate)):
                if name not in cls.__dict__:
                    setattr(made, name, shared)
        return made

    def _is_plain(cls: type, options: dict[str, Any]) -> bool:
        """Tells whether a class is frozen, has positional fields alone, and derives from such."""
        if not options.get("frozen") or set(options) - {"frozen", "slots"} or "__init__" in cls.__dict__:
            return False
        for base in cls.__mro__[1:]:
            params = base.__dict__.get("__dataclass_params__")
            if params is not None and not params.frozen:
                return False
        texts = [str(a) for base in cls.__mro__ for a in vars(base).get("__annotations__", {}).values()]
        return not any("KW_ONLY" in text or "InitVar" in text for text in texts)

    def _initialiser(made: type, fields: tuple[dataclasses.Field[Any], ...]) -> Any:
        names: dict[str, Any] = {"_s": _set, "_M": _MISSING}
        head, body = [], []
        for f in fields:
            value = f.name
            if f.default_factory is not _MISSING:
                names[f"_f_{f.name}"] = f.default_factory
                value = f"_f_{f.name}()"
                if f.init:
                    head.append(f"{f.name}=_M")
                    value = f"_f_{f.name}() if {f.name} is _M else {f.name}"
            elif f.default is not _MISSING:
                names[f"_d_{f.name}"] = f.default
                if f.init:
                    head.append(f"{f.name}=_d_{f.name}")
                else:
                    value = f"_d_{f.name}"
            elif f.init:
                head.append(f.name)
            else:
                continue
            body.append(f" _s(self,{f.name!r},{value})")
        if hasattr(made, "__post_init__"):
            body.append(" self.__post_init__()")
        exec("\n".join([f"def __init__(self,{','.join(head)}):", *body, " pass"]), names)  # noqa: S102 - fields of our own classes
        names["__init__"].__qualname__ = f"{made.__qualname__}.__init__"
        names["__init__"].__module__ = made.__module__
        return names["__init__"]
