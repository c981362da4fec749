"""Lowers each stage to TensorFlow.

A batch stage is lowered in two halves: `prepare` turns an example's draws into parameters, in float64, which XLA may compile where
`params_are_quantised`; `run` is a pure function of an image and those parameters, which XLA may compile and a device may run.
One example is a batch of one, so the unoptimised plan and the optimised one share this file.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeGuard

import tensorflow as tf

from pipegen.backend.features import Features, Found, Params, Phase
from pipegen.backend.index.mixing import mix, mix_params
from pipegen.backend.index.uses import acts, own_draws, step_of
from pipegen.backend.kernels import colour as c
from pipegen.backend.kernels.branches import apply_branch
from pipegen.backend.kernels.neighbourhood import neighbourhood, neighbourhood_params, neighbourhood_phases
from pipegen.backend.kernels.positions import Size, around, fits_int32, fixed_homography, fixed_matrix, locate, project
from pipegen.backend.kernels.tables import histogram_table, look_up, table_params
from pipegen.backend.kernels.warp import mirror, read
from pipegen.errors import InternalError
from pipegen.ops.base import ConstantFill, CropTransform
from pipegen.ops.lowering.colours import compose
from pipegen.ops.lowering.linear import multiply
from pipegen.plan import stages as s


def geometric_matrix(ref: s.StepRef, draws: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """One step's output-to-input matrix, float64 `(n, 3, 3)`."""
    u = own_draws(ref, draws)
    if isinstance(ref.step, CropTransform):
        window = ref.step.window(u, tf.cast(height, tf.int32), tf.cast(width, tf.int32))
        window = tf.cast(tf.broadcast_to(window, [tf.shape(draws)[0], 4]), tf.float64)
        one, zero = tf.ones_like(window[:, 0]), tf.zeros_like(window[:, 0])
        return tf.stack(
            [tf.stack([one, zero, window[:, 1]], -1), tf.stack([zero, one, window[:, 0]], -1), tf.stack([zero, zero, one], -1)], -2
        )
    matrix = step_of(ref, draws).matrix(u, height, width)  # type: ignore[attr-defined]
    eye = tf.eye(3, batch_shape=[tf.shape(draws)[0]], dtype=tf.float64)
    matrix = tf.broadcast_to(matrix, tf.shape(eye))
    return tf.where(acts(ref, draws)[:, None, None], matrix, eye) if ref.conditional else matrix


def colour_matrix(ref: s.StepRef, draws: tf.Tensor, channels: int) -> c.ColourMatrix:
    """One step's colour matrix, float64."""
    n = tf.shape(draws)[0]
    a, b, m = step_of(ref, draws).matrix(own_draws(ref, draws), channels)  # type: ignore[attr-defined]
    out = a.shape[-2]
    a, b, m = tf.broadcast_to(a, [n, out, channels]), tf.broadcast_to(b, [n, out]), tf.broadcast_to(m, [n, out])
    if not ref.conditional:
        return a, b, m
    eye, zero, _ = c.identity(n, channels)
    when = acts(ref, draws)
    return tf.where(when[:, None, None], a, eye), tf.where(when[:, None], b, zero), tf.where(when[:, None], m, zero)


