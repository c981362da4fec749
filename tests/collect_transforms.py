"""Writes the lists of other libraries' transforms that the pages "From ..." are made for: `python tests/collect_transforms.py`.

A list is a file of `docs/generated/libraries/`: the version, then a line for each public transform with its arguments, in their
order there. Each library that is installed is read anew. Torchvision's source is parsed, so that PyTorch need not be there.
"""

from __future__ import annotations

import ast
import inspect
from importlib import metadata, util
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "generated" / "libraries"
BASES = {"BasicTransform", "DualTransform", "ImageOnlyTransform", "Transform3D", "BaseCompose", "Transform", "BaseImagePreprocessingLayer"}
"""Classes that others derive from, which do nothing themselves."""
OF_TORCH = {"ToTensor3D": ["p"], "ToTensorV2": ["transpose_mask", "p"]}
"""What Albumentations has beside PyTorch alone."""
OTHER_LAYERS = {"CategoryEncoding", "Normalization", "Pipeline", "Rescaling"}
"""Keras' layers for images, and for what belongs to them, that derive from no base of theirs."""


def albumentations() -> dict[str, list[str]]:
    """The transforms of Albumentations, and what composes them."""
    import albumentations
    from albumentations.core.composition import BaseCompose
    from albumentations.core.transforms_interface import BasicTransform

    return OF_TORCH | {n: _arguments(c) for n, c in _classes(albumentations) if issubclass(c, (BasicTransform, BaseCompose))}


def audiomentations() -> dict[str, list[str]]:
    """The transforms of audiomentations, and what composes them."""
    import audiomentations
    from audiomentations.core.composition import BaseCompose
    from audiomentations.core.transforms_interface import BaseTransform

    return {n: _arguments(c) for n, c in _classes(audiomentations) if issubclass(c, (BaseTransform, BaseCompose))}


def keras() -> dict[str, list[str]]:
    """Keras' layers for images."""
    from keras import layers
    from keras.src.layers.preprocessing.image_preprocessing.base_image_preprocessing_layer import BaseImagePreprocessingLayer

    return {n: _arguments(c) for n, c in _classes(layers) if issubclass(c, BaseImagePreprocessingLayer) or n in OTHER_LAYERS}


def librosa() -> dict[str, list[str]]:
    """The functions of `librosa.feature` and `librosa.effects`, and those beside them that make or change spectra, without the sound."""
    import librosa
    from librosa import effects, feature

    more = "amplitude_to_db cqt griffinlim istft mu_compress mu_expand pcen power_to_db resample stft"
    found = {name: getattr(librosa, name) for name in more.split()}
    found |= {name: getattr(part, name) for part in (feature, effects, feature.inverse) for name in part.__all__}
    public = {name: value for name, value in found.items() if inspect.isfunction(value)}
    return {name: [one for one in _arguments(value) if one not in ("y", "S")] for name, value in public.items()}


def torchaudio() -> dict[str, list[str]]:
    """The classes of `torchaudio.transforms`."""
    from torchaudio import transforms

    return {n: _arguments(c) for n, c in _classes(transforms) if n in transforms.__all__}


def torchvision() -> dict[str, list[str]]:
    """The classes of `torchvision.transforms.v2`."""
    found = util.find_spec("torchvision")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "transforms" / "v2"
    classes: dict[str, ast.ClassDef] = {}
    for path in folder.glob("_*.py"):
        classes |= {node.name: node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)}
    public = [
        name.name
        for node in ast.parse((folder / "__init__.py").read_text()).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    ]
    return {name: _parsed_arguments(classes, name) for name in sorted(public) if name in classes}


def tsaug() -> dict[str, list[str]]:
    """The augmenters of tsaug."""
    import tsaug

    return {name: _arguments(value) for name, value in _classes(tsaug)}


LIBRARIES = {
    "albumentations": albumentations,
    "audiomentations": audiomentations,
    "keras": keras,
    "librosa": librosa,
    "torchaudio": torchaudio,
    "torchvision": torchvision,
    "tsaug": tsaug,
}


def collected(library: str) -> str:
    """Returns the list of an installed library, as the file has it."""
    found = LIBRARIES[library]()
    lines = [f"{name}: {' '.join(arguments)}".rstrip() for name, arguments in sorted(found.items()) if name not in BASES]
    return "\n".join([metadata.version(library), *lines]) + "\n"


def _classes(module: Any) -> list[tuple[str, type]]:
    return [(name, value) for name, value in vars(module).items() if inspect.isclass(value)]


def _arguments(cls: Any) -> list[str]:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [name for name, p in inspect.signature(cls).parameters.items() if p.kind not in kinds]


def _parsed_arguments(classes: dict[str, ast.ClassDef], name: str) -> list[str]:
    """The arguments of a class, or of the nearest base that has any."""
    node = classes.get(name)
    if node is None:
        return []
    made = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    if made is None:
        return next((a for base in node.bases if isinstance(base, ast.Name) and (a := _parsed_arguments(classes, base.id))), [])
    return [a.arg for a in (*made.args.args[1:], *made.args.kwonlyargs)]


if __name__ == "__main__":
    for name in LIBRARIES:
        if util.find_spec(name) is not None:
            (FOLDER / f"{name}.txt").write_text(collected(name), encoding="utf-8")
            print(name)
