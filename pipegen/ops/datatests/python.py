"""`python`: an assertion of the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PrivateAttr

from pipegen.ops.data_test import ExampleTest, Failure, Outcome, Watch, many, named
from pipegen.ops.families.custom import NamedFunction, function_name

if TYPE_CHECKING:
    from pipegen.ops.data_test import Array, Known, Listed


class Python(NamedFunction, ExampleTest):
    """Calls a Python function on one example at a time, after the steps.

    The function gets a NumPy array for each feature. An example fails if the function returns `False` or a text with the reason, or raises
    an exception, such as an `AssertionError`.
    """

    op = "python"
    examples = ("python: {function: my_pkg.checks:not_blank, feature: image}",)

    function: Annotated[str, function_name("my_pkg.checks:not_blank")]
    """The function, as `module:function`. It is called only if the caller allows its module: `allow_code=["my_pkg"]` in Python,
    `--allow-code my_pkg` on the command line."""
    feature: str | Annotated[list[str], Field(min_length=1)] = "image"
    """The feature, or several in this order, that the function gets."""

    _callee: Any = PrivateAttr(default=None)

    @property
    def call(self) -> str:
        """The call of the function, for messages."""
        return f"fn({', '.join(self.features())})"

    @property
    def num_arguments(self) -> int:
        """The number of its arguments."""
        return len(self.features())

    def with_callee(self, callee: Callable[..., Any]) -> Python:
        """The same test with its function."""
        test = self.model_copy()
        test._callee = callee
        return test

    def features(self) -> tuple[str, ...]:
        return (self.feature,) if isinstance(self.feature, str) else tuple(self.feature)

    def in_memory(self, data: Listed, split: str) -> list[Array] | None:
        return None  # calling the function for every row of a large table would take long: a sample is enough

    def watch(self, known: Known) -> Watch:
        return _Calls(self, self.callee)


class _Calls(Watch):
    """Calls the function, and collects the examples that fail, with the reason of the first one."""

    def __init__(self, test: Python, callee: Callable[..., Any]) -> None:
        self.test = test
        self.callee = callee
        self.seen: dict[str, int] = {}
        self.wrong: dict[str, list[str]] = {}
        self.said: dict[str, str] = {}

    def see(self, split: str, values: Sequence[Array], keys: Sequence[str]) -> None:
        self.seen[split] = self.seen.get(split, 0) + len(keys)
        for key, *example in zip(keys, *values, strict=True):
            said = self._called(example)
            if said is not None:
                self.wrong.setdefault(split, []).append(str(key))
                self.said.setdefault(split, said)

    def _called(self, example: list[Any]) -> str | None:
        """The reason why an example fails, or `None`."""
        try:
            result = self.callee(*(value.copy() for value in example))
            right = isinstance(result, str) or result is None or bool(result)
        except Exception as error:  # any exception means that the example fails
            said = " ".join(str(error).split())
            if isinstance(error, AssertionError):
                return said or "the assertion does not hold"
            return f"{type(error).__name__}{': ' + said if said else ''}"
        if isinstance(result, str):
            return result or "the function gives no reason"
        return None if right else "it returned False"

    def outcome(self) -> Outcome:
        found = []
        for split, wrong in self.wrong.items():
            n = many(self.seen[split], "example")
            message = f"{len(wrong):,} of {n} of `{split}` fail `{self.test.function}`: {named(wrong)}; of the first: {self.said[split]}"
            found.append(Failure("PG720", message, "function"))
        return Outcome("; ".join(f"{split}: {many(n, 'example')}" for split, n in self.seen.items()), tuple(found))
