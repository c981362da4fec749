"""Lowering of stages to TensorFlow: a table with an entry for each.

A batch stage is lowered in two halves. Its parameters turn an example's draws into numbers, in float64; XLA may compile them if they are
quantised. `run` is a pure function of a feature and those parameters, which XLA may compile and a device may run.
One example is a batch of one, so the unoptimised and the optimised plan share this table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import tensorflow as tf

from pipegen.backend.features import Features, Found, Params, Phase
from pipegen.backend.index.combined_groups import combine, combining_params, paste
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.kernels import in_sound, moving
from pipegen.backend.kernels.canvas_crops import canvas_crop, canvas_crop_params, canvas_words
from pipegen.backend.kernels.colour import apply_pending, colour, colour_params, compose_colour, pointwise
from pipegen.backend.kernels.convolutions import convolution, convolution_params, transfers
from pipegen.backend.kernels.geometry_kernels import compose_matrix, moves, resample, warp, warp_params, warp_phases
from pipegen.backend.kernels.lengths import mark_length, measure_length, pad_length
from pipegen.backend.kernels.table_kernels import blend_chains, chain_phases, changes_values, histogram_table, look_up, table_params
from pipegen.backend.kernels.warp import around, outside, read, sides
from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.ops.families import item_stages
from pipegen.ops.families.chains import BlendChains
from pipegen.ops.families.combining import Combine
from pipegen.ops.families.convolutions import Convolution
from pipegen.ops.families.crops import CanvasCrop, ChooseWindow, window_name
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.ops.families.lengths import MarkLength, MeasureLength, PadLength
from pipegen.ops.families.lookup_tables import LookupTable
from pipegen.ops.families.neighbourhood import DisplacementTransform, HostNeighbourhood, Neighbourhood
from pipegen.ops.lowering.decoding import Survey
from pipegen.ops.lowering.linear import as_float32
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.step_bases import CropTransform
from pipegen.plan import stages as s


def decode(stage: Decode, features: Features, found: Found | None) -> None:
    """Decodes a file; fails if its size is not that of the image it is aligned with."""
    decoder, contents = stage.ref.step, features[stage.feature]
    if stage.like is None:
        features[stage.feature] = (
            decoder.decode(contents, stage.needed) if found is None else decoder.decode_surveyed(contents, found, stage.needed)
        )
        return
    name, other = stage.like
    image = decoder.decode(contents)
    image = other.step.fitted(image, features[name]) if decoder.turnable else image
    own, wanted = tf.shape(image)[:2], other.step.stored_size(features[name])
    message = tf.strings.format(f"its size is {{}}, but that of `{name}`, which it is aligned with, is {{}} (height, width)", (own, wanted))
    same = tf.debugging.Assert(tf.reduce_all(own == wanted), [message])
    with tf.control_dependencies([same] if same is not None else []):
        features[stage.feature] = tf.identity(image)


def decode_window(stage: DecodeWindow, features: Features, found: Found | None) -> None:
    """Decodes a window of a file."""
    crop, decoder, contents, draws = stage.crop.step, stage.decode.step, features[stage.feature], features["@draws"]

    def window(height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        # Inside the function, so that an example with a surveyed window slices no draws.
        return step_of(stage.crop, draws).window(own_draws(stage.crop, draws), height, width)

    if found is None:
        pixels = decoder.decode_window(contents, window, stage.needed, whole=stage.whole)
    else:
        pixels = decoder.decode_surveyed(contents, found, stage.needed, window, whole=stage.whole)
    features[stage.feature] = crop.finish(pixels)


def one_step(stage: s.Crop | s.Apply, features: Features) -> None:
    """Cuts a window out of an image, or changes it by a function."""
    features[stage.feature] = _done(stage.ref, features[stage.feature], features)


def sometimes_sized(stage: s.SometimesSized, features: Features) -> None:
    """Does each step whose condition holds."""
    image = features[stage.feature]
    for ref in stage.refs:
        image = tf.cond(acts(ref, features["@draws"]), partial(_done, ref, image, features), partial(tf.identity, image))
    image.set_shape([*stage.size, image.shape[-1]])
    features[stage.feature] = image


def _done(ref: StepRef[Any], image: tf.Tensor, features: Features) -> tf.Tensor:
    """The result of a step on one image."""
    draws, step, window = features["@draws"], ref.step, features.get(window_name(ref))
    if not isinstance(step, CropTransform):
        return step_of(ref, draws).apply(image, own_draws(ref, draws))
    if window is None:
        shape = tf.shape(image)
        window = step_of(ref, draws).window(own_draws(ref, draws), shape[0], shape[1])
    return step.finish(step.cut(image, window))


def survey(stage: Decode | DecodeWindow, examples: list[Features]) -> Survey | None:
    """Surveys several examples at once, if the decoder can."""
    contents = [features[stage.feature] for features in examples]
    window = None
    if isinstance(stage, DecodeWindow):
        draws = tf.stack([features["@draws"] for features in examples])
        window = partial(step_of(stage.crop, draws).window, own_draws(stage.crop, draws))
    return stage.decode.step.survey(contents, stage.needed, window)


def neighbourhood_params(stage: Neighbourhood, features: Features) -> Params:
    """The step's own parameters, followed by whether it acts if that is drawn."""
    ref, draws, value = stage.ref, features["@draws"], features[stage.feature]
    shape = sides(value if value.shape.rank != 2 else value[..., None])  # labels of time steps have no channels
    own: Params = step_of(ref, draws).parameters(own_draws(ref, draws), *shape)
    return (*own, acts(ref, draws)) if ref.conditional else own


