"""Hooks of mkdocs: they draw the home page, make a page for each step and source, and write `llms.txt`.

In the checkout, `docs/ops.md` is one long page. On the site it is a gallery, and each step and source has a page `ops/NAME.md`.
`<!-- site: NAME -->` in a page marks a place that is filled here. Everything is made from the spec on the page, the registry, the
committed pictures and the table of `docs/speed.md`.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel
from PIL import Image

from pipegen.cli.reference.ops import all_ops, section, summary
from pipegen.ops.registry import sources, transforms

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
HOME, STEPS, SOURCES, SHEET = "index.md", "ops.md", "sources-table.md", "pictures/contact-sheet.jpg"
PHOTOS = DOCS.parent / "examples" / "quickstart" / "photos"
SHOWN = ("cat", "coffee", "rocket")
"""Classes of photographs on the contact sheet of the home page."""
TILE, GAP = 192, 4
"""Width of an image in a committed picture and the space between two, in pixels (`docs/make_pictures.py`)."""

FAMILIES = {
    "Size and crops": ("resize", "pad", "crop", "box_crops"),
    "Flips, turns and other geometry": ("flip", "rotate_90", "affine", "rotation", "shear", "translation", "zoom", "perspective"),
    "Distortions": ("distortions", "grid_shuffle"),
    "Colour": ("brightness", "contrast", "saturation", "hue", "color_jitter", "grayscale", "channels", "domain_adaptation", "stain"),
    "Tone curves": ("equalization", "gamma", "posterization", "solarization", "tone_curve"),
    "Light and weather": ("light", "color_temperature", "weather"),
    "Blur, sharpness and lenses": ("blurs", "sharpness", "morphology"),
    "Noise and compression": ("noise", "degradation"),
    "Dropout": ("dropout",),
    "Mixing examples": ("mixup", "mosaic", "copy_paste"),
    "Policies": ("auto_augment", "rand_augment", "aug_mix", "one_of"),
    "Values and dtypes": ("decode", "rescale", "normalize", "standardize", "whiten"),
    "Sound: level, noise and rooms": ("gain", "background", "reverb", "frequency_filters"),
    "Sound: time and pitch": ("timing",),
    "Spectra": ("spectrogram", "log", "delta", "spec_augment"),
    "Time series": ("series", "time_warp"),
    "Own functions": ("python",),
}
"""Modules of `pipegen.ops.transforms` under each heading of the gallery."""

_TEXTS: dict[str, str] = {}
"""Markdown of each page by its path, without what only a browser shows: `llms.txt` links to it."""
_PICTURES = re.compile(r"!\[\]\(.+?\)\{.+?\} |^</?div.*>\n\n", re.MULTILINE)
"""Small pictures of the gallery, and what lays them out."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the table of sources to the navigation, below the steps."""

    def extended(entries: list[Any]) -> list[Any]:
        found: list[Any] = []
        for entry in entries:
            for title, value in entry.items():
                found.append({title: extended(value) if isinstance(value, list) else value})
                if value == STEPS:
                    found.append({"Sources": SOURCES})
        return found

    config.nav = extended(config.nav or [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for each step and source, small pictures of the steps, and the table of sources."""
    for name, op in all_ops().items():
        files.append(File.generated(config, f"ops/{name}.md", content=section(op), inclusion=InclusionLevel.NOT_IN_NAV))
    for name in transforms():
        if (picture := DOCS / "pictures" / f"{name}.jpg").exists():
            files.append(File.generated(config, f"pictures/small/{name}.jpg", content=small(picture)))
    files.append(File.generated(config, SOURCES, content=sources_page()))
    files.append(File.generated(config, SHEET, content=drawn(home_spec())[0]))
    return files


def on_nav(nav: Navigation, files: Files, **_: Any) -> Navigation:
    """Puts the pages of steps and sources below the section of the gallery, whose tab is then lit."""
    gallery = files.get_file_from_path(STEPS)
    parent = gallery.page.parent if gallery is not None and gallery.page is not None else None
    for page in (file.page for file in files.documentation_pages() if file.src_uri.startswith("ops/")):
        if page is not None:
            page.parent = parent
    return nav


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fills the marked places of a page, and links to the page of each step and source."""
    uri = page.file.src_uri
    if uri == STEPS:
        markdown = gallery_page()
    if uri.startswith("ops/"):
        page.title = posixpath.basename(uri).removesuffix(".md")
        markdown = op_page(markdown, page.title)
    markdown = re.sub(r"\bops\.md#(\w+)\)", r"ops/\1.md)", markdown)
    _TEXTS[uri] = _PICTURES.sub("", markdown)
    if uri == HOME:
        page.meta["hide"] = ["navigation", "toc"]
        markdown = home_page(markdown)
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Writes `llms.txt`, and the Markdown of each page beside its HTML."""
    site = Path(config.site_dir)
    for uri, text in _TEXTS.items():
        (site / uri).parent.mkdir(parents=True, exist_ok=True)
        (site / uri).write_text(text, encoding="utf-8")
    (site / "llms.txt").write_text(llms_text(config), encoding="utf-8")


def small(picture: Path) -> bytes:
    """Cuts one image out of the picture of a step, as JPEG: of the draws, the one that differs most from the original."""
    with Image.open(picture) as strip:
        tiles = [strip.crop((x, 0, x + TILE, strip.height)) for x in range(0, strip.width, TILE + GAP)]
    original, *results = (np.asarray(tile, np.float32) for tile in tiles)
    most = max(range(len(results)), key=lambda i: float(np.abs(results[i] - original).mean()))
    buffer = io.BytesIO()
    tiles[1 + most].save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def op_page(markdown: str, name: str) -> str:
    """The section of a step or source as a page, with its picture at the top."""
    image = f"![{name}](pictures/{name}.jpg)\n"
    text = re.sub(r"^## ", "# ", markdown, count=1)
    if image in text:
        text = text.replace(image, "", 1)
        caption = "The first image enters the step; the others leave it."
        text = re.sub(r"(?m)^(\*step, .*)$", rf"\1\n\n![{name}: before and after](../pictures/{name}.jpg)\n\n{caption}", text, count=1)
    back = f"[All steps](../{STEPS})" if name in transforms() else f"[All sources](../{SOURCES})"
    return f"{text.rstrip()}\n\n`pipegen ops {name}` prints this page. {back}.\n"


def gallery_page() -> str:
    """A small picture of what each step does, by family.

    Raises:
        PluginError: For a module of steps that has no place in `FAMILIES`.
    """
    module = {name: step.__module__.rpartition(".")[2] for name, step in transforms().items()}
    placed = [m for modules in FAMILIES.values() for m in modules]
    if set(module.values()) != set(placed):
        raise PluginError(f"docs/hooks.py: FAMILIES and pipegen/ops/transforms differ: {sorted(set(module.values()) ^ set(placed))}")
    lines = [
        "# Steps",
        "",
        "What each step makes of one photograph, sound or series. A random step shows the strongest of four draws; its page shows all of",
        f"them, its arguments and examples. For data to read, see [sources]({SOURCES}).",
        "",
    ]
    for family, modules in FAMILIES.items():
        names = [n for m in modules for n in sorted(module, key=_fixed_first) if module[n] == m]
        lines += [f"## {family}", "", '<div class="gallery" markdown>', "", *(_card(name) for name in names), "", "</div>", ""]
    return "\n".join(lines)


def _fixed_first(name: str) -> tuple[str, bool]:
    return name.removeprefix("random_"), name.startswith("random_")


def _card(name: str) -> str:
    drawn = (DOCS / "pictures" / f"{name}.jpg").exists()
    image = f"![](pictures/small/{name}.jpg){{ loading=lazy width={TILE} height=128 }} " if drawn else ""
    return f"- {image}[`{name}`](ops/{name}.md) {_one_line(summary(all_ops()[name]))}"


def sources_page() -> str:
    """The table of sources: what each reads, and whether many records lie in one file."""
    lines = [
        "# Sources",
        "",
        "Where examples come from; one of these stands under [`source`](reference/source.md). [Sources of records](sources.md) has",
        f"a worked example of each: data, spec and what is printed. For what is done to examples, see [steps]({STEPS}).",
        "",
        "| source | reads |",
        "|---|---|",
        *(f"| [`{name}`](ops/{name}.md) | {_one_line(summary(op))} |".replace(r"\|", "|") for name, op in sources().items()),
        "",
    ]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "&#124;")


def home_page(markdown: str) -> str:
    """The home page with the contact sheet and the plan of its spec, and a chart of speeds.

    Raises:
        PluginError: If a mark is missing from the page.
    """
    parts = {
        "contact sheet": f"![Contact sheet: originals at the left, augmented draws of each beside them]({SHEET})",
        "plan": f"```text\n{drawn(home_spec())[1]}\n```",
        "speed": speed_chart((DOCS / "speed.md").read_text(encoding="utf-8"), ("geometric", "ImageNet", "RandAugment")),
    }
    for name, text in parts.items():
        mark = f"<!-- site: {name} -->"
        if mark not in markdown:
            raise PluginError(f"docs/{HOME}: the mark {mark} is missing")
        markdown = markdown.replace(mark, text)
    return markdown


def home_spec() -> str:
    """The first block of YAML on the home page.

    Raises:
        PluginError: If the page has none.
    """
    match = re.search(r"^```yaml.*?\n(.*?)^```", (DOCS / HOME).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if match is None:
        raise PluginError(f"docs/{HOME}: a spec in a block of YAML is missing")
    return match[1]


@cache
def drawn(spec: str) -> tuple[bytes, str]:
    """Runs `pipegen preview` and `pipegen explain` on photographs of the quickstart.

    Returns:
        The contact sheet as JPEG, and the plan of the training split as text.
    """
    with tempfile.TemporaryDirectory() as scratch:
        for name in SHOWN:
            folder = Path(scratch, "photos", name)
            folder.mkdir(parents=True)
            for file in sorted((PHOTOS / name).glob("part4-*.jpg")):
                shutil.copy(file, folder)
        Path(scratch, "photos.pipegen.yaml").write_text(spec, encoding="utf-8")
        _pipegen(scratch, "preview", "photos.pipegen.yaml", "--rows", str(len(SHOWN)), "--draws", "5", "-o", "sheet.png")
        plan = _pipegen(scratch, "explain", "photos.pipegen.yaml").partition("\nexpected cost")[0]
        buffer = io.BytesIO()
        with Image.open(Path(scratch, "sheet.png")) as sheet:
            sheet.convert("RGB").save(buffer, "JPEG", quality=88)
    return buffer.getvalue(), plan.partition("\n\n")[2].strip()


def _pipegen(folder: str, *words: str) -> str:
    """Runs a command and returns what it prints.

    Raises:
        PluginError: If it fails, with its message.
    """
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": os.pathsep.join([str(DOCS.parent), *sys.path[1:]])}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pipegen", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PluginError(f"pipegen {words[0]} fails on the spec of docs/{HOME}:\n{done.stdout}{done.stderr}")
    return done.stdout


def speed_chart(page: str, recipes: tuple[str, ...]) -> str:
    """Bars of the first table of `docs/speed.md`, in HTML: images per second of each system, a group for each recipe.

    Raises:
        PluginError: If the page has no such table, or says no date.
    """
    table = takewhile(lambda line: line.startswith("|"), dropwhile(lambda line: not line.startswith("|"), page.splitlines()))
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    measured = re.search(r"Measured on (\S+) on ([^(]+?) \(", page)
    if measured is None or not set(recipes) <= set(head):
        raise PluginError(f"docs/speed.md: no table of {', '.join(recipes)}, or no date")
    groups = []
    for recipe in recipes:
        cells = ((row[0].strip("*"), row[head.index(recipe)].strip("*")) for row in rows if not row[0].startswith("limit"))
        rates = {re.sub(r"`(.+?)`", r"<code>\1</code>", system): int(rate.replace(",", "")) for system, rate in cells if rate != "–"}
        bars = "".join(
            f"<li{' class=own' if system == 'pipegen' else ''}><span>{system}</span>"
            f'<b style="--share: {rate / max(rates.values()):.3f}">{rate:,}</b></li>'
            for system, rate in sorted(rates.items(), key=lambda pair: -pair[1])
        )
        groups.append(f"<figure><figcaption>{recipe}</figcaption><ul>{bars}</ul></figure>")
    caption = f"Images per second on {measured[2]}, measured on {measured[1]}."
    return f'<div class="speeds">{"".join(groups)}</div>\n\n{caption}'


def llms_text(config: MkDocsConfig) -> str:
    """The index for programs that read documentation (llmstxt.org): each page with its first sentence, by section."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    lines += ["Each link is Markdown; the same address with `.html` is the page for a browser.", ""]

    def listed(entries: list[Any], heading: str) -> None:
        pages = [(title, value) for entry in entries for title, value in entry.items() if isinstance(value, str)]
        if pages:
            lines.extend([f"## {heading or 'Overview'}", "", *(f"- [{t}]({u}): {first_sentence(_TEXTS[u])}" for t, u in pages), ""])
        for entry in entries:
            for title, value in entry.items():
                if isinstance(value, list):
                    listed(value, f"{heading}: {title}" if heading else title)

    listed(config.nav or [], "")
    for heading, ops in (("Each step", transforms()), ("Each source", sources())):
        lines += [f"## {heading}", "", *(f"- [{name}](ops/{name}.md): {_plain(summary(op))}" for name, op in ops.items()), ""]
    return "\n".join(lines)


def first_sentence(markdown: str) -> str:
    """The first sentence of a page's first paragraph, in plain text."""
    text = re.sub(r"^(---\n.*?\n---\n|```.*?^```|<!--.*?-->)", "", markdown, flags=re.MULTILINE | re.DOTALL)
    paragraphs = (part.strip() for part in text.split("\n\n"))
    first = next((part for part in paragraphs if part and part[0] not in "#|-!<*"), "")
    return _plain(re.split(r"(?<=[.:?])\s", " ".join(first.split()), maxsplit=1)[0]).rstrip(":")


def _plain(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(text.split()))
