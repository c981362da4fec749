"""Silent mistakes of code with `ImageDataGenerator`."""

from __future__ import annotations

import ast
import math

from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import Group
from pipegen.migrate.interpret import Collected, ModelCall
from pipegen.migrate.nodes import Row, called
from pipegen.migrate.signatures import FITTED, OLD_DATAFRAME
from pipegen.migrate.steps import RANDOM, STATISTICS, augments
from pipegen.migrate.values import Class, Dotted, Flow, Generator, Local, Unknown, is_number, origins_of, plain, same

_BOOLEANS = ("horizontal_flip", "vertical_flip", "featurewise_center", "samplewise_center", "zca_whitening")
_TOGETHER = "in one spec with a feature for each, a mask always moves with its image"
_ORDERED = (*STATISTICS, "samplewise_std_normalization")


def find_mistakes(found: Collected, groups: list[Group], findings: Findings) -> None:
    """Reports every silent mistake of a file."""
    for generator in found.generators:
        _constructor(generator, findings)
        _fitting(generator, found, findings)
    for flow in found.flows:
        _flow(flow, findings)
        _uses(flow, found, findings)
    for group in groups:
        _evaluation(group, found, findings)
    for call in found.calls:
        _plain_validation(call, found, findings)


def _constructor(generator: Generator, findings: Findings) -> None:
    for name in ("shear_range", "rotation_range"):
        value = generator.get(name)
        if is_number(value) and 0 < abs(value) < 1:
            what = "a shear" if name == "shear_range" else "a rotation"
            message = f"`{name}={value:g}` is in degrees: {what} of less than one degree has almost no effect"
            turned = math.degrees(value)
            help_ = f"if radians or a fraction were meant, write `degrees: {turned:.3g}`; the spec keeps the behaviour of the code"
            findings.add("PG641", generator.line_of(name), message, help_)
    shift = generator.get("channel_shift_range")
    if is_number(shift) and 0 < abs(shift) < 1:
        message = f"`channel_shift_range={shift:g}` is in levels of 0..255, before `rescale`: it has almost no effect"
        help_ = f"for a fraction of the range, write `delta: {shift * 255:g}`"
        findings.add("PG641", generator.line_of("channel_shift_range"), message, help_)
    _positional(generator, findings)
    _texts(generator, findings)
    _numbers(generator, findings)
    for odd in generator.wrong:
        findings.add(
            "PG631", odd.line, f"ImageDataGenerator has no argument `{odd.name}`: it raises a TypeError", "it is left out of the spec"
        )


def _positional(generator: Generator, findings: Findings) -> None:
    for argument in generator.args.values():
        if argument.positional:
            message = f"a positional argument of ImageDataGenerator sets `{argument.name}`"
            value = plain(argument.value)
            if is_number(value) and 0 < value < 1:
                message += f"; `{value:g}` was probably meant as `rescale`, but nothing was rescaled"
            elif isinstance(value, Unknown) and argument.name == "featurewise_center":
                message += "; the function was probably meant as `preprocessing_function`, but was never called"
            findings.add("PG645", argument.node.lineno, message, "name the arguments; the spec keeps the behaviour of the code")


def _texts(thing: Generator | Flow, findings: Findings) -> None:
    for name in _BOOLEANS if isinstance(thing, Generator) else ("shuffle",):
        value = thing.get(name)
        if isinstance(value, str):
            message = f"`{name}={value!r}` is a text, and any text that is not empty counts as True"
            findings.add("PG647", thing.line_of(name), message, "write True or False")
    for name in ("horizontal_flip", "vertical_flip"):
        value = thing.get(name) if isinstance(thing, Generator) else None
        if is_number(value) and value not in (0, 1):
            message = f"`{name}={value:g}` is not a probability: half of the images are flipped"
            findings.add("PG655", thing.line_of(name), message, f"for this probability, write `random_flip: {{probability: {value:g}}}`")


