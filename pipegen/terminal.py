"""Output to terminals and logs: control characters are made visible, and secrets are hidden."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO
from urllib.parse import unquote, unquote_plus

_STARS = "***"
WEB = frozenset({
    "abfs", "abfss", "adl", "az", "gcs", "git+http", "git+https", "grpc", "gs", "hf", "http", "https", "s3", "s3a",
    "webdav", "webdavs", "webhdfs",
})  # fmt: skip
"""Schemes whose user and host end at the first slash; in others, such as databases, a password may contain slashes."""
_TOKEN_FOR_USER = ("http", "https", "git+https")  # schemes in which a user without a password is a token
HARMLESS = frozenset({
    "access_mode", "application_name", "autocommit", "cache", "channel_binding", "charset", "client_encoding", "collation",
    "connect_timeout", "connection_timeout", "database", "dbname", "dl", "download", "driver", "encoding", "encrypt", "format",
    "gssencmode", "host", "hostaddr", "immutable", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval",
    "login_timeout", "mode", "nencoding", "nolock", "page", "port", "raw", "read_timeout", "ref", "service_name", "sslmode",
    "target_session_attrs", "tcp_connect_timeout", "tcp_user_timeout", "tds_version", "threads", "timeout", "trustservercertificate",
    "unix_socket", "use_unicode", "version", "versionid", "write_timeout",
})  # fmt: skip
"""Arguments of URLs whose values are shown, in lower case."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PLAIN_VALUE = re.compile(r"[\w.,:/+ ~-]*")
# One character of the scheme is enough: with the whole scheme, the search in long texts, such as base64, would be quadratic.
_START = re.compile(r"[A-Za-z0-9+.-]://(?P<user>[^\n/:]*):(?!\*+@)")
_WEB_USER = re.compile(r"[^\s/:@?#'\"]*")
_BARE_USER = re.compile(r"[A-Za-z0-9+.-]://(?P<secret>[^\s/:@?#'\"*]+)@")
_QUERY = r"[?&](?P<key>[\w.%~+-]{1,64})="
_QUERY_IN_TEXT = re.compile(_QUERY + r"(?P<secret>[^\s&'\"]*[^\s&'\",.;:!?)>\]}])")
_QUERY_IN_SOURCE = re.compile(_QUERY + r"(?P<secret>[^&\n]+)")
_NAMES = "pass(?:word|wd|phrase)?|pwd|secret|token|api_?key"
_ARGUMENT = re.compile(rf"(?:{_NAMES})(?:=|%3[dD])(?P<secret>(?:(?!%3[bB])[^\s&;'\"])+)", re.IGNORECASE)

Span = tuple[int, int]


def masked(text: str, *, aligned: bool = False) -> str:
    """Replaces the secrets of URLs in a text by stars: `db://user:***@host`, `?password=***`.

    An `aligned` text keeps its length, so that columns stay valid: it is the source of a spec, in which a value ends with its line.
    """
    if "://" not in text:
        return text
    return _starred(text, _secrets_in_text(text, _QUERY_IN_SOURCE if aligned else _QUERY_IN_TEXT), aligned=aligned)


def masked_address(address: str) -> str:
    """Replaces the secrets of a URL by stars, whatever characters they contain."""
    return _starred(address, _secrets_of(address))


def masked_value(text: str) -> str:
    """Hides the secrets of a whole value, such as one of a spec, which may be a URL."""
    return masked_address(text) if _ADDRESS.match(text) is not None else masked(text)


