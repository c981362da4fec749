"""Arguments of Keras' methods, in positional order."""

from __future__ import annotations

CONSTRUCTOR = (
    "featurewise_center", "samplewise_center", "featurewise_std_normalization", "samplewise_std_normalization", "zca_whitening",
    "zca_epsilon", "rotation_range", "width_shift_range", "height_shift_range", "brightness_range", "shear_range", "zoom_range",
    "channel_shift_range", "fill_mode", "cval", "horizontal_flip", "vertical_flip", "rescale", "preprocessing_function", "data_format",
    "validation_split", "interpolation_order", "dtype",
)  # fmt: skip

FITTED = ("mean", "std", "zca_whitening_matrix")  # statistics that `fit` computes

FLOWS = {
    "flow": (
        "x", "y", "batch_size", "shuffle", "sample_weight", "seed", "save_to_dir", "save_prefix", "save_format", "ignore_class_split",
        "subset",
    ),
    "flow_from_directory": (
        "directory", "target_size", "color_mode", "classes", "class_mode", "batch_size", "shuffle", "seed", "save_to_dir", "save_prefix",
        "save_format", "follow_links", "subset", "interpolation", "keep_aspect_ratio",
    ),
    "flow_from_dataframe": (
        "dataframe", "directory", "x_col", "y_col", "weight_col", "target_size", "color_mode", "classes", "class_mode", "batch_size",
        "shuffle", "seed", "save_to_dir", "save_prefix", "save_format", "subset", "interpolation", "validate_filenames",
    ),
}  # fmt: skip

OLD_DATAFRAME = ("has_ext", "sort", "drop_duplicates")  # former arguments of `flow_from_dataframe`

FIT_GENERATOR = (
    "x", "steps_per_epoch", "epochs", "verbose", "callbacks", "validation_data", "validation_steps", "validation_freq", "class_weight",
    "max_queue_size", "workers", "use_multiprocessing", "shuffle", "initial_epoch",
)  # fmt: skip
"""`fit_generator`, whose first argument `fit` calls `x`."""

FIT = (
    "x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data", "shuffle", "class_weight",
    "sample_weight", "initial_epoch", "steps_per_epoch", "validation_steps", "validation_batch_size", "validation_freq",
)  # fmt: skip

DROPPED = ("workers", "use_multiprocessing", "max_queue_size", "max_q_size", "pickle_safe", "nb_worker")
"""Arguments of `fit` and similar about Python threads and processes, which Keras 3 does not have either."""

RENAMED = {"generator": "x", "nb_epoch": "epochs", "samples_per_epoch": "steps_per_epoch", "nb_val_samples": "validation_steps"}

STEPS = ("steps_per_epoch", "validation_steps", "steps")  # arguments that are not needed for a dataset of known length

_ROOTS = ("keras", "tensorflow", "tf_keras", "keras_preprocessing", "tensorflow_core")


def is_keras(name: str) -> bool:
    """True if a full name belongs to any package of Keras."""
    return name.split(".")[0] in _ROOTS
