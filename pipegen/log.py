"""The logger of pipegen, whose lines hold nothing that a terminal would obey."""

from __future__ import annotations

import logging

from pipegen.terminal import visible


def _make_visible(record: logging.LogRecord) -> bool:
    record.msg, record.args = visible(record.getMessage()), ()
    return True


log = logging.getLogger("pipegen")
log.addFilter(_make_visible)
