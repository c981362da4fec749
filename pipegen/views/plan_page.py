"""The HTML page of compiled plans: nodes, types, costs, the work of each pass, and examples at each edge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pipegen.frozen import dataclass
from pipegen.page import Html, Page, bar, element, folded, page, picture, table
from pipegen.physical.device import sent
from pipegen.physical.physical_text import render_physical
from pipegen.plan.cost import LEAST_US, Circumstances, PlanCost, plan_cost
from pipegen.plan.nodes import Cache, Node
from pipegen.plan.plan_text import plan_json, render_plan
from pipegen.spec.models import PipelineSpec
from pipegen.spec.units import format_bytes
from pipegen.types import ElementType
from pipegen.views.explanation import CLASSES, Known, remarks, what_it_did

if TYPE_CHECKING:
    from pipegen.passes import Compiled

_STYLE = """
.lead { font-size: 1.05rem; }
ol.plan { list-style: none; margin: 1rem 0; padding: 0; }
.node { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .55rem .9rem; }
.node > header, .stage { display: grid; grid-template-columns: 1fr 8rem; gap: .2rem 1rem; align-items: center; }
.node > header b { margin-right: .5rem; }
.stage { border-top: 1px solid var(--line); margin-top: .5rem; padding-top: .5rem; }
.stage .said { display: flex; align-items: center; gap: .7rem; min-width: 0; }
.stage .said > :last-child { min-width: 0; }
.stage img { width: 3.4rem; height: 3.4rem; object-fit: contain; flex: none; }
.took { font-size: .85em; color: var(--quiet); text-align: right; font-variant-numeric: tabular-nums; }
.took .bar { display: block; margin-top: .2rem; }
.dearest .took { color: var(--ink); font-weight: 600; }
.edge { margin: 0 0 0 1.4rem; border-left: 2px solid var(--line); padding: .6rem 0 .6rem 1.1rem; }
.edge .feature { display: grid; grid-template-columns: minmax(9rem, 17rem) 1fr; gap: .3rem 1rem; align-items: center; }
.edge .feature + .feature { margin-top: .5rem; }
.edge code { font-size: .82em; }
.strip { display: flex; flex-wrap: wrap; gap: .4rem; min-width: 0; }
.strip img { height: 5rem; max-width: 10rem; object-fit: contain; }
.strip.one img { height: 6.5rem; max-width: 13rem; }
.strip.known img { height: 3.4rem; }
@media (max-width: 40rem) {
  .node > header, .stage, .edge .feature { grid-template-columns: 1fr; }
  .took { text-align: left; }
  .edge { margin-left: .5rem; padding-left: .7rem; }
  .strip img { height: 4rem; }
}
"""


@dataclass(frozen=True)
class Seen:
    """A feature of one or more examples at one place of a plan: an image file for each if it has pixels, and the values as text."""

    pictures: tuple[bytes, ...]
    text: str


@dataclass(frozen=True)
class Shown:
    """Examples of a split along its plan, or a caption with the reason why there are none.

    There is each feature behind each node, and behind each stage of each node the feature that it works on.
    """

    caption: str
    edges: tuple[Mapping[str, Seen], ...] = ()
    stages: tuple[tuple[Seen | None, ...], ...] = ()


def plan_page(
    spec: PipelineSpec, spec_hash: str, compiled: Mapping[str, Compiled], known: Mapping[str, Known], shown: Mapping[str, Shown] | None
) -> Page:
    """Makes the page, with `shown` examples of each split if there are any. Physical plans that are `known` are shown, too."""
    name = spec.name or "pipeline"
    links = [element("a", split, href=f"#{i}", class_="chip") for i, split in enumerate(compiled)] if len(compiled) > 1 else []
    head = [element("h1", name), *([element("p", spec.description)] if spec.description else [])]
    head.append(element("p", *links, element("span", f"spec {spec_hash[:12]}", class_="quiet")))
    body = []
    for number, (split, done) in enumerate(compiled.items()):
        own = known[split]
        cost = plan_cost(done.plan, own.given or Circumstances())
        seen = (shown or {}).get(split)
        passes = [(r.name, r.rewrite_class, what_it_did(r), r.reason if r.changed else "") for r in done.records]
        body += [
            element("h2", f"Split {split}", id=str(number)),
            element("p", _lead(done, cost, own.size), class_="lead"),
            *(element("p", line.strip()) for line in remarks(spec, done.plan, own.visits).splitlines()),
            element("p", f"{sent(done.plan).text()}.".replace("to a", "To a", 1), class_="quiet"),
            *([element("p", seen.caption, class_="quiet")] if seen is not None else []),
            element("ol", *_plan(done, cost, seen if seen is not None and seen.edges else None), class_="plan"),
            *(folded("What runs", element("pre", render_physical(run))) for run in own.physical or ()),
            folded("What each pass did", table(("pass", "class", "what it did", "because"), passes), element("p", CLASSES, class_="quiet")),
            *([folded("The plan as written", element("pre", render_plan(done.records[0].before)))] if done.records else []),
        ]
    footing = "Times are for one example on one core, from a cost model: their ratios show where the time goes."
    if any(own.given is None or own.given.assumed for own in known.values()):
        footing += " The data is unknown here, so they assume photographs of 500 × 375 pixels."
    body.append(element("p", footing, class_="quiet"))
    return page(f"{name}: the compiled plan", *head, *body, style=_STYLE)


def _lead(done: Compiled, cost: PlanCost, size: str) -> str:
    """Describes the size of a split, its expected speed, and its most expensive part."""
    parts = [size] if size else []
    if cost.us >= LEAST_US:
        cached = ", once the cache is full" if any(isinstance(n, Cache) for n in done.plan.nodes) else ""
        parts.append(f"{1e6 / cost.us:,.0f} examples/s expected of each core{cached}")
    parts.append(f"{format_bytes(cost.bytes)} of memory beside TensorFlow itself")
    us, what = max(_all_parts(done, cost), default=(0.0, ""))
    dearest = f" The most expensive part, with {us / cost.first_us:.0%} of the time: {what}." if us >= LEAST_US else ""
    return f"{'; '.join(parts)}.{dearest}"


def _all_parts(done: Compiled, cost: PlanCost) -> Iterator[tuple[float, str]]:
    for node, own in zip(plan_json(done.plan)["nodes"], cost.nodes, strict=True):
        yield own.us - sum(own.stages), node["node"]
        yield from zip(own.stages, (stage["text"] for stage in node.get("stages", ())), strict=True)


def _plan(done: Compiled, cost: PlanCost, shown: Shown | None) -> Iterator[Html]:
    most = max((us for us, _ in _all_parts(done, cost)), default=0.0)
    before: ElementType | None = None
    last: Mapping[str, Seen] = {}
    for number, (node, said, own) in enumerate(zip(done.plan.nodes, plan_json(done.plan)["nodes"], cost.nodes, strict=True)):
        title, _, what = said["text"].partition(" ")
        held = f" · holds {format_bytes(own.bytes)}" if own.bytes else ""
        alone = own.us - sum(own.stages)
        header = element(
            "header",
            element("div", element("b", title), element("span", what.strip() + held, class_="quiet")),
            _took(alone, cost.first_us, most),
            class_="dearest" if 0 < alone == most else None,
        )
        seen = shown.stages[number] if shown is not None else (None,) * len(own.stages)
        rows = []
        for stage, us, one in zip(said.get("stages", ()), own.stages, seen, strict=True):
            thumbnail = [picture(one.pictures[0], f"an example after {stage['text']}")] if one is not None and one.pictures else []
            told = element("div", *thumbnail, element("span", stage["text"]), class_="said")
            dearest = " dearest" if 0 < us == most else ""
            rows.append(element("div", told, _took(us, cost.first_us, most), class_=f"stage{dearest}"))
        yield element("li", header, *rows, class_="node", data_node=said["node"])
        here = shown.edges[number] if shown is not None else {}
        yield _edge(node, before, here, known=here == last)
        before, last = node.out, here


def _took(us: float, whole: float, most: float) -> Html:
    """Shows the expected time of a part, with a bar relative to the longest."""
    if us < LEAST_US:
        return element("div")
    share = f"{us / whole:.0%}" if us / whole >= 0.005 else "under 1 %"
    return element("div", f"{us:,.1f} µs, {share}", bar(us / most), class_="took")


def _edge(node: Node, before: ElementType | None, seen: Mapping[str, Seen], *, known: bool) -> Html:
    """Shows the output of a node; omits types equal to the input, and shows only one picture if it is `known`."""
    same = before is not None and node.out == before
    batch = "" if node.out.batch is None else f"{node.out.batch}× " if node.out.batch else "batches of "
    rows = []
    for name in dict.fromkeys((*(name for name in seen if name not in node.out), *node.out)):
        t, own = node.out.get(name), seen.get(name)
        if same and (own is None or not own.pictures):
            continue
        type_ = [element("b", name), " ", element("code", f"{batch}{t}")] if t is not None and not same else [element("b", name)]
        rows.append(element("div", element("div", *type_), _strip(name, own, short=known), class_="feature"))
    return element("li", *rows, class_="edge", data_behind=type(node).__name__.lower())


def _strip(name: str, seen: Seen | None, *, short: bool) -> Html:
    if seen is None:
        return element("div")
    if not seen.pictures:
        return element("div", element("code", seen.text))
    files = seen.pictures[:1] if short else seen.pictures
    pictures = [picture(file, f"{name} of example {i + 1}" + (f": {seen.text}" if i == 0 else "")) for i, file in enumerate(files)]
    caption = element("figcaption", element("code", seen.text)) if seen.text and not short else element("figcaption")
    form = "strip known" if short else "strip one" if len(files) == 1 else "strip"
    return element("figure", element("div", *pictures, class_=form), caption)
