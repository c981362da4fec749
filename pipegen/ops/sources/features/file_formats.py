"""Formats of files that hold arrays rather than images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.ops.families.decoder import ArrayDecoder, missing_library
from pipegen.ops.model import Model, OneOf

_Count = Annotated[int, Field(ge=1)]
_Place = Annotated[int, Field(ge=0)]
_Column = Annotated[str, Field(min_length=1)]


class Npy(Model):
    """A `.npy` file for each example."""

    channels: _Count = 1
    """Number of channels of the array `(height, width, channels)`; an array of two axes has one."""


class Nifti(Model):
    """A NIfTI volume, `.nii` or `.nii.gz`, for each example."""

    slices: _Count | None = None
    """Number of slices of a volume along its third axis, which become the channels of the image."""
    slice: _Place | None = None
    """The only slice to read, counted from 0."""

    @model_validator(mode="after")
    def _one(self) -> Nifti:
        if (self.slices is None) == (self.slice is None):
            raise ValueError("give either the number of `slices` of a volume, or one `slice`")
        return self


class GeoTiff(Model):
    """A GeoTIFF for each example."""

    bands: Annotated[tuple[_Count, ...], Field(min_length=1)] = (1,)
    """Bands to read, counted from 1, which become the channels of the image in this order."""
    window: tuple[_Place | _Column, _Place | _Column, _Count | _Column, _Count | _Column] | None = None
    """First row and column, counted from 0, and height and width of the part to read, in pixels. In a table each may be the name of a
    column, `[top, left, 256, 256]`: every row then has a window of its own, and only that is read."""

    @property
    def by_row(self) -> bool:
        """Whether each row of a table has a window of its own."""
        return self.window is not None and any(isinstance(side, str) for side in self.window)


class ArrayFile(OneOf):
    """One format, with its options."""

    called: ClassVar[str] = "a format"

    npy: Npy | None = None
    """NumPy files: `{npy: {channels: 3}}`."""
    nifti: Nifti | None = None
    """NIfTI volumes: `{nifti: {slices: 32}}`, `{nifti: {slice: 16}}`."""
    dicom: Literal["stored", "rescaled"] | None = None
    """DICOM images: `{dicom: stored}` gives the stored values, `{dicom: rescaled}` the values that they represent, such as Hounsfield
    units."""
    geotiff: GeoTiff | None = None
    """GeoTIFF: `{geotiff: {bands: [4, 3, 2]}}`, `{geotiff: {window: [0, 0, 256, 256]}}`."""

    def decoder(self) -> ArrayDecoder:
        """Returns the decoder of such files."""
        if self.npy is not None:
            return _decoder("npy", self.npy.channels)
        if self.nifti is not None:
            return _decoder("nifti", self.nifti.slices or 1, index=self.nifti.slice)
        if self.geotiff is not None:
            window = self.geotiff.window
            cut = None if self.geotiff.by_row else window  # only the row's window is stored
            found = _decoder("geotiff", len(self.geotiff.bands), bands=self.geotiff.bands, window=cut)
            size = (None, None) if window is None else (side if isinstance(side, int) else None for side in window[2:])
            return found.model_copy(update={"shape": (*size, *found.shape[2:])})
        return _decoder("dicom", 1, values=str(self.dicom))


Format = Literal["npy", "flo", "nifti", "geotiff"] | ArrayFile


def _decoder(format: str, channels: int | None, **options: Any) -> ArrayDecoder:
    return ArrayDecoder(format=format, shape=(None, None, channels), options=tuple(options.items()))


def decoder_of(format: Format) -> ArrayDecoder:
    """Returns the decoder of files of a format."""
    if isinstance(format, ArrayFile):
        return format.decoder()
    if format == "geotiff":
        return ArrayFile(geotiff=GeoTiff()).decoder()
    return _decoder(format, {"npy": 1, "flo": 2, "nifti": None}[format])


def unread_formats(features: Mapping[str, Any]) -> Iterator[OpError]:
    """Yields a `PG414` error for each feature whose files no installed library can read."""
    for name, feature in features.items():
        if feature.format is not None and feature.own_kind.storage == "encoded":
            format = feature.format if isinstance(feature.format, str) else feature.format.name
            missing = missing_library(format)
            if missing is not None:
                message = f"files of the format `{format}` need {missing[0]}, which is not installed"
                yield OpError("PG414", message, field=f"features.{name}.format", help=missing[1])
