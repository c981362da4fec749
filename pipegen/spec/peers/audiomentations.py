"""Classes of audiomentations as steps of a spec. The arguments of a function are those of the class, with its defaults."""

from __future__ import annotations

import math

from pipegen.spec.peers import converting as c

TITLE = "audiomentations"
IGNORED = frozenset({"lru_cache_size", "n_fft", "signal_gain_db_during_noise"})  # arguments that change nothing here
COLORS = {0: "white", -3: "pink", -6: "brown", 3: "blue", 6: "violet"}
"""The colours of noise by their decibels an octave."""


def add_background_noise(
    sounds_path, min_snr_db=3.0, max_snr_db=30.0, noise_rms="relative", min_absolute_rms_db=-45.0, max_absolute_rms_db=-15.0,
    noise_transform=None, p=0.5,
) -> c.Steps:  # fmt: skip
    if not isinstance(sounds_path, str):
        c.refuse("`files` is one folder or pattern", "sounds_path")
    c.only("noise_transform", noise_transform, None, why="noise is not changed before it is added")
    if noise_rms == "absolute":
        levels = c.number("min_absolute_rms_db", min_absolute_rms_db), c.number("max_absolute_rms_db", max_absolute_rms_db)
        return c.step("random_noise", p, rms=c.span(*levels), files=sounds_path)
    c.only("noise_rms", noise_rms, "relative", why="noise is relative to the sound, or absolute")
    ratios = c.span(c.number("min_snr_db", min_snr_db), c.number("max_snr_db", max_snr_db))
    return c.step("random_noise", p, snr_db=ratios, files=sounds_path)


def add_color_noise(min_snr_db=5.0, max_snr_db=40.0, min_f_decay=-6.0, max_f_decay=6.0, p_apply_a_weighting=0.0, p=0.5) -> c.Steps:
    ratios = c.span(c.number("min_snr_db", min_snr_db), c.number("max_snr_db", max_snr_db))
    nearest = c.step("random_noise", p, snr_db=ratios, color="pink")
    if min_f_decay != max_f_decay or c.number("min_f_decay", min_f_decay) not in COLORS:
        c.refuse("a step has noise of one colour, of 0, 3 or 6 dB an octave", "min_f_decay", nearest)
    c.only("p_apply_a_weighting", p_apply_a_weighting, 0, why="noise is not weighted")
    return c.step("random_noise", p, snr_db=ratios, color=COLORS[min_f_decay])


def add_gaussian_noise(min_amplitude=0.001, max_amplitude=0.015, p=0.5) -> c.Steps:
    ends = c.number("min_amplitude", min_amplitude), c.number("max_amplitude", max_amplitude)
    if min(ends) <= 0:
        c.refuse("its level in decibels is infinite", "min_amplitude")
    step = c.step("random_noise", p, rms=c.span(*(round(20.0 * math.log10(end), 2) for end in ends)))
    if ends[0] != ends[1]:
        c.refuse("audiomentations draws an amplitude, and `random_noise` its decibels", nearest=step)
    return step


def apply_impulse_response(ir_path, p=0.5, leave_length_unchanged=True) -> c.Steps:
    if not isinstance(ir_path, str):
        c.refuse("`files` is one folder or pattern", "ir_path")
    nearest = c.step("random_reverb", p, files=ir_path)
    c.refuse("audiomentations keeps the delay of a response, and scales the result to the sound's peak", nearest=nearest)


def normalize(apply_to="all", p=0.5) -> c.Steps:
    c.only("apply_to", apply_to, "all", why="every sound gets the level")
    return c.step("loudness", peak=0) if p == 1 else c.step("random_loudness", p, peak=[0, 0])


def shift(min_shift=-0.5, max_shift=0.5, shift_unit="fraction", rollover=True, fade_duration=0.005, p=0.5) -> c.Steps:
    c.only("shift_unit", shift_unit, "fraction", "seconds", why="a shift is in `seconds` or a `share` of the sound")
    distance = c.zero(c.number("min_shift", min_shift), c.number("max_shift", max_shift))
    unit = {"share" if shift_unit == "fraction" else "seconds": distance}
    return c.step("random_shift", p, **unit, fill=None if rollover else "silence")


def trim(top_db=30.0, p=0.5) -> c.Steps:
    return c.step("trim", p, db=c.number("top_db", top_db))
