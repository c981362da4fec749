"""Files that hold an array and no picture: NumPy's, optical flow, NIfTI, DICOM and GeoTIFF."""

from __future__ import annotations

import gzip
import importlib.util
import io
import pickle
import struct
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydantic import ValidationError

import pipegen
from pipegen.errors import DataError, OpError, SpecError
from pipegen.ops.families import decoder
from pipegen.ops.lowering.array_formats import read_array
from pipegen.ops.lowering.library import UnreadableError
from pipegen.ops.sources.table_sources import Csv
from pipegen.ops.sources.tables.features import ArrayFile, decoder_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
H, W = 6, 8
RNG = np.random.default_rng(1)
CUBE = RNG.integers(0, 4000, (H, W, 3)).astype(np.int16)


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def flo(array: Any) -> bytes:
    return b"PIEH" + struct.pack("<ii", array.shape[1], array.shape[0]) + array.astype("<f4").tobytes()


def nifti(array: Any, slope: float = 2, *, second: bool = False) -> bytes:
    nib = pytest.importorskip("nibabel")
    image = (nib.Nifti2Image if second else nib.Nifti1Image)(array, np.eye(4))
    image.header.set_slope_inter(slope, 5)
    content: bytes = image.to_bytes()
    return content


def dicom(array: Any, slope: float = 2) -> bytes:
    pydicom = pytest.importorskip("pydicom")
    data = pydicom.Dataset()
    data.file_meta = pydicom.dataset.FileMetaDataset()
    data.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID = pydicom.uid.CTImageStorage
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID = "1.2.3"
    data.Rows, data.Columns = array.shape
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated = data.BitsStored = 16
    data.HighBit, data.PixelRepresentation = 15, 0
    data.RescaleSlope, data.RescaleIntercept = slope, -1000
    data.PixelData = array.astype("<u2").tobytes()
    buffer = io.BytesIO()
    data.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def geotiff(array: Any) -> bytes:
    rasterio = pytest.importorskip("rasterio")
    about = {"driver": "GTiff", "height": H, "width": W, "count": array.shape[-1], "dtype": array.dtype.name}
    with warnings.catch_warnings(), rasterio.MemoryFile() as memory:
        warnings.simplefilter("ignore")
        with memory.open(**about) as raster:
            raster.write(np.moveaxis(array, -1, 0))
        content: bytes = memory.read()
        return content


def read(contents: bytes, format: Any, shape: tuple[int, ...] | None = None) -> Any:
    step = decoder_of(format if isinstance(format, str) else ArrayFile(**format))
    return read_array(contents, step.format, dict(step.options), shape or step.shape)


def test_values_are_those_that_are_stored() -> None:
    three = {"npy": {"channels": 3}}
    for array in (CUBE, CUBE.astype(">f8"), np.asfortranarray(CUBE), CUBE > 2000):
        np.testing.assert_array_equal(read(npy(array), three), array.astype(np.float32))
    np.testing.assert_array_equal(read(npy(CUBE[..., 0]), "npy"), CUBE[..., :1])
    np.testing.assert_array_equal(read(flo(CUBE[..., :2]), "flo"), CUBE[..., :2])
    assert read(flo(CUBE[..., :2]), "flo").dtype == np.float32
    for array in (CUBE, CUBE[0, 0], CUBE[None, None]):
        np.testing.assert_array_equal(read(npy(array), "npy", array.shape), array)
    np.testing.assert_array_equal(read(npy(CUBE[0, 0]), "npy", (3, 1)), CUBE[0, 0][:, None])


def test_volumes_have_the_slope_of_their_header() -> None:
    for contents in (nifti(CUBE), gzip.compress(nifti(CUBE)), nifti(CUBE, second=True), nifti(CUBE[..., None])):
        np.testing.assert_array_equal(read(contents, {"nifti": {"slices": 3}}), CUBE * 2.0 + 5)
        np.testing.assert_array_equal(read(contents, "nifti", (H, W, 3)), CUBE * 2.0 + 5)
        np.testing.assert_array_equal(read(contents, {"nifti": {"slice": 1}}), CUBE[..., 1:2] * 2.0 + 5)
    with pytest.raises(UnreadableError, match="has 3 slices, counted from 0, but slice 3 is wanted"):
        read(nifti(CUBE), {"nifti": {"slice": 3}})
    with pytest.raises(UnreadableError, match="cut short"):
        read(gzip.compress(nifti(CUBE))[:-20], {"nifti": {"slices": 3}})


