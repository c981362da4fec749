"""Lists what the language reserves for later: the loader answers "not yet" where it would say "unknown".

To bring something in, add it to the models or the ops and remove it here; what is registered wins over this table.
"""

from __future__ import annotations

from pipegen.spec.source_map import KeyPath

KEYS: dict[KeyPath, str] = {}
"""Keys, with what they will hold."""

SOURCES = frozenset({"audio_folder", "text"})

SOURCE_KEYS = frozenset({"features", "of", "bits"})
"""Arguments that describe features one by one."""

FEATURE_KEYS = frozenset({"columns", "separator", "values", "channels", "bits"})
"""Arguments of one feature, where the source does not know them."""

KINDS = frozenset({"text", "audio"})
"""What a feature of a source is to be, beside what sources know."""
