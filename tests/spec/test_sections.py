"""Every section is checked, every mistake found in one run, each in one tidy sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from spec_helpers import HEAD, codes, fixed, marked, only, read

from pipegen.diagnostics.diagnostic import Applicability
from pipegen.spec.load import load

FULL = """\
pipegen: 1
name: flowers
params:
  data: {type: path, default: flowers/, env: FLOWERS}
  size: {type: int, default: 224, min: 32}
source: {image_folder: {path: $data}}
splits: {parts: {train: 0.8, validation: 0.2}, stratify: label}
transforms:
  - resize: {size: $size}
  - random_flip
  - random_rotation: {degrees: 20, fill: reflect}
  - random_brightness: {factor: 0.2, probability: 0.5}
  - normalize: {preset: resnet50}
seed: 17
shuffle: global
batch: {size: 64}
output: {x: image, y: label, encode: {label: one_hot}}
errors: {decode: {skip: {max_fraction: 0.001}}}
runtime:
  cache: auto
  shard: auto
  prefetch: auto
  ram_budget: 8GiB
"""


def test_the_full_spec_of_the_language() -> None:
    loaded = read(FULL, head="")
    assert codes(loaded) == []
    spec = loaded.spec
    assert spec is not None
    assert [step.op for step in spec.transforms] == ["resize", "random_flip", "random_rotation", "random_brightness", "normalize"]
    assert spec.source.path == str(Path.cwd() / "flowers")  # type: ignore[attr-defined]
    assert spec.runtime.ram_budget == 8 * 2**30
    assert spec.errors.skip is not None
    assert spec.batch.remainder_for("train") == "drop"
    assert spec.batch.remainder_for("validation") == "keep"
    assert spec.split_names() == ("train", "validation")


def test_the_shortest_spec_and_its_defaults() -> None:
    loaded = read("")
    assert codes(loaded) == []
    assert loaded.spec is not None
    assert (loaded.spec.name, loaded.spec.seed, loaded.spec.shuffle, loaded.spec.batch.size) == ("spec", 0, "global", 32)
    assert loaded.spec.split_names() == ("train",)
    assert read("source: {image_folder: {path: x, labels: none}}\n", head="pipegen: 1\n").spec.split_names() == ("predict",)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("shuffle: globl", "`shuffle` is `global`, `none` or `{window: SIZE}`, got `globl`"),
        ("shuffle: 3", "`shuffle` is `global`, `none` or `{window: SIZE}`, got `3`"),
        ("shuffle: ~", "`shuffle` is `global`, `none` or `{window: SIZE}`, got nothing"),
        ("shuffle: [global]", "`shuffle` is `global`, `none` or `{window: SIZE}`, got a list of 1"),
        ("shuffle: {window: 0}", "`shuffle.window` is a size such as `512MiB`, got `0`"),
        ("epoch: 5", "`epoch` is `pass` or `{steps: N}`, got `5`"),
        ("epoch: {steps: 0}", "`epoch.steps` is a whole number of 1 or more, got `0`"),
        ("batch: {size: 0}", "`batch.size` is a whole number of 1 or more, got `0`"),
        ("batch: {size: true}", "`batch.size` is a whole number of 1 or more, got `true`"),
        ("batch: {remainder: {train: kep}}", "`batch.remainder.train` is `drop`, `keep` or `pad`, got `kep`"),
        ("batch: 64", "`batch` is a map with `size`, `remainder`, `pad` and `buckets`, got `64`"),
        ("seed: -1", "`seed` is a whole number of 0 or more, got `-1`"),
        ("seed: 1.5", "`seed` is a whole number of 0 or more, got `1.5`"),
        (
            "splits: {parts: {train: 1.0}}",
            "`splits.parts.train` is a number above 0 and below 1, a whole number of 1 or more, text or a map "
            "`{NAME: VALUE, …}`, got `1.0`",
        ),
        (
            "splits: {method: rondam}",
            "`splits.method` is `random`, `hash`, `folder`, `keras`, `keras_utility`, `time`, `{column: COLUMN}` or `{time: {…}}`, "
            "got `rondam`",
        ),
        ("splits: {folds: {count: 1, fold: 0}}", "`splits.folds.count` is a whole number of 2 or more, got `1`"),
        (
            "splits: {parts: {train: all}}",
            "`splits.parts.train` is a fraction above 0 and below 1 or a whole number of examples, got `all`",
        ),
        ("output: {dtype: double}", "`output.dtype` is `float32`, `float16`, `bfloat16` or `uint8`, got `double`"),
        ("output: {x: 3}", "`output.x` is text, a list of texts or a map `{NAME: VALUE, …}`, but `3` is a number"),
        ("errors: {decode: skip}", "`errors.decode` is `raise` or `{skip: {…}}`, got `skip`"),
        ("errors: {decode: {skip: {max_fraction: 2}}}", "`errors.decode.skip.max_fraction` is a number from 0 to 1, got `2`"),
        ("runtime: {cache: momory}", "`runtime.cache` is `auto`, `memory`, `none` or `{disk: DISK}`, got `momory`"),
        ("runtime: {shard: 3}", "`runtime.shard` is `auto`, `none` or `{index: N, count: N}`, got `3`"),
        ("runtime: {shard: {index: 2, count: 2}}", "`runtime.shard.index` counts from 0, so with `count: 2` it is at most 1, got 2"),
        ("runtime: {prefetch: 0}", "`runtime.prefetch` is `auto`, `none`, a whole number of 1 or more or `{device: DEVICE}`, got `0`"),
        ("runtime: {threads: 0}", "`runtime.threads` is `auto` or a whole number of 1 or more, got `0`"),
        (
            "runtime: [a]",
            "`runtime` is a map with `cache`, `shard`, `shares`, `prefetch`, `threads`, `ram_budget`, `remote_cache`, `jit` and `service`, "
            "got a list of 1",
        ),
        (
            "transforms: [{resize: {size: 0}}]",
            "`resize.size` is `bucket`, a whole number from 1 to 32767 or a pair of whole numbers from 1 to 32767, got `0`",
        ),
        ("transforms: [{resize: {size: [1, 2, 3]}}]", "`resize.size` is a pair of whole numbers from 1 to 32767, got a list of 3"),
        ("transforms: [{resize: {size: [1, x]}}]", "`resize.size[1]` is a whole number from 1 to 32767, got `x`"),
        ("transforms: [{random_rotation: {degrees: [20, 10]}}]", "`random_rotation.degrees` is a range [low, high], but 20 is above 10"),
        (
            "transforms: [{random_rotation: {degrees: 5, fill: reflct}}]",
            "`random_rotation.fill` is `reflect`, `nearest`, `wrap` or `{constant: VALUE}`, got `reflct`",
        ),
        ("transforms: [{random_rotation: {degrees: 5, fill: {constant: red}}}]", "`random_rotation.fill.constant` is a number, got `red`"),
        ("transforms: [{random_flip: {when: 3}}]", "`random_flip.when` is `train`, `eval`, `all` or a list of names, got `3`"),
        ("seed: .inf", "`seed` must be a finite number, got `inf`"),
    ],
)
def test_one_tidy_sentence(body: str, sentence: str) -> None:
    assert only(read(body)).message == sentence


def test_a_whole_number_as_a_fraction_is_no_count() -> None:
    """Of the data, and of a part of a mix: `1` would be one example."""
    part = "source: {mix: {epoch: 4, parts: {a: {source: {image_folder: {path: x}}, splits: {parts: {train: 1.0}}}}}}"
    for loaded in (read("splits: {parts: {train: 1.0}}"), read(part, head="pipegen: 1\n")):
        finding = only(loaded)
        assert (finding.help, finding.fix) == (("write a fraction below 1, or a whole number of examples",), None)


def test_no_message_speaks_of_the_machinery() -> None:
    body = """
    shuffle: {windw: 3}
    batch: {size: x, remainder: 3}
    output: {encode: {label: 3}, x: [1], y: {a: 2}}
    runtime: {ram_budget: lots, shard: {index: a}, cache: {disk: 3}}
    splits: {parts: {train: [], 1a: 0.1}, folds: {}, group: {path: 3}}
    transforms: [{resize: {size: {}}}, {random_flip: {when: [1], id: 3}}, {normalize: {mean: a, std: {}}}, {rescale: {to: [0]}}]
    """
    loaded = read(body)
    assert len(loaded.diagnostics) >= 15
    classes = r"[A-Z][a-z]+(Shuffle|Choice|Fill|Cache|Prefetch|Index|Method)\b"
    words = re.compile(rf"pydantic|Input should|valid (dictionary|integer|string)|instance of|{classes}|Value error|literal\[|tuple\[")
    for finding in loaded.diagnostics:
        assert not words.search(" ".join([finding.message, *finding.help]))


def test_every_mistake_of_every_section_in_one_run() -> None:
    body = """
    nmae: x
    params: {p: {type: int, default: 1}}
    splits: {parts: {train: 2.0}}
    transforms: [rezise, {resize: {size: -1}}]
    seed: -1
    shuffle: no
    epoch: {steps: 0}
    batch: {size: 0}
    output: {channels: frist}
    errors: {decod: raise}
    runtime: {cach: none}
    tests: {}
    """
    loaded = read(body, head="source: {image_foldr: {path: x}}\n")
    assert sorted(codes(loaded)) == ["PG101", *["PG102"] * 3, *["PG103"] * 2, "PG104", *["PG105"] * 7, "PG107"]
    assert loaded.spec is None


@pytest.mark.parametrize(
    ("body", "key", "near"),
    [
        ("bacth: {size: 3}", "bacth", "batch"),
        ("batch: {sise: 3}", "sise", "size"),
        ("epoch: {step: 3}", "step", "steps"),
        ("shuffle: {windw: 1GiB}", "windw", "window"),
        ("errors: {decode: {skip: {max_fractoin: 0.1}}}", "max_fractoin", "max_fraction"),
        ("runtime: {shard: {idnex: 0, count: 2}}", "idnex", "index"),
        ("transforms: [{resize: {siez: 3}}]", "siez", "size"),
        ("transforms:\n  - random_flip:\n      probabilty: 0.5\n", "probabilty", "probability"),
        ("params: {p: {type: int, defualt: 3}}\nseed: $p", "defualt", "default"),
    ],
)
def test_unknown_keys_are_marked_and_mended(body: str, key: str, near: str) -> None:
    loaded = read(body)
    finding = only(loaded)
    assert finding.code == "PG102"
    assert marked(finding, loaded) == key
    assert f"did you mean `{near}`?" in finding.help
    assert codes(read(fixed(finding, loaded), head="")) == []


def test_a_name_from_elsewhere_is_suggested_but_not_put_in() -> None:
    finding = only(read("augmentations: []"))
    assert "did you mean `transforms`?" in finding.help
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SUGGESTION


def test_unknown_keys_list_what_there_is() -> None:
    finding = only(read("batch: {zzz: 3}"))
    assert finding.help == ("`batch` takes `size`, `remainder`, `pad` and `buckets`",)


@pytest.mark.parametrize(
    ("value", "code"), [("2", "PG111"), ("1.0", "PG111"), ("0", "PG111"), ("'1'", "PG104"), ("true", "PG104"), ("~", "PG104")]
)
def test_versions(value: str, code: str) -> None:
    assert codes(read("", head=f"pipegen: {value}\nsource: {{image_folder: {{path: x}}}}\n")) == [code]


def test_a_missing_version_can_be_inserted() -> None:
    head = "# a comment\n\nsource: {image_folder: {path: x}}\n"
    loaded = read("", head=head)
    finding = only(loaded)
    assert finding.code == "PG101"
    assert fixed(finding, loaded) == "# a comment\n\npipegen: 1\nsource: {image_folder: {path: x}}\n"


def test_a_missing_source() -> None:
    finding = only(read("", head="pipegen: 1\n"))
    assert finding.code == "PG101"
    assert "image_folder" in finding.help[0]


def test_a_space_missing_in_braces() -> None:
    finding = only(read("batch: {size:32}"))
    assert finding.code == "PG102"
    assert any("space" in line for line in finding.help)


@pytest.mark.parametrize(
    ("body", "n"),
    [
        ("splits: {parts: {true: 0.5}}", 1),
        ("1: 2", 1),
        ("batch: {~: 3}", 1),
        ("output: {x: {1: image}}", 1),
        ("splits: {parts: {5: 0.5}}", 1),
        ("? [a, b]\n: 3", 1),
    ],
)
def test_a_key_that_is_no_text_gives_one_finding(body: str, n: int) -> None:
    assert len(read(body).diagnostics) == n


def test_an_odd_key_can_be_quoted() -> None:
    loaded = read("output: {x: {1: image}}")
    finding = only(loaded)
    assert finding.code == "PG104"
    assert "{'1': image}" in fixed(finding, loaded)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("flowers.pipegen.yaml", "flowers"),
        ("flowers.yml", "flowers"),
        ("a.b.yaml", "a.b"),
        ("-", None),
        ("<stdin>", None),
        ("plain", "plain"),
    ],
)
def test_the_default_name_is_the_file_s(name: str, stem: str | None) -> None:
    spec = load(name, text=HEAD, env={}).spec
    assert spec is not None
    assert spec.name == stem


def test_step_ids_must_differ() -> None:
    loaded = read("transforms:\n  - random_flip: {id: a}\n  - random_rotation: {degrees: 5, id: a}\n")
    finding = only(loaded)
    assert finding.code == "PG216"
    assert marked(finding, loaded) == "a"
    assert [label.span.line for label in finding.labels if label.span] == [5, 4]
    assert codes(read("transforms: [random_flip, {random_rotation: {degrees: 5, id: random_flip}}]")) == ["PG216"]


@pytest.mark.parametrize("form", ["missing.yaml", ".", "x/y.yaml"])
def test_a_spec_that_cannot_be_read(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load(form, env={})
    assert codes(loaded) == ["PG005"]
    assert loaded.spec is None


def test_a_near_file_name_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flowers.pipegen.yaml").write_text(HEAD)
    assert only(load("flower.pipegen.yaml", env={})).help == ("did you mean `flowers.pipegen.yaml`?",)


def test_bytes_from_standard_input() -> None:
    assert codes(load("-", text=HEAD.encode(), env={})) == []
    assert codes(load("-", text=b"\xff\xfe", env={})) == ["PG001"]


def test_findings_are_errors_only_where_they_are() -> None:
    loaded = read("params: {p: {type: int, default: 1}}")
    assert not loaded.diagnostics.has_errors
    assert loaded.spec is not None


def test_home_and_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert read("", head="pipegen: 1\nsource: {image_folder: {path: ~/x}}\n").raw["source"]["image_folder"]["path"] == "/home/someone/x"
    assert read("", head="pipegen: 1\nsource: {image_folder: {path: 'gs://b/x'}}\n").raw["source"]["image_folder"]["path"] == "gs://b/x"