def test_of_dicom_the_spec_says_which_values() -> None:
    stored = CUBE[..., 0]
    np.testing.assert_array_equal(read(dicom(stored), {"dicom": "stored"})[..., 0], stored)
    np.testing.assert_array_equal(read(dicom(stored), {"dicom": "rescaled"})[..., 0], stored * 2.0 - 1000)


def test_bands_and_windows_of_geotiff() -> None:
    contents = geotiff(CUBE)
    np.testing.assert_array_equal(read(contents, "geotiff"), CUBE[..., :1])
    np.testing.assert_array_equal(read(contents, {"geotiff": {"bands": [3, 1], "window": [1, 2, 4, 5]}}), CUBE[1:5, 2:7, [2, 0]])
    with pytest.raises(UnreadableError, match="has 3 bands, but band 4 is wanted"):
        read(contents, {"geotiff": {"bands": [4]}})
    with pytest.raises(UnreadableError, match="has 6×8 pixels, but the window from row 3 and column 0 ends outside"):
        read(contents, {"geotiff": {"window": [3, 0, 4, 4]}})


class Evil:
    def __reduce__(self) -> Any:
        return (RuntimeError, ("it ran",))


@pytest.mark.parametrize(
    ("contents", "format", "says"),
    [
        (npy(np.array([Evil()], object), allow_pickle=True), "npy", "holds Python objects, but numbers are expected"),
        (pickle.dumps(Evil()), "npy", "magic"),
        (npy(np.array(["a"])), "npy", "holds <U1, but numbers are expected"),
        (npy(CUBE)[:-1], {"npy": {"channels": 3}}, "is cut short"),
        (npy(CUBE), "npy", r"holds an array of shape \[6, 8, 3\], but \[any, any, 1\] is expected"),
        (npy(np.zeros((0, 3))), "npy", r"holds an array of shape \[0, 3, 1\]"),
        (b"", "npy", "is empty"),
        (b"PIEH" + struct.pack("<ii", 2**31 - 1, 2**31 - 1), "flo", "but holds 0 bytes"),
        (b"PIEH" + struct.pack("<ii", -1, 4), "flo", "of 4×-1 pixels"),
        (b"nothing at all", "flo", "does not begin with `PIEH`"),
    ],
)
def test_damage_is_told_and_nothing_is_unpickled(contents: bytes, format: Any, says: str) -> None:
    with pytest.raises((UnreadableError, ValueError), match=says):
        read(contents, format)


@pytest.mark.parametrize("format", ["npy", "flo", "nifti", "dicom", "geotiff"])
def test_damaged_bytes_are_errors_or_values_and_never_more(format: str) -> None:
    whole, said = {
        "npy": (lambda: npy(CUBE), {"npy": {"channels": 3}}),
        "flo": (lambda: flo(CUBE[..., :2]), "flo"),
        "nifti": (lambda: nifti(CUBE), {"nifti": {"slices": 3}}),
        "dicom": (lambda: dicom(CUBE[..., 0]), {"dicom": "rescaled"}),
        "geotiff": (lambda: geotiff(CUBE), {"geotiff": {"bands": [1, 2, 3]}}),
    }[format]
    contents = whole()
    places = range(0, min(len(contents), 400), 13)
    refused = 0
    for damaged in [contents[:at] for at in places] + [contents[:at] + b"\xff" + contents[at + 1 :] for at in places]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert read(damaged, said).dtype == np.float32
        except Exception:
            refused += 1
    assert refused >= len(places) // 2


