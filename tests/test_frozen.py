"""Frozen dataclasses that are made quickly are what those of the standard library are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from dataclasses import field, fields, replace
from typing import Any, ClassVar

import pytest

from pipegen import frozen


def shapes(dataclass: Any, slots: bool) -> tuple[type, type, type]:
    """Classes with every kind of field, made by one of the two decorators."""

    @dataclass(frozen=True, slots=slots)
    class Base:
        kind: ClassVar[str] = "base"

        x: int
        y: tuple[int, ...] = ()
        aside: Any = field(default=None, compare=False)
        unhashed: Any = field(default=1, hash=False)
        hidden: str = field(default="h", repr=False)
        made: list[int] = field(default_factory=list, compare=False)
        derived: int = field(init=False, default=7)

    @dataclass(frozen=True, slots=slots)
    class Child(Base):
        """A class with a docstring."""

        z: float = 2.0

        def __post_init__(self) -> None:
            object.__setattr__(self, "derived", self.x + 1)

    @dataclass(frozen=True, slots=slots)
    class Own:
        a: int
        b: int = 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.a == other.a

        def __repr__(self) -> str:
            return "own"

    return Base, Child, Own


@pytest.mark.parametrize("slots", [False, True])
def test_they_are_alike(slots: bool) -> None:
    for ours, theirs in zip(shapes(frozen.dataclass, slots), shapes(dataclasses.dataclass, slots), strict=True):
        assert [f.name for f in fields(ours)] == [f.name for f in fields(theirs)]
        assert ours.__match_args__ == theirs.__match_args__
        assert str(ours.__dataclass_params__) == str(theirs.__dataclass_params__)
        assert hasattr(ours, "__slots__") == hasattr(theirs, "__slots__") == slots
        of = lambda cls: [cls(3), cls(3), cls(4), cls(3, (1, 2)), replace(cls(3), **{fields(cls)[1].name: (9,)})]  # noqa: E731
        mine, other = of(ours), of(theirs)
        assert [[a == b for b in mine] for a in mine] == [[a == b for b in other] for a in other]
        assert [repr(a) for a in mine] == [repr(a) for a in other]
        assert [hash(a) == hash(mine[0]) for a in mine] == [hash(a) == hash(other[0]) for a in other]
        assert [dataclasses.asdict(a) for a in mine] == [dataclasses.asdict(a) for a in other]
        assert mine[0] != other[0]
        first = fields(ours)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mine[0], first, 1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(mine[0], first)
        assert copy.copy(mine[3]) == copy.deepcopy(mine[3]) == mine[3]
        with pytest.raises(TypeError):
            ours()
        with pytest.raises(TypeError):
            ours(3, no_such=1)


def test_fields_that_do_not_compare_or_hash() -> None:
    base = shapes(frozen.dataclass, slots=True)[0]
    assert base(1, aside=1) == base(1, aside=2)
    assert hash(base(1, unhashed=[])) == hash(base(1, unhashed=2)), "equal objects alone need equal hashes"
    assert base(1, unhashed=1) != base(1, unhashed=2)
    assert base(1).made is not base(1).made


@frozen.dataclass(frozen=True, slots=True)
class _Slotted:
    a: int
    b: str = "b"


@frozen.dataclass(frozen=True)
class _Open:
    a: int
    b: str = "b"


@pytest.mark.parametrize("cls", [_Slotted, _Open])
def test_they_are_pickled(cls: type) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(cls(1, "x"), protocol)) == cls(1, "x")


def test_what_is_not_frozen_is_left_to_the_standard_library() -> None:
    @frozen.dataclass
    class Open:
        a: int

    made = Open(1)
    made.a = 2
    assert made == Open(2)


def test_a_class_of_pipegen_is_made_in_this_way() -> None:
    import pipegen.phases.compilation  # noqa: F401 - and what it imports

    found = [
        cls
        for name, module in list(sys.modules.items())
        if name.startswith("pipegen.")
        for cls in vars(module).values()
        if dataclasses.is_dataclass(cls) and isinstance(cls, type) and cls.__module__ == name and cls.__dataclass_params__.frozen
    ]
    quick = [cls for cls in found if "__compared__" in vars(cls)]
    assert len(quick) > 0.8 * len(found) > 100
    for cls in quick:
        assert cls.__compared__ == tuple(f.name for f in fields(cls) if f.compare), cls
