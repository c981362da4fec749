"""Reads a page of HTML into its elements and its text."""

from __future__ import annotations

from html.parser import HTMLParser


class Tags(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, key: str) -> list[str | None]:
        """The values of an attribute, in order."""
        return [attrs[key] for _, attrs in self.found if key in attrs]