@pytest.mark.parametrize(
    ("feature", "says"),
    [
        ({"format": {"npy": {"channels": 0}}}, "greater than or equal to 1"),
        ({"format": {"nifti": {}}}, "number of `slices`"),
        ({"format": {}}, "a format needs exactly one of"),
        ({"format": {"npy": {}, "dicom": "stored"}}, "a format needs exactly one of"),
        ({"format": {"dicom": "as it is"}}, "'stored' or 'rescaled'"),
        ({"format": "npy", "channels": 3}, "`channels` is for image files"),
        ({"kind": "mask", "format": "npy"}, "`format` belongs to images, dense maps, arrays, boxes and events, and this is `kind: mask`"),
        ({"format": "flo"}, "flips would not change the vectors of a flow"),
        ({"format": "nifti"}, "the number of channels of the volume"),
        ({"format": "npy", "shape": [3]}, "`shape` belongs to series, arrays"),
        ({"kind": "array", "of": None, "format": "npy"}, "an array needs its `shape`"),
        ({"kind": "array", "of": None, "shape": [3]}, "an array needs its `format`"),
        ({"kind": "array", "format": "npy", "shape": [3]}, "`of` belongs to images, dense maps, masks, boxes, events and keypoints"),
    ],
)
def test_what_the_spec_may_not_say(feature: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Csv(path="t.csv", features={"image": {"kind": "image"}, "x": {"kind": "image", "of": "image", **feature}})


def test_a_missing_library_is_a_finding_with_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("scan\na.dcm\n")
    (tmp_path / "a.dcm").write_bytes(b"x")
    source = Csv(path="t.csv", features={"scan": {"kind": "image", "format": {"dicom": "stored"}}})
    if importlib.util.find_spec("pydicom") is not None:
        assert source.list(tmp_path).keys == ("a.dcm",)
    monkeypatch.setattr(decoder, "find_spec", lambda module: None)
    with pytest.raises(OpError) as caught:
        source.list(tmp_path)
    assert (caught.value.code, caught.value.field, caught.value.help) == ("PG414", "features.scan.format", "pip install 'pipegen[dicom]'")


SPEC: dict[str, Any] = {
    "pipegen": 1,
    "source": {
        "files": {
            "features": {
                "image": {"kind": "image", "path": "a/*.npy", "format": {"npy": {"channels": 3}}},
                "flow": {"kind": "array", "path": "b/*.flo", "format": "flo", "shape": [H, W, 2]},
            }
        }
    },
    "splits": {"parts": {"train": 8, "validation": 4}},
    "transforms": ["random_flip"],
    "batch": {"size": 4},
    "output": {"x": {"image": "image", "flow": "flow"}, "y": None},
    "runtime": {"jit": "never"},
}


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Arrays and flows, each filled with its number and ten times that."""
    monkeypatch.chdir(tmp_path)
    for folder in "ab":
        (tmp_path / folder).mkdir()
    for i in range(12):
        values = np.full((H, W, 3), i, np.float32)
        (tmp_path / "a" / f"{i:02}.npy").write_bytes(npy(values))
        (tmp_path / "b" / f"{i:02}.flo").write_bytes(flo(values[..., :2] * 10))
    return tmp_path


CROPPED = {**SPEC, "transforms": [{"center_crop": {"size": [4, 6]}}, "random_flip"]}


def test_a_pipeline_of_arrays(pairs: Path) -> None:
    batches = list(pipegen.build(CROPPED).train)
    assert [{name: tuple(x.shape) for name, x in batch.items()} for batch in batches] == [{"image": (4, 4, 6, 3), "flow": (4, H, W, 2)}] * 2
    for batch in batches:
        np.testing.assert_array_equal(batch["flow"].numpy()[:, :4, :6], 10 * batch["image"].numpy()[..., :2])


@pytest.mark.nightly
def test_damaged_arrays_are_named_or_skipped(pairs: Path) -> None:
    pipe = pipegen.build(CROPPED)
    assert pipe.preview("train").size[0] > 0
    stem = pipe.files("train")[0].rsplit("/", 1)[-1].removesuffix(".npy")
    cases = (("a", "npy", npy(CUBE)[:-4], "is cut short"), ("b", "flo", b"PIEH", "does not begin with `PIEH`"))
    for folder, ending, damaged, says in cases:
        file = pairs / folder / f"{stem}.{ending}"
        whole = file.read_bytes()
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=rf"cannot decode \S*{folder}/{stem}\.{ending} .* {says}"):
            list(pipegen.build(CROPPED).train)
        skipping = pipegen.build({**CROPPED, "errors": {"decode": {"skip": {"max_fraction": 0.2}}}})
        seen = np.concatenate([batch["image"].numpy()[:, 0, 0, 0] for batch in skipping.train])
        assert len(seen) == 8
        assert float(stem) not in seen
        file.write_bytes(whole)


def test_sizes_have_to_be_the_same_for_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match="resize"):
        pipegen.build({**SPEC, "transforms": ["random_flip"]})


@pytest.mark.nightly
def test_arrays_of_images_move_with_the_image_that_they_are_of(pairs: Path) -> None:
    features = {
        "image": {"kind": "image", "path": "a/*.npy", "format": {"npy": {"channels": 3}}},
        "depth": {"kind": "image", "path": "a/*.npy", "format": {"npy": {"channels": 3}}, "of": "image"},
    }
    steps = [{"center_crop": {"size": [4, 6]}}, "random_flip", {"random_rotation": {"degrees": 30}}]
    spec = {**SPEC, "source": {"files": {"features": features}}, "transforms": steps, "output": {"x": {"image": "image", "depth": "depth"}}}
    for batch in pipegen.build(spec).train:
        np.testing.assert_array_equal(batch["depth"].numpy(), batch["image"].numpy())