def _numbers(generator: Generator, findings: Findings) -> None:
    rescale, function = generator.get("rescale"), generator.args.get("preprocessing_function")
    none = function is None or (isinstance(function.node, ast.Constant) and function.node.value is None)
    if rescale and not none:
        named = function.value.name if function is not None and isinstance(function.value, Dotted) else ""
        surely = named.endswith(".preprocess_input")
        how = "are" if surely else "may be"
        message = f"values {how} normalised twice: `preprocessing_function` first, then `rescale` on its result"
        help_ = "the spec has only the function" if surely else "they are if the function returns scaled values, such as 0..1"
        findings.add("PG648", generator.line_of("rescale"), message, help_)
    if is_number(rescale) and not any(math.isclose(rescale, 1 / d, rel_tol=1e-3) for d in (1, 127.5, 128, 255, 256, 65535)):
        message = f"`rescale={rescale:.6g}` is not 1/255"
        findings.add("PG650", generator.line_of("rescale"), message, "if it is a typing error, correct it in the spec")
    zoom = generator.get("zoom_range")
    if is_number(zoom) and abs(zoom) >= 1:
        message = f"`zoom_range={zoom:g}` means the range [{1 - zoom:g}, {1 + zoom:g}], which shrinks and mirrors images"
        help_ = "a pair such as [0.8, 1.2], or a number below 1, was probably meant"
        findings.add("PG651", generator.line_of("zoom_range"), message, help_)
    for name in ("width_shift_range", "height_shift_range"):
        value = generator.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            message = f"`{name}={value}` is an integer, so it counts pixels, and {value} itself is never reached"
            if value == 1:
                message = f"`{name}=1` is an integer, so it means whole pixels below 1: images are never shifted"
            findings.add("PG652", generator.line_of(name), message, "a fraction of the side is a number below 1")
        elif isinstance(value, (list, tuple)) and value and all(map(is_number, value)) and max(value) < 1 and min(value) <= -1:
            message = f"`{name}={value!r}` is multiplied by the width or height, since all numbers are below 1"
            findings.add("PG652", generator.line_of(name), message)


def _fitting(generator: Generator, found: Collected, findings: Findings) -> None:
    needs = [name for name in STATISTICS if generator.get(name)]
    fits = [call for owner, call in found.fits if owner is generator]
    by_hand = any(owner is generator and name in FITTED for owner, name, _ in found.members)
    for call in fits:
        if not any(generator.known(name) for name in STATISTICS):
            message = "`fit` has no effect without featurewise statistics and whitening"
            findings.add("PG642", call.lineno, message, "it only copies the data; remove it")
    if needs and not fits and not by_hand and any(flow.generator is generator for flow in found.flows):
        message = f"`{needs[0]}` has no effect, since `fit` is never called on this generator"
        findings.add("PG643", generator.line_of(needs[0]), message, "the model was trained without it")


def _flow(flow: Flow, findings: Findings) -> None:
    _texts(flow, findings)
    for name, line in ((odd.name, odd.line) for odd in flow.wrong):
        if flow.method == "flow_from_dataframe" and name in OLD_DATAFRAME:
            findings.add("PG646", line, f"`{name}` of flow_from_dataframe was removed, and is ignored", "remove it")
        elif flow.method == "flow_from_dataframe":
            message = f"flow_from_dataframe has no argument `{name}`, and silently ignores it"
            findings.add("PG646", line, message, "it has never had an effect")
        else:
            findings.add("PG631", line, f"{flow.method} has no argument `{name}`: it raises a TypeError", "it is left out of the spec")
    generator, subset = flow.generator, flow.get("subset")
    split = generator.get("validation_split") if isinstance(generator, Generator) else None
    known = isinstance(generator, Generator) and "**" not in generator.args and not generator.known("validation_split")
    if subset is not None and known:
        got = "all of the data" if subset == "training" else "nothing"
        findings.add("PG656", flow.line_of("subset"), f"`subset={subset!r}` without `validation_split` in the constructor gives {got}")
    if split and "subset" not in flow.args and "**" not in flow.args:
        message = f"`validation_split={split!r}` has no effect here: without `subset`, the iterator takes all of the data"
        findings.add("PG656", flow.line, message, "training and validation data may overlap")
    size = flow.args.get("target_size")
    if size is not None and isinstance(size.node, ast.Tuple) and len(size.node.elts) == 2:
        names = [ast.unparse(e).lower() for e in size.node.elts]
        if "width" in names[0] and "height" in names[1]:
            value = plain(size.value)
            square = isinstance(value, tuple) and value[0] == value[1]
            message = "`target_size` is (height, width), but the code passes (width, height)"
            help_ = "harmless here, since both are equal" if square else "images were squeezed in the wrong direction; the spec keeps this"
            findings.add("PG653", size.node.lineno, message, help_)


def _uses(flow: Flow, found: Collected, findings: Findings) -> None:
    shuffled = "shuffle" not in flow.args or bool(flow.get("shuffle"))
    ordered = sorted({u.name for u in found.uses_of(flow) if u.name in ("classes", "labels", "filenames", "filepaths")})
    for use in found.uses_of(flow):
        method = getattr(getattr(use.outer, "func", None), "attr", "")
        if use.kind == "model" and method.startswith("predict") and shuffled:
            then = f"; `.{ordered[0]}` is in another order" if ordered else ""
            message = f"`{method}` on a shuffled iterator: predictions are in random order{then}"
            findings.add("PG644", use.line, message, "`shuffle` is True by default; pipegen shuffles the training split only")
        if use.kind == "zip":
            message = "iterators joined by `zip` drift apart when one draws more numbers than the other"
            findings.add("PG657", use.line, message, _TOGETHER)
    if found.only_drawn_from(flow) and found.is_paired(flow):
        message = "iterators that are advanced together, with the same seed, drift apart when one draws more numbers than the other"
        findings.add("PG657", flow.line, message, _TOGETHER)
    brightness = isinstance(flow.generator, Generator) and "brightness_range" in flow.generator.args
    array = flow.args["x"].node if "x" in flow.args else None
    if flow.method == "flow" and brightness and isinstance(array, ast.BinOp) and isinstance(array.op, ast.Div):
        findings.add("PG658", flow.line, "`brightness_range` truncates values of 0..1 to integers: the images are black")