def _canvas(stage: s.Compose | s.Warp, image: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    height, width = stage.canvas
    shape = tf.shape(image)
    return (
        tf.constant(height, tf.float64) if height is not None else tf.cast(shape[1], tf.float64),
        tf.constant(width, tf.float64) if width is not None else tf.cast(shape[2], tf.float64),
    )


def _product(stage: s.Warp, image: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
    height, width = _canvas(stage, image)
    matrix = geometric_matrix(stage.refs[0], draws, height, width)
    for ref in stage.refs[1:]:
        matrix = multiply(matrix, geometric_matrix(ref, draws, height, width))
    return matrix


def parameters(stage: s.Stage, features: Features) -> Params:
    """The parameters of a batch stage: functions of the draws, and of who is in a group with whom."""
    if isinstance(stage, s.Mix):
        return mix_params(stage, features)
    return prepare(stage, features[stage.feature], features["@draws"])


def prepare(stage: s.Stage, image: tf.Tensor, draws: tf.Tensor) -> Params:
    """The parameters of a batch stage: functions of the draws alone, rounded once."""
    if isinstance(stage, s.Warp):
        matrix = _product(stage, image, draws)
        return (matrix,) if stage.mirrors else (_fixed(matrix, image, stage),)
    if isinstance(stage, s.Colour):
        matrix = colour_matrix(stage.refs[0], draws, stage.channels)
        for ref in stage.refs[1:]:
            matrix = compose(matrix, colour_matrix(ref, draws, int(matrix[0].shape[-2])))
        return tuple(tf.cast(part, tf.float32) for part in matrix)
    if isinstance(stage, s.LookupTable):
        return table_params(stage, draws)
    if isinstance(stage, s.Neighbourhood):
        return neighbourhood_params(stage, image, draws)
    return ()


def params_are_quantised(stage: s.Stage) -> bool:
    """Returns whether a stage rounds its parameters from float64 to far fewer bits, so that XLA may compute them: what differs in the last
    bit of a float64 is the same afterwards. A table is not among these, since it may round what lies just between two numbers."""
    return isinstance(stage, (s.Warp, s.Colour))


def phases(stage: s.Stage) -> tuple[Phase, ...]:
    """Returns what a stage does before `run`, one function after another: what the next one reads more than once, such as parameters
    of one value a pixel. Each is pure and is compiled apart."""
    if isinstance(stage, s.Neighbourhood):
        return neighbourhood_phases(stage)
    if isinstance(stage, s.LookupTable) and stage.reads_histogram:
        return (partial(histogram_table, stage),)
    if isinstance(stage, s.Warp) and not stage.mirrors:
        if stage.projective:
            return partial(_project, stage), partial(_around, stage)
        return (lambda value, params: _locate(value, params[0], stage),)
    return ()


def expand(stage: s.Stage, value: tf.Tensor, params: Params) -> Params:
    """The parameters after every phase."""
    for phase in phases(stage):
        params = phase(value, params)
    return params


def run(stage: s.Stage, value: tf.Tensor, params: Params) -> tf.Tensor:
    """A batch stage as a pure function of a feature `(n, ...)` and its expanded parameters."""
    match stage:
        case s.Warp():
            return mirror(value, params[0]) if stage.mirrors else _read(value, params, stage)
        case s.Colour():
            a, b, m = params
            how = {"uses_mean": stage.uses_mean, "mixes_channels": stage.mixes_channels, "exact": stage.exact}
            return c.apply_colour(value, (a, b, m), stage.clip, **how)
        case s.LookupTable():
            return look_up(value, params[0])
        case s.Neighbourhood():
            return neighbourhood(stage, value, params)
        case s.Mix():
            return mix(stage, value, params)
        case s.Pointwise():
            return c.pointwise(value, stage.arithmetic, exact=stage.exact)
        case s.ChannelsFirst():
            return tf.transpose(value, [0, 3, 1, 2])
        case s.EncodeLabel():
            return _encode(value, stage)
    raise InternalError(f"{type(stage).__name__} is no batch stage")


def _size(image: tf.Tensor, stage: s.Warp | s.Resample) -> Size:
    """Height and width of the output, in pixels."""
    shape = tf.shape(image)
    height, width = stage.size
    return height if height is not None else shape[1], width if width is not None else shape[2]


def _fixed(matrix: tf.Tensor, image: tf.Tensor, stage: s.Warp | s.Resample) -> tf.Tensor:
    """The matrices in fixed point."""
    if stage.projective:
        return fixed_homography(matrix, _size(image, stage))
    return fixed_matrix(matrix, stage.interpolation)


def _locate(image: tf.Tensor, fixed: tf.Tensor, stage: s.Warp | s.Resample) -> Params:
    return locate(
        fixed,
        canvas=_canvas_of(image),
        size=_size(image, stage),
        fill=_fill(stage),
        interpolation=stage.interpolation,
        narrow=fits_int32((image.shape[1], image.shape[2]), stage.size),
    )


def _read(image: tf.Tensor, located: Params, stage: s.Warp | s.Resample) -> tf.Tensor:
    return read(image, located, fill=_fill(stage), constant=_constant(stage), exact=stage.exact)


def _project(stage: s.Warp, image: tf.Tensor, params: Params) -> Params:
    return project(params[0], size=_size(image, stage), fill=_fill(stage), interpolation=stage.interpolation)


def _around(stage: s.Warp, image: tf.Tensor, params: Params) -> Params:
    index = tf.int16 if fits_int32((image.shape[1], image.shape[2]), stage.size) else tf.int32
    return around(params[0], params[1], _canvas_of(image), _fill(stage), stage.interpolation, index)


def _canvas_of(image: tf.Tensor) -> Size:
    """Height and width of what is read, in pixels."""
    shape = tf.shape(image)
    height, width = (image.shape[a] if image.shape[a] is not None else shape[a] for a in (1, 2))
    return height, width


def _fill(stage: s.Warp | s.Resample) -> str:
    return stage.fill if isinstance(stage.fill, str) else "constant"


def _constant(stage: s.Warp | s.Resample) -> float:
    return stage.fill.constant if isinstance(stage.fill, ConstantFill) else 0.0


def _encode(label: tf.Tensor, stage: s.EncodeLabel) -> tf.Tensor:
    if label.shape.rank == 4:  # a mask, whose last axis is the class
        label = label[..., 0]
    if stage.encoding == "binary":
        return tf.cast(label, tf.float32)[..., None]
    if stage.encoding == "multi_hot":
        return tf.cast(label, tf.float32)
    if stage.encoding == "one_hot":
        return tf.one_hot(label, stage.classes or 0, dtype=tf.float32)
    return label


def apply_stage(stage: s.Stage, features: Features) -> None:
    """Run a batch stage on a batch, in place, with its parameters from the draws."""
    name, draws = stage.feature, features["@draws"]
    match stage:
        case s.Compose():
            matrix = geometric_matrix(stage.ref, draws, *_canvas(stage, features[name]))
            features[f"@matrix/{name}"] = matrix if stage.opens else multiply(features[f"@matrix/{name}"], matrix)
        case s.Resample():
            fixed = _fixed(features.pop(f"@matrix/{name}"), features[name], stage)
            features[name] = _read(features[name], _locate(features[name], fixed, stage), stage)
        case s.ComposeColour():
            matrix = colour_matrix(stage.ref, draws, stage.channels)
            key = f"@colour/{name}"
            if not stage.opens:
                matrix = compose((features[f"{key}/a"], features[f"{key}/b"], features[f"{key}/m"]), matrix)
            features |= dict(zip((f"{key}/a", f"{key}/b", f"{key}/m"), matrix, strict=True))
        case s.ApplyColour():
            key = f"@colour/{name}"
            a, b, m = (tf.cast(features.pop(f"{key}/{part}"), tf.float32) for part in "abm")
            features[name] = c.apply_colour(features[name], (a, b, m), stage.clip, uses_mean=stage.uses_mean, exact=stage.exact)
        case _:
            value = features[name]
            features[name] = run(stage, value, expand(stage, value, parameters(stage, features)))


def apply_element(stage: s.Stage, features: Features, found: Found | None = None) -> None:
    """Run any stage on one example, in place; a batch stage sees a batch of one. `found` is what a survey says of it, if there was one."""
    name = stage.feature
    draws = features["@draws"]
    match stage:
        case s.Decode():
            features[name] = _decode(stage, features, found)
        case s.DecodeWindow():
            features[name] = _decode_window(stage, features[name], draws, found)
        case s.Apply():
            features[name] = stage.ref.step.apply(features[name], own_draws(stage.ref, draws))  # type: ignore[attr-defined]
        case s.Branch():
            apply_branch(stage, features, lambda single: _applied(stage.stage, single))
        case s.Crop():
            features[name] = _crop(stage.ref, features[name], own_draws(stage.ref, draws))
        case _:
            single = {k: v[None] for k, v in features.items() if k == name or k.startswith("@")}
            apply_stage(stage, single)
            for key in [k for k in features if k.startswith("@") and k not in single]:
                del features[key]
            features.update({k: v[0] for k, v in single.items()})


def surveyed(stage: s.Stage) -> TypeGuard[s.Decode | s.DecodeWindow]:
    """Returns whether it helps a stage to look at several examples before it works on each."""
    return isinstance(stage, (s.Decode, s.DecodeWindow))


def survey(stage: s.Decode | s.DecodeWindow, examples: list[Features]) -> list[Found]:
    """Returns what a decoder finds out of several examples at once: of each, what `apply_element` is told."""
    contents = [features[stage.feature] for features in examples]
    decoder: Any = stage.decode.step if isinstance(stage, s.DecodeWindow) else stage.ref.step
    window = None
    if isinstance(stage, s.DecodeWindow):
        crop: Any = stage.crop.step
        window = partial(crop.window, own_draws(stage.crop, tf.stack([features["@draws"] for features in examples])))
    found: list[Found] = decoder.survey(contents, stage.needed, window)
    return found


def _applied(stage: s.Stage, features: Features) -> Features:
    done = dict(features)
    apply_stage(stage, done)
    return done


def _crop(ref: s.StepRef, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
    step: Any = ref.step
    shape = tf.shape(image)
    top, left, height, width = tf.unstack(step.window(u, shape[0], shape[1]))
    window = tf.slice(image, [top, left, 0], [height, width, -1])
    window.set_shape([None, None, image.shape[-1]])
    return step.finish(window)


def _decode(stage: s.Decode, features: Features, found: Found | None) -> tf.Tensor:
    decoder: Any = stage.ref.step
    contents = features[stage.feature]
    if stage.like is None:
        return decoder.decode(contents, stage.needed) if found is None else decoder.decode_surveyed(contents, found, stage.needed)
    name, other = stage.like
    image: tf.Tensor = decoder.decode(contents)
    own, wanted = tf.shape(image)[:2], other.step.stored_size(features[name])  # type: ignore[attr-defined]
    shown = tf.strings.format(f"its size is {{}}, and that of `{name}`, on which it lives, is {{}} (height, width)", (own, wanted))
    same = tf.debugging.Assert(tf.reduce_all(own == wanted), [shown])
    with tf.control_dependencies([same] if same is not None else []):
        return tf.identity(image)


def _decode_window(stage: s.DecodeWindow, contents: tf.Tensor, draws: tf.Tensor, found: Found | None) -> tf.Tensor:
    crop: Any = stage.crop.step
    decoder: Any = stage.decode.step

    def window(height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        # Within it, so that an example whose window was found by the survey takes no draws out of its row.
        place: tf.Tensor = crop.window(own_draws(stage.crop, draws), height, width)
        return place

    if found is None:
        return crop.finish(decoder.decode_window(contents, window, stage.needed, whole=stage.whole))
    return crop.finish(decoder.decode_surveyed(contents, found, stage.needed, window, whole=stage.whole))
