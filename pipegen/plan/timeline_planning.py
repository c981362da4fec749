"""Planning for items that happen in a sound, such as events: they are moved right before the steps that move their sound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipegen.errors import OpError
from pipegen.ops.families.decoder import SoundDecoder
from pipegen.ops.families.item_stages import CutInSound, EnterSound, MoveInSound
from pipegen.ops.families.sounds import TimeTransform
from pipegen.ops.kinds.audio import sound_of
from pipegen.ops.kinds.base import Timeline, kind_of
from pipegen.ops.stage import Stage, StepRef
from pipegen.types import ElementType, FeatureType

Emitted = Iterator[tuple[Stage, str, FeatureType]]  # stages, each with its feature and the type after it


def happening_in(type_: ElementType, sound: str) -> tuple[str, ...]:
    """The features whose items happen in a sound."""
    return tuple(name for name, t in type_.items() if t.of == sound and t.beside is None and kind_of(t).has(Timeline))


def entered(type_: ElementType, sound: str, decoder: object = None) -> Emitted:
    """Yields the stages that place the stored items of a sound that is decoded, by `decoder` if it was a file."""
    for name in happening_in(type_, sound):
        x, geometry = type_[name], kind_of(type_[name]).geometry
        prepared = geometry.prepared_type(x) if geometry is not None else None
        if prepared is not None:
            offset = decoder.offset if isinstance(decoder, SoundDecoder) else 0.0
            yield EnterSound(name, x.kind, sound, sound_of(type_[sound]).rate, x.details, type_.riders(name), offset), name, prepared


def moved(refs: Sequence[StepRef], type_: ElementType, sound: str) -> Emitted:
    """Yields the stages that move the items of a sound as uses of steps are about to move the sound. Raises `OpError`: `PG203` for a step
    that items cannot follow."""
    for name in happening_in(type_, sound):
        for ref in refs:
            step = ref.step
            no_rule = OpError("PG203", f"`{step.op}` has no rule for events", help=f"leave the step or `{name}` out")
            wrong = step.moves_apart() if isinstance(step, TimeTransform) else no_rule
            if wrong is not None:
                raise OpError(wrong.code, f"{wrong.message}, and `{name}` has some", field=wrong.field, help=wrong.help)
        x = type_[name]
        rate = sound_of(type_[sound]).rate
        yield MoveInSound(name, x.kind, sound, rate, x.details, type_.riders(name), tuple(refs)), name, x


def cut(type_: ElementType, sound: str, to: int | None) -> Iterator[Stage]:
    """Yields the stages that cut the items of a sound, or of its spectra, as it is about to be cut to a length."""
    for name in happening_in(type_, sound):
        x, own = type_[name], sound_of(type_[sound])
        yield CutInSound(name, x.kind, sound, own.rate, x.details, type_.riders(name), to, own.hop or 1.0)