def _evaluation(group: Group, found: Collected, findings: Findings) -> None:
    train = group.parts.get("train")
    for split, flow in group.parts.items():
        if split == "train" or not isinstance(flow.generator, Generator):
            continue
        random = [n for n in RANDOM if n in flow.generator.args and flow.generator.get(n)]
        if augments(flow.generator):
            shown = f" ({', '.join(random)})" if random else ""
            message = f"the {split} data is augmented too{shown}: ImageDataGenerator does not distinguish training and evaluation"
            help_ = "the spec augments the training split only, so metrics will differ, and be more reliable"
            if _predicted_again(flow, found):
                help_ = f"test-time augmentation: write its random steps into the spec, each with `when: [{split}]`"
            findings.add("PG640", flow.line, message, help_)
        if train is not None and isinstance(train.generator, Generator) and train.generator is not flow.generator:
            for name in ("rescale", "preprocessing_function", *_ORDERED):
                _unknown_value(train.generator, flow.generator, name, split, findings)
                if _differ(train.generator, flow.generator, name):
                    message = f"`{name}` differs between training and {split} data"
                    findings.add("PG654", flow.line, message, "the spec treats every split as the training data")


def _predicted_again(flow: Flow, found: Collected) -> bool:
    """True if an iterator is predicted on in a loop outside of which it is made, as for test-time augmentation."""
    for use in found.uses_of(flow):
        predicts = getattr(getattr(use.outer, "func", None), "attr", "").startswith("predict")
        if predicts and not use.flow.frame.scope.is_once((flow.line, 0)):
            return False
        if predicts and not use.frame.scope.is_once((use.line, 0)):
            return True
    return False


def _unknown_value(train: Generator, other: Generator, name: str, split: str, findings: Findings) -> None:
    """Reports value changes of evaluation data that are unknown and not written as in training."""
    value = other.known(name)
    if not isinstance(value, Unknown) or isinstance(other.argument(name), (Class, Dotted, Local)):
        return
    if name in train.args and ast.dump(train.args[name].node) == ast.dump(other.args[name].node):
        return
    message = f"`{name}` of the {split} data is not known: {value.reason}"
    findings.add("PG610", other.line_of(name), message, "the spec treats every split as the training data: check if that is right")


def _plain_validation(call: ModelCall, found: Collected, findings: Findings) -> None:
    """Reports plain arrays as validation data, if a generator changes the training data."""
    given = call.args.get("validation_data")
    train = next((u.of for u in found.uses if u.kind == "model" and u.outer is call.node and u.name == "x"), None)
    if not isinstance(given, Row) or not isinstance(train, Flow) or not isinstance(train.generator, Generator):
        return
    if any(_is_batch(name, call) for name in given.elts):
        return
    for name in ("rescale", "preprocessing_function", "samplewise_center", "samplewise_std_normalization", *STATISTICS):
        if isinstance(train.generator.argument(name), (Class, Dotted, Local)) or train.generator.get(name):
            message = f"`{name}` is applied to the training data, but not to the arrays in `validation_data`"
            help_ = "pass the arrays as the `validation` part of a `by_split` source, or process them in the same way"
            findings.add("PG654", given.lineno, message, help_)


def _is_batch(node: ast.expr, call: ModelCall) -> bool:
    """True if a name is a batch drawn from an iterator, which has been through a generator."""
    bindings = call.frame.scope.bindings.get(node.id, []) if isinstance(node, ast.Name) else []
    drawn = [b.value for b in bindings if isinstance(b.value, ast.Call)]
    return any(called(c) in ("next", "__next__", "__getitem__") for c in drawn) or any(isinstance(b.value, ast.Subscript) for b in bindings)


def _differ(a: Generator, b: Generator, name: str) -> bool:
    if any("**" in g.args and name not in g.args for g in (a, b)):
        return False
    one, other = a.argument(name), b.argument(name)
    if one is None or other is None:
        return isinstance(one or other, Dotted) or bool(a.get(name) or b.get(name))
    known = not any(isinstance(v, Unknown) for v in (one, other)) and not origins_of(one, other)
    return known and not same(one, other) and (isinstance(one, Dotted) == isinstance(other, Dotted))