def neighbourhood_phases(stage: Neighbourhood) -> tuple[Phase, ...]:
    """The step's phases, without the flag for acting; for a displacement also one that finds what each pixel reads."""
    step: Any = stage.ref.step

    def places(image: tf.Tensor, right: tf.Tensor, down: tf.Tensor) -> Params:
        """The rows, columns and weights that `read` takes, from displacements in 1/256 pixel."""
        height, width = sides(image)
        half = 128 if step.interpolation == "nearest" else 0
        x = right + 256 * tf.range(width)[None, None, :] + half
        y = down + 256 * tf.range(height)[None, :, None] + half
        index = tf.int16 if isinstance(height, int) and isinstance(width, int) else tf.int32  # static sides are below 2^15
        return around(x, y, (height, width), outside(step.fill)[0], step.interpolation, index)

    def phase(own: Callable[..., Params], image: tf.Tensor, params: Params) -> Params:
        image = _entering(stage, image)
        return (*own(image, *params[:-1]), params[-1]) if stage.ref.conditional else own(image, *params)

    own = [*step.phases(), places] if isinstance(step, DisplacementTransform) else step.phases()
    return tuple(partial(phase, one) for one in own)


def neighbourhood(stage: Neighbourhood, image: tf.Tensor, given: Params) -> tf.Tensor:
    """Computes images `(n, height, width, channels)`, or sounds, from the results of the last phase."""
    step: Any = stage.ref.step
    own = given[:-1] if stage.ref.conditional else given
    if isinstance(step, DisplacementTransform):
        done = read(image, own, step.fill, exact=stage.exact)
    else:
        done = step.finish(_entering(stage, image), *own)
    if stage.clip is not None:
        done = tf.clip_by_value(done, stage.clip.low, stage.clip.high)
    if stage.exact and done.dtype == tf.float64:
        done = tf.cast(as_float32(done), image.dtype)
    if done.dtype != image.dtype:  # the step works on bytes
        image = step.entering(image)
    if not stage.ref.conditional:
        return done
    return tf.where(tf.reshape(given[-1], [-1, *([1] * (len(image.shape) - 1))]), done, image)


def _gate(stage: Neighbourhood | BlendChains, image: tf.Tensor, params: Params) -> tf.Tensor | None:
    """Tests on which images a step acts, bool `(n,)`; `None` if on all, or if it rounds all to bytes."""
    return params[-1] if stage.ref.conditional and not (stage.ref.step.on_bytes and image.dtype != tf.uint8) else None


def _entering(stage: Neighbourhood, image: tf.Tensor) -> tf.Tensor:
    """Casts an image for a step: to bytes if it works only on those, else to float64 if every bit counts."""
    image = stage.ref.step.entering(image)
    return tf.cast(image, tf.float64) if stage.exact and not stage.ref.step.on_bytes else image


