"""The parts of the nightly tests, each of which ends within half an hour on two quiet cores: `pytest --part NAME -n 2`.

`python tests/nightly_parts.py` prints their names, one a line. Every file with a nightly test is in exactly one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """Files and folders of tests, and the minutes that they take on two quiet cores."""

    about: str
    minutes: int
    paths: tuple[str, ...]

    def named(self, path: str) -> int:
        """The length of what names a file here, as named from the root, or a folder that it is in; 0 where nothing does."""
        return max((len(own) for own in self.paths if path == own or path.startswith(f"{own}/")), default=0)


def _files(names: str, folder: str = "") -> tuple[str, ...]:
    """Files of tests, by what their names have in the middle."""
    return tuple(f"tests/{folder}test_{name}.py" for name in names.split())


def _folders(names: str) -> tuple[str, ...]:
    """Folders of tests."""
    return tuple(f"tests/{name}" for name in names.split())


PARTS = {
    "steps": Part(
        "each step by itself",
        12,
        (
            *_folders("ops/transforms"),
            *_files("contract soundness schedules drawn traced_once sound_decoding resampling images_of_several_sizes", "ops/"),
        ),
    ),
    "arguments": Part("every wrong argument is judged", 15, _files("wrong_arguments", "ops/")),
    "kinds": Part("boxes, masks, keypoints, events, and the sources by themselves", 7, _folders("ops/kinds ops/sources")),
    "sources": Part("a pipeline on every source", 10, _files("every_source record_pipelines sources_page huggingface tfds_pipeline")),
    "forms": Part(
        "every way to store an image, a label or a box",
        12,
        _files("every_form_is_read stored_records annotated_orientation boxed_sources chosen_classes checksums mixed_shards pixels")
        + _files(
            "coco_masks columns_of_records sounds_as_lists columns_of_sources cut_items joined_records items_in_records items_in_tables"
        )
        + _files("label_rule block_pipelines sharded_pipeline splits_in_two_forms")
        + _files("pointed_annotations detection_layout detection_data_page"),
    ),
    "any-spec": Part("any spec on any source gives what it gives on files", 20, _files("any_spec_on_any_source")),
    "any-kind": Part("any kind from any source is that of arrays", 20, _files("kinds_by_sources made_up_kind_and_source")),
    "faults": Part("faults in the bytes of every container", 12, _files("fault_injection")),
    "choices": Part(
        "every choice of the language",
        8,
        _files(
            "every_choice mix mixing_docs data_tests fitting from_image_dataset directory_dataset recognised_maps masking tasks pipeline"
            " changed_import own_source plan_page several_labels sound_directory series spectrogram_pipelines ten_pipelines"
            " unlabelled_split"
        ),
    ),
    "views": Part("every step in views", 15, _files("views tta")),
    "resuming": Part("runs that go on elsewhere", 8, _files("resuming_fit resuming_recipes elastic distributed training_stages resume")),
    "kills": Part("runs that are killed", 20, _files("killed_runs whole_files")),
    "spec": Part(
        "specs, hashes, findings, commands, old code",
        12,
        _folders("spec plan diagnostics comparing locking migrate compat cli doctor monitor profiling quality")
        + _files("typing import_boundaries nightly_parts"),
    ),
    "passes": Part("passes, and the forms of their plans", 8, _folders("passes physical")),
    "combinations": Part("every combination through every pass", 28, _files("every_combination", "passes/")),
    "backend": Part("kernels, orders, services, data", 10, _folders("backend service sampling data preparing")),
    "training": Part(
        "what trains, serves and is written out",
        12,
        _folders("examples")
        + _files(
            "device_stage eject evaluation_layer grain_batches jax_batches jax_training keras model_ranges other_backends predict_on"
            " released serving stages_built_once weighted_mean"
        ),
    ),
    "onednn": Part("the proofs by day, with TensorFlow as users have it", 20, _files("onednn")),
    "extras": Part("each extra in an environment of its own; reads a package index", 20, _files("extras")),
    "measured": Part(
        "benchmarks, with TensorFlow as users have it; alone on the machine, with `-n 0`",
        17,
        (*_folders("benchmarks"), *_files("expected_memory"), *_files("cli_profile", "cli/"), *_files("profile", "profiling/")),
    ),
    "mutants": Part("mistakes in the code that a test has to notice; with `-n 0`", 29, _folders("mutants")),
}


def parts_of(path: str) -> list[str]:
    """The names of the parts that a file, as named from the root, is in: a part that names the file comes before one with its folder."""
    closest = max(part.named(path) for part in PARTS.values())
    return [name for name, part in PARTS.items() if closest and part.named(path) == closest]


def has_nightly_tests(text: str) -> bool:
    """Whether a file of tests can have some that run by night alone."""
    return "mark.nightly" in text or "mark.by_day" in text


def files(root: Path) -> list[str]:
    """Files with nightly tests, as named from the root."""
    found = sorted((root / "tests").rglob("test_*.py"))
    return [str(path.relative_to(root)) for path in found if has_nightly_tests(path.read_text(encoding="utf-8"))]


def table() -> str:
    """The parts as a table of Markdown."""
    rows = [f"| `{name}` | {part.about} | {part.minutes} |" for name, part in PARTS.items()]
    return "\n".join(["| part | what it tries | minutes |", "| --- | --- | --- |", *rows])


if __name__ == "__main__":
    print("\n".join(PARTS))
