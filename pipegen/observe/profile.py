"""Profiles: where the time of a pipeline goes, as a sentence, a table, plain values, and a page of HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.frozen import dataclass
from pipegen.observe.parts import blocked_share, is_blocked, measured_parts, remedies, run_sizes
from pipegen.ops.sources.listing.wording import count
from pipegen.page import bar, element, page, table
from pipegen.physical.nodes import forms_of
from pipegen.plan.cost import ASSUMED_FILE, Circumstances
from pipegen.terminal import aligned, json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.api.pipeline import Pipeline
    from pipegen.observe.measured import Recording
    from pipegen.observe.parts import Part, Remedy
    from pipegen.page import Page


STARVED = 0.05
"""The share of its time from which on waiting counts as a problem."""
UNATTRIBUTED = 0.15
"""The share of processor time outside of all parts from which on the report mentions it."""
_SHOWN = 0.005
"""The least share of a part with a line of its own."""
_IDLE = 0.5
"""The share of time below which busy threads are not what a model waits for: handing over batches takes the rest."""


@dataclass(frozen=True)
class Profile:
    """The analysis of a recording: the time of each node and stage, settings that would help, and if threads mostly wait for other things
    than cores."""

    recording: Recording
    parts: tuple[Part, ...]
    remedies: tuple[Remedy, ...]
    blocked: bool

    @property
    def dearest(self) -> Part:
        """The part that takes the most time."""
        return max(self.parts, key=lambda part: part.us)

    @property
    def starves(self) -> bool:
        """The consumer of the batches waits for them."""
        return self.recording.wait_share >= STARVED

    def of_threads(self, part: Part) -> float:
        """Computes the share of a part in the time of all threads."""
        trace = self.recording.trace
        return min(1.0, part.us * self.recording.traced_examples / 1e6 / (trace.seconds * self.recording.threads)) if trace.seconds else 0.0

    @property
    def sentence(self) -> str:
        """What the model waits for, and the best remedy, in one sentence."""
        found, part = self.recording, self.dearest
        made = 1e-3 * sum(p.us for p in self.parts) / found.threads * found.examples / max(found.batches, 1)
        if not self.starves:
            step = 1000 * (found.seconds - found.waited) / max(found.batches, 1)
            makers = count(found.threads, "thread")
            return f"the model does not wait: its step takes {step:.0f} ms, and {makers} can make a batch in {made:.0f} ms"
        unit = "thread" if self.blocked else "core"
        whose = f"the model waits {found.wait_share:.0%} of its time: " if found.model_ms is not None else ""
        waits = ", mostly waiting" if self.blocked else ""
        name = part.name + (" (estimated)" if part.estimated else "")
        return f"{whose}{name} takes {self.of_threads(part):.0%} of {count(found.threads, unit)}{waits}; {self._remedy()}"

    def _remedy(self) -> str:
        if self.remedies:
            return str(self.remedies[0])
        if self.blocked:
            return "no setting of `runtime:` would help by much"
        if self._occupied < _IDLE:
            rest = f"{1 - self._occupied:.0%}"
            return f"the threads rest {rest} of the time, so neither a setting of `runtime:` nor more cores would help by much"
        return "no setting of `runtime:` would help by much, more cores would"

    def text(self) -> str:
        """Formats the profile as text."""
        found = self.recording
        shown = [(p.share, p.us, p.text + (", estimated" if p.estimated else "")) for p in self.parts if p.share >= _SHOWN]
        rows = [("share", "µs an image", ""), *((f"{share:>5.0%}", f"{us:>11,.0f}", text) for share, us, text in shown)]
        lines = [self.sentence, "", *aligned(self._facts()), "", *aligned(rows)]
        small = sum(part.share < _SHOWN and part.us > 0 for part in self.parts)
        lines += [f"and {small} that take less"] if small else []
        if len(self.remedies) > 1:
            lines += ["", "also:", *(f"  {remedy}" for remedy in self.remedies[1:])]
        lines += ["", *found.notes] if found.notes else []
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        found = self.recording
        beside = "only the pipeline ran" if found.model_ms is None else f"a model of {found.model_ms:.0f} ms a step took them"
        measured = f"{found.batches:,} batches of split {found.split} in {found.seconds:.1f} s, and {found.trace.seconds:.1f} s traced"
        facts = [
            ("images/s", f"{found.rate:,.0f}; {beside}"),
            ("threads", f"{found.threads}, busy {self._occupied:.0%} of the time"),
            ("measured", measured),
        ]
        if found.trace.queued > 0.1 * found.trace.cpu:
            share = found.trace.queued / (found.trace.queued + found.trace.cpu)
            facts.append(("other programs", f"held the cores for {share:.0%} of the time that this one could have used"))
        if found.trace.unattributed > UNATTRIBUTED:
            lost = f"{found.trace.unattributed:.0%} of the processor time: the shares and the gains below are uncertain"
            facts.append(("in no part", lost))
        return facts

    @property
    def _occupied(self) -> float:
        return min(1.0, sum(map(self.of_threads, self.parts)))

    def as_json(self) -> dict[str, Any]:
        """Converts the profile to plain values."""
        found, part = self.recording, self.dearest
        return {
            "version": 1,
            "sentence": self.sentence,
            "split": found.split,
            "starves": self.starves,
            "stage": part.name,
            "stage_share_of_threads": self.of_threads(part),
            "wait_share": found.wait_share,
            "images_per_s": found.rate,
            "model_ms": found.model_ms,
            "threads": found.threads,
            "threads_busy": self._occupied,
            "blocked_share": blocked_share(found),
            "unattributed_share": found.trace.unattributed,
            "batches": found.batches,
            "images": found.examples,
            "seconds": found.seconds,
            "traced": {"images": found.traced_examples, **{k: v for k, v in vars(found.trace).items() if k != "busy"}},
            "parts": [
                {"name": p.name, "text": p.text, "us": p.us, "share": p.share, "estimated": p.estimated, "expected_us": p.expected}
                for p in self.parts
            ],
            "remedies": [{"setting": r.setting, "times": r.times, "bytes": r.bytes or None} for r in self.remedies],
            "notes": list(found.notes),
        }

    def rendered(self, form: str) -> str:
        """Formats the profile as `text`, `json` or `html`."""
        return self.text() if form == "text" else json_text(self.as_json()) if form == "json" else self.page()

    def page(self) -> Page:
        """Makes a page of the profile, with a bar for each stage."""
        rows = [
            (f"{p.share:.0%}", f"{p.us:,.0f}", bar(p.share), p.text + (", estimated" if p.estimated else "")) for p in self.parts if p.us
        ]
        also = [element("p", str(remedy)) for remedy in self.remedies[1:]]
        notes = [element("p", text, class_="quiet") for text in self.recording.notes]
        stages = table(("share", "µs an image", "", "stage"), rows, (0, 1))
        head = (element("h1", "Profile"), element("p", self.sentence), table((), self._facts()))
        more = (element("h2", "What else would help"), *also) if also else ()
        return page("Profile", *head, element("h2", "Where the time goes"), stages, *more, *notes, style=_STYLE)


_STYLE = "td:nth-child(3) { min-width: 8rem; }"


def analyse(pipe: Pipeline, found: Recording, factors: Mapping[str, float] | None = None) -> Profile:
    """Analyses a recording of one of a pipeline's splits; `factors` of the machine are those of `phases/machine_settings.py`."""
    executor = pipe._engine.executor(found.split)
    plan = executor.plan
    given = Circumstances(
        found.file_bytes or ASSUMED_FILE, found.threads, found.examples_in_split, assumed=not found.file_bytes, factors=factors or {}
    )
    parts = measured_parts(plan, found, run_sizes(executor.physical(forms_of(plan)[0])), given)
    best = remedies(pipe, found, parts, given) if found.wait_share >= STARVED else []
    return Profile(found, tuple(parts), tuple(best), is_blocked(found))