@dataclass(frozen=True)
class Lowering:
    """The TensorFlow functions of a stage. A stage on batches has `run` or `batch`, one on single examples `example` or `surveyed`."""

    run: Callable[[Any, tf.Tensor, Params], tf.Tensor] | None = None
    """From the stage, a feature `(n, ...)` and the parameters after all phases to the feature: a pure function."""
    parameters: Callable[[Any, Features], Params] = lambda _stage, _features: ()
    """From the stage and the features to functions of the draws and of the groups that are combined."""
    memory: Callable[[Any, Features], tf.Tensor] | None = None
    """From the stage and the features to a tensor for the whole batch that `run` gets in place of the feature. It may be as large as the
    stored data and is not copied."""
    phases: Callable[[Any], tuple[Phase, ...]] = lambda _stage: ()
    """Functions before `run`, each pure and compiled separately, for values that are read more than once, such as parameters of one value a
    pixel."""
    acts: Callable[[Any, tf.Tensor, Params], tf.Tensor | None] = lambda _stage, _value, _params: None
    """From the stage, a feature `(n, ...)` and the parameters before all phases to whether the stage changes each example, bool `(n,
    ...)`, or `None` if it may change every one."""
    quantised: bool = False
    """Whether parameters are rounded from float64 to far fewer bits, so that XLA may compute them: differences in the last bit of a float64
    vanish. Tables are not, since they may round a number halfway between two others."""
    batch: Callable[[Any, Features], None] | None = None  # changes the features of a batch
    example: Callable[[Any, Features], None] | None = None  # changes the features of one example
    surveyed: Callable[[Any, Features, Found | None], None] | None = None
    """Changes the features of one example, with its surveyed window, if any."""


def apply_stage(stage: Stage, features: Features) -> None:
    """Runs a batch stage on a batch, in place, with its parameters from the draws, rounded once."""
    how = LOWERINGS[type(stage)]
    if how.batch is not None:
        how.batch(stage, features)
        return
    value = features[stage.feature] if how.memory is None else how.memory(stage, features)
    features[stage.feature] = run_stage(stage, value, expand(stage, value, how.parameters(stage, features)))


def apply_element(stage: Stage, features: Features, found: Found | None = None) -> None:
    """Runs any stage on one example, in place; a batch stage sees a batch of one. `found` is the result of a survey."""
    how = LOWERINGS[type(stage)]
    if how.example is not None:
        how.example(stage, features)
        return
    if how.surveyed is not None:
        how.surveyed(stage, features, found)
        return
    single = {k: tf.expand_dims(v, 0) for k, v in features.items() if k in stage.touches() or k.startswith("@")}
    apply_stage(stage, single)
    for key in [k for k in features if k.startswith("@") and k not in single]:
        del features[key]
    features.update({k: tf.squeeze(v, 0) for k, v in single.items()})


def expand(stage: Stage, value: tf.Tensor, params: Params) -> Params:
    """Runs all phases on parameters."""
    for phase in LOWERINGS[type(stage)].phases(stage):
        params = phase(value, params)
    return params


def run_stage(stage: Stage, value: tf.Tensor, params: Params) -> tf.Tensor:
    """Computes a batch stage as a pure function of a feature `(n, ...)` and its expanded parameters."""
    how = LOWERINGS[type(stage)]
    if how.run is None:
        raise InternalError(f"{type(stage).__name__} is not a batch stage")
    return how.run(stage, value, params)


def apply_branch(stage: s.Branch, features: Features, kernel: Callable[[Features], Features]) -> None:
    """Runs a stage on one example, in place, if it acts on it: `kernel` is the stage as a function of a batch of one."""
    name = stage.feature
    image, draws = features[name], features["@draws"]

    def work() -> tf.Tensor:
        return kernel({name: image[None], "@draws": draws[None]})[name][0]

    needed = reduce(tf.logical_or, (acts(ref, draws) for ref in stage.uses()))
    features[name] = tf.cond(needed, work, lambda: tf.identity(image))
    features[name].set_shape(image.shape)


def _branch(stage: s.Branch, features: Features) -> None:
    def kernel(single: Features) -> Features:
        apply_stage(stage.stage, single)
        return single

    apply_branch(stage, features, kernel)


def _encode(stage: s.EncodeLabel, label: tf.Tensor, _params: Params) -> tf.Tensor:
    if label.shape.rank == 4:  # a mask, whose last axis is the class
        label = label[..., 0]
    if stage.encoding == "binary":
        return tf.cast(label, tf.float32)[..., None]
    if stage.encoding == "multi_hot":
        return tf.cast(label, tf.float32)
    if stage.encoding == "one_hot":
        return tf.one_hot(label, stage.classes or 0, dtype=tf.float32)
    return label


