"""Pages as a real browser sees them: Debian's Chromium, off line; without it a test is left out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_CHROMIUM = Path("/usr/bin/chromium")
_LOOK = """\
import json, sys
from playwright.sync_api import sync_playwright
found = []
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[1], args=["--no-sandbox"])
    for path, width, scheme in json.loads(sys.argv[2]):
        tab = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
        said, asked = [], []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("dialog", lambda dialog: (said.append("a dialog"), dialog.dismiss()))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto("file://" + path)
        shown = tab.frames[-1]
        found.append({
            "said": said,
            "asked": [url for url in asked[1:] if not url.startswith(("data:", "about:"))],
            "broken": shown.evaluate("[...document.images].filter(i => !i.complete || !i.naturalWidth || !i.alt).length"),
            "pictures": shown.locator("img").count(),
            "over": shown.evaluate("document.documentElement.scrollWidth - innerWidth"),
            "paper": shown.evaluate("getComputedStyle(document.body).backgroundColor"),
        })
    browser.close()
print(json.dumps(found))
"""


def looked_at(*pages: tuple[Path, int, str]) -> list[dict[str, Any]]:
    """Opens pages, each at a width in pixels and in the `light` or the `dark` scheme.

    Returns:
        Of each: what it `said` on the console, which addresses it `asked` for besides its own, how many pictures are `broken` or have no
        words, how many `pictures` there are, by how many pixels it is wider than the window (`over`), and the colour of its `paper`.
    """
    pytest.importorskip("playwright")
    if not _CHROMIUM.exists():
        pytest.skip("there is no Chromium")
    command = [sys.executable, "-c", _LOOK, str(_CHROMIUM), json.dumps([(str(path), width, scheme) for path, width, scheme in pages])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