def masked_values(value: Any) -> Any:
    """Hides the secrets in nested plain values; in their serialised text, the ends of URLs would be unknown."""
    if isinstance(value, Mapping):
        return {masked_value(key) if isinstance(key, str) else key: masked_values(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(masked_values, value)) if type(value) in (list, tuple) else [*map(masked_values, value)]
    return masked_value(value) if isinstance(value, str) else value


def secrets_in(address: str) -> list[str]:
    """Lists the secrets that `masked_address` hides in a URL."""
    return [address[start:end] for start, end in _secrets_of(address)]


def without_secrets(address: str) -> Callable[[object], str]:
    """Makes a function that writes an error of a driver on one line, without the secrets of the driver's URL."""
    hidden = {form for secret in secrets_in(address) for form in _forms(secret)}

    def write(error: object) -> str:
        text = str(error).replace(address, masked_address(address))
        for secret in sorted(hidden, key=len, reverse=True):
            text = text.replace(secret, _STARS)
        return masked(" ".join(text.split()))

    return write


def _forms(secret: str) -> Iterator[str]:
    """Yields the forms in which drivers write a secret: as it is, decoded, quoted, on one line. Skips stars, which are hidden already."""
    import html  # for errors alone

    for plain in (secret, unquote(secret), unquote_plus(secret)):
        quoted = (repr(plain)[1:-1], json.dumps(plain)[1:-1], html.escape(plain), plain.replace("'", "''"))
        for form in (plain, *quoted, " ".join(plain.split())):
            if form.strip("* "):
                yield form


def _starred(text: str, spans: list[Span], *, aligned: bool = False) -> str:
    """Replaces spans of a text by stars; they may overlap."""
    parts, at = [], 0
    for start, end in _merged(spans):
        if text[start:end].strip("*"):  # else hidden already
            parts += [text[at:start], "".join("\n" if c == "\n" else "*" for c in text[start:end]) if aligned else _STARS]
            at = end
    return "".join([*parts, text[at:]])


def _merged(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > start:
            found.append((start, end))
    return found


def _secrets_of(address: str) -> list[Span]:
    """Finds the secrets of a URL by its grammar."""
    scheme, mark, rest = address.partition("://")
    begin = len(scheme) + len(mark) if mark else 0
    spans = []
    if scheme.lower() in WEB and mark:
        end = begin + len(re.split(r"[/?#]", rest, maxsplit=1)[0])
        user, colon, password = address[begin:end].partition(":")
        at = address.rfind("@", begin, end)
        if at < 0 and colon and not password.isdigit():
            at = address.rfind("@", begin)  # a password with a slash, which clients reject
        if at >= 0:
            bare = ":" not in address[begin:at]
            if not bare or scheme.lower() in _TOKEN_FOR_USER:
                spans.append((begin if bare else begin + len(user) + 1, at))
    else:
        at, colon_at = address.rfind("@"), address.find(":", begin)
        if 0 <= colon_at < at and "/" not in address[begin:colon_at]:
            spans.append((colon_at + 1, at))
    question = address.find("?", spans[0][1] if spans else begin)
    if question >= 0:
        arguments = re.compile(r"(?:(?P<key>[^&=]*)=)?(?P<value>[^&]*)").finditer(address, question + 1)
        spans += [match.span("value") for match in arguments if not _harmless(match["key"], match["value"])]
    fragment = address.find("#", question) if question < 0 and scheme.lower() in WEB else -1
    if fragment >= 0:
        spans += [(fragment + m.start("secret"), fragment + m.end("secret")) for m in _ARGUMENT.finditer(address[fragment:])]
    return [span for span in _merged(spans) if address[span[0] : span[1]].strip("*")]


def _secrets_in_text(text: str, query: re.Pattern[str]) -> list[Span]:
    """Finds possible secrets of URLs in a text, in which the ends of URLs are unknown."""
    spans: list[Span] = []
    for match in _START.finditer(text):
        end = text.find("\n", match.end())
        line_end = len(text) if end < 0 else end
        at = text.rfind("@", match.end(), line_end)
        if _scheme(text, match.start() + 1) in WEB:
            host = re.compile(r"[^\s/?#'\"]*").match(text, match.end())
            own = text.rfind("@", match.end(), host.end()) if host is not None else -1
            is_port = host is not None and (host[0].isdigit() or not host[0])
            if _WEB_USER.fullmatch(match["user"]) is None or (own < 0 and is_port):
                continue
            at = own if own >= 0 else at
        if at >= 0:
            spans.append((match.end(), at))
    users = (match for match in _BARE_USER.finditer(text) if _scheme(text, match.start() + 1) in _TOKEN_FOR_USER)
    spans += [match.span("secret") for match in users]
    for match in query.finditer(text):
        begin = text.rfind("\n", 0, match.start()) + 1
        if text.find("://", begin, match.start()) >= 0 and not _harmless(match["key"], match["secret"]):
            spans.append(match.span("secret"))
    return spans + [match.span("secret") for match in _ARGUMENT.finditer(text)]


def _scheme(text: str, end: int) -> str:
    start = end
    while start > 0 and end - start < 20 and (text[start - 1].isalnum() or text[start - 1] in "+.-"):
        start -= 1
    return text[start:end].lower()


def _harmless(key: str | None, value: str) -> bool:
    return unquote_plus(key or "").lower() in HARMLESS and _PLAIN_VALUE.fullmatch(unquote_plus(value)) is not None


class Secretive(str):
    """A URL that prints without its secrets; `revealed` contains them."""

    __slots__ = ()

    def __str__(self) -> str:
        return masked_address(self.revealed)

    def __repr__(self) -> str:
        return repr(str(self))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    @property
    def revealed(self) -> str:
        """The URL with its secrets."""
        return str.__str__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.revealed,)


ODD = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters, marks of direction, invisible characters, and single surrogates, as in file names that are not UTF-8."""
_ODD_IN_LINES = re.compile(ODD.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_BREAKS = re.compile("\\s*[\r\n]+\\s*|\t")
_BOLD, _PLAIN = "\ufdd0", "\ufdd1"
"""Placeholders for the escape sequences of `bold` until the text is written; Unicode assigns no characters to them."""


def one_line(text: str) -> str:
    """Puts a text on one line; makes control characters visible, and hides secrets."""
    return masked(ODD.sub(_shown, _BREAKS.sub(" ", text)))


def visible(text: str) -> str:
    """Makes control characters visible, except line breaks and tabs, and hides secrets."""
    return masked(_ODD_IN_LINES.sub(_shown, text.replace("\r\n", "\n")))


def sign_for(char: str) -> str:
    """Visible replacement of a control character."""
    point = ord(char)
    return chr(0x2400 + point) if point < 0x20 else "\u2421" if point == 0x7F else "\ufffd"


def _shown(match: re.Match[str]) -> str:
    return sign_for(match[0])


def json_text(value: object) -> str:
    """Formats a value as indented JSON, with control characters escaped and secrets hidden."""
    text = json.dumps(masked_values(value), indent=2, ensure_ascii=False)
    return _ODD_IN_LINES.sub(lambda m: json.dumps(m[0])[1:-1], text)


def say(text: str = "") -> None:
    """Writes lines to standard output."""
    styled = visible(text).replace(_BOLD, "\x1b[1m").replace(_PLAIN, "\x1b[0m")
    sys.stdout.write((styled if wants_colour(sys.stdout) else visible(text).replace(_BOLD, "").replace(_PLAIN, "")) + "\n")


def note(text: str) -> None:
    """Writes lines to standard error."""
    sys.stderr.write(visible(text) + "\n")


def note_between(text: str) -> None:
    """Writes a line to standard error, over a progress bar that another program may draw there."""
    sys.stderr.write(("\r\x1b[K" if is_terminal(sys.stderr) else "") + visible(text) + "\n")
    sys.stderr.flush()


def bold(text: str) -> str:
    """Marks a text that `say` writes in bold if standard output supports it."""
    return f"{_BOLD}{text}{_PLAIN}" if wants_colour(sys.stdout) else text


def aligned(rows: Iterable[tuple[str, ...]], gap: str = "  ") -> list[str]:
    """Formats rows as lines, each column as wide as its longest cell."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [gap.join(map(str.ljust, row, widths)).rstrip() for row in table]


def wants_colour(stream: TextIO) -> bool:
    """Checks if a stream is a terminal with colours, and NO_COLOR is not set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """Checks if a stream is a terminal."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar on standard error, if that is a terminal; yields a function to call with the number of items done."""
    if not is_terminal(sys.stderr):
        yield lambda _done: None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = [bars.TextColumn("{task.description}"), bars.MofNCompleteColumn()]
    columns[1:1] = [bars.BarColumn()] if total else [bars.SpinnerColumn()]
    columns += [bars.TimeRemainingColumn()] if total else []
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


def _make_visible(record: logging.LogRecord) -> bool:
    record.msg, record.args = visible(record.getMessage()), ()
    return True


log = logging.getLogger("pipegen")
log.addFilter(_make_visible)