def _fork(stage: s.Fork, features: Features) -> None:
    """Copies a feature, and its measured size, to the names of its views."""
    for home, to in ((stage.feature, "{}"), (f"@size/{stage.feature}", "@size/{}")):
        if home in features:
            value = features.pop(home)
            features |= {to.format(name): value for name in stage.names}


LOWERINGS: dict[type[Stage], Lowering] = {
    Decode: Lowering(surveyed=decode),
    DecodeWindow: Lowering(surveyed=decode_window),
    **dict.fromkeys((s.Apply, s.Crop), Lowering(example=one_step)),
    s.SometimesSized: Lowering(example=sometimes_sized),
    CanvasCrop: Lowering(canvas_crop, canvas_crop_params, canvas_words),
    s.Branch: Lowering(example=_branch),
    s.Fork: Lowering(batch=_fork, example=_fork),
    item_stages.Measure: Lowering(example=moving.measure),
    **dict.fromkeys((item_stages.Enter, item_stages.EnterEach), Lowering(batch=moving.enter)),
    ChooseWindow: Lowering(batch=moving.choose_window),
    **dict.fromkeys((item_stages.Move, item_stages.MoveEach), Lowering(batch=moving.move)),
    **dict.fromkeys((item_stages.Bend, item_stages.BendEach), Lowering(batch=moving.bend)),
    item_stages.EnterSound: Lowering(batch=in_sound.enter_sound),
    item_stages.MoveInSound: Lowering(batch=in_sound.move_in_sound),
    item_stages.CutInSound: Lowering(batch=in_sound.cut_in_sound),
    item_stages.FrameLabels: Lowering(batch=in_sound.frame_labels),
    item_stages.CombineItems: Lowering(batch=moving.combine_items),
    item_stages.Limit: Lowering(batch=moving.limit),
    item_stages.Renumber: Lowering(batch=moving.renumber),
    item_stages.NumberItems: Lowering(batch=moving.number_items),
    item_stages.CombineInstances: Lowering(batch=moving.combine_instances),
    item_stages.Express: Lowering(batch=moving.express),
    item_stages.Shorten: Lowering(batch=moving.shorten),
    MeasureLength: Lowering(example=measure_length),
    PadLength: Lowering(example=pad_length),
    MarkLength: Lowering(batch=mark_length),
    s.Retime: Lowering(in_sound.retime, in_sound.retime_params),
    s.Turn: Lowering(batch=moving.turn),
    s.Compose: Lowering(batch=compose_matrix),
    s.Resample: Lowering(batch=resample),
    s.Warp: Lowering(warp, warp_params, phases=warp_phases, acts=moves, quantised=True),
    s.ComposeColour: Lowering(batch=compose_colour),
    s.ApplyColour: Lowering(batch=apply_pending),
    s.Colour: Lowering(colour, colour_params, quantised=True),
    LookupTable: Lowering(
        lambda _stage, value, params: look_up(value, params[0]),
        table_params,
        phases=lambda stage: (partial(histogram_table, stage),) if stage.reads_histogram else (),
        acts=changes_values,
    ),
    **dict.fromkeys(
        (Neighbourhood, HostNeighbourhood), Lowering(neighbourhood, neighbourhood_params, phases=neighbourhood_phases, acts=_gate)
    ),
    Convolution: Lowering(
        convolution,
        convolution_params,
        phases=lambda stage: (partial(transfers, stage),),
        acts=lambda stage, _sounds, params: params[-1] if stage.conditional else None,
    ),
    BlendChains: Lowering(blend_chains, neighbourhood_params, phases=chain_phases, acts=_gate),
    Combine: Lowering(combine, combining_params),
    item_stages.Paste: Lowering(batch=paste),
    item_stages.PasteInstances: Lowering(batch=moving.paste_instances),
    item_stages.PasteItems: Lowering(batch=moving.paste_items),
    item_stages.PastePoints: Lowering(batch=moving.paste_points),
    s.Pointwise: Lowering(lambda stage, value, _params: pointwise(value, stage.arithmetic, exact=stage.exact)),
    s.ChannelsFirst: Lowering(lambda _stage, value, _params: tf.transpose(value, [0, 3, 1, 2])),
    s.EncodeLabel: Lowering(_encode),
}
"""The lowering of each class of stage."""
