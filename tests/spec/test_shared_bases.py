"""Base specs in packages and repositories: found without running or fetching anything, with findings that lead there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import invalidate_caches
from pathlib import Path

import pytest
from spec_helpers import codes, only

from pipegen.data.named_files import missing_data
from pipegen.diagnostics.machine_readable import render_github, render_sarif
from pipegen.diagnostics.text import render_text
from pipegen.errors import OpError
from pipegen.phases.compilation import inspect
from pipegen.spec.load import Loaded, load
from pipegen.spec.lock_file import digest, find_lock
from pipegen.spec.shared_bases import GitFile, PackageFile, parse
from pipegen.spec.spec_hash import spec_hash

BASE = """\
pipegen: 1
params:
  data: {type: path}
  size: {type: int, default: 224}
source: {image_folder: {path: $data}}
splits: {parts: {train: 0.8, validation: 0.2}}
transforms:
  - resize: {size: $size}
batch: {size: 64}
"""
BOOM = "raise SystemExit('a line of the package ran')\n"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT = "git+https://example.org/team/specs@v1.2"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, beside an empty folder of packages."""
    (tmp_path / "project").mkdir()
    (tmp_path / "site").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "project"


def package(project: Path, **files: str) -> None:
    """Puts files into the folder of packages; `__` in a name stands for `/`."""
    for name, text in files.items():
        path = project.parent / "site" / name.replace("__", "/").replace("INIT", "__init__.py").replace("YAML", ".pipegen.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    invalidate_caches()


def over(text: str) -> Loaded:
    Path("mine.pipegen.yaml").write_text(text)
    return load("mine.pipegen.yaml", env={})


PLACES = {
    "folder": (["team/__init__.py", "team/photos/base.pipegen.yaml"], "pkg:team/photos/base.pipegen.yaml"),
    "package in a package": (
        ["team/__init__.py", "team/photos/__init__.py", "team/photos/base.pipegen.yaml"],
        "pkg:team.photos/base.pipegen.yaml",
    ),
    "namespace": (["team/photos/base.pipegen.yaml"], "pkg:team/photos/base.pipegen.yaml"),
    "package in a namespace": (["team/photos/__init__.py", "team/photos/base.pipegen.yaml"], "pkg:team.photos/base.pipegen.yaml"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_a_base_in_a_package_is_found_without_running_it(place: str, packed: bool, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, address = PLACES[place]
    texts = {file: BOOM if file.endswith(".py") else BASE for file in files}
    if packed:
        archive = project.parent / "packed.zip"
        with zipfile.ZipFile(archive, "w") as opened:
            for file, text in texts.items():
                opened.writestr(file, text)
        monkeypatch.syspath_prepend(str(archive))
    else:
        package(project, **{file.replace("/", "__"): text for file, text in texts.items()})
    loaded = over(f"extends: {address}\nparams: {{data: {{default: photos/}}}}\nbatch: {{remainder: keep}}\n")
    assert codes(loaded) == []
    assert loaded.raw["source"]["image_folder"]["path"] == str(project / "photos"), "relative to the project"
    assert loaded.raw["batch"] == {"size": 64, "remainder": "keep"}
    assert loaded.texts[address] == BASE
    assert loaded.locate.origin(("batch", "size")) == f"{address}:9:15"
    assert "team" not in sys.modules


def test_a_namespace_over_two_places(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(project, team__aYAML="extends: b.pipegen.yaml\nseed: 3\n")
    other = project.parent / "other" / "team"
    other.mkdir(parents=True)
    (other / "b.pipegen.yaml").write_text(BASE)
    monkeypatch.syspath_prepend(str(other.parent))
    loaded = over("extends: pkg:team/a.pipegen.yaml\nparams: {data: {default: x/}}\n")
    assert codes(loaded) == []
    assert [*loaded.texts] == ["mine.pipegen.yaml", "pkg:team/a.pipegen.yaml", "pkg:team/b.pipegen.yaml"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("pkg:tema/base.pipegen.yaml", "did you mean `team`?"),
        ("pkg:team/bas.pipegen.yaml", "did you mean `pkg:team/photos/base.pipegen.yaml`?"),
        ("pkg:json.tool/a.yaml", "has no file a.yaml"),
        ("pkg:this/a.yaml", "`this` is a module"),
        ("pkg:sys/a.yaml", "`sys` is a module"),
    ],
)
def test_a_base_that_is_not_there(address: str, said: str, project: Path) -> None:
    package(project, team__INIT=BOOM, team__photos__baseYAML=BASE)
    finding = only(over(f"extends: {address}\nparams: {{data: {{default: x/}}}}\n"))
    assert finding.code == "PG113"
    assert said in " ".join((finding.message, *finding.help))
    assert str(finding.span) == "mine.pipegen.yaml:1:10"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("../photos/base.pipegen.yaml", "PG104"),  # stays in the package; the spec there is wrong
        ("../../secret.yaml", "PG115"),
        ("/etc/passwd", "PG115"),
        (".", "PG113"),
        ("missing.yaml", "PG113"),
    ],
)
def test_a_packaged_base_stays_in_its_package(value: str, code: str, project: Path) -> None:
    package(project, team__specs__aYAML=f"extends: {value}\n", team__photos__baseYAML=BASE + "seed: x\n", **{"secret.yaml": BASE})
    found = over("extends: pkg:team/specs/a.pipegen.yaml\nparams: {data: {default: x/}}\n").diagnostics
    assert [d.code for d in found] == [code]


def test_what_is_no_spec_is_not_shown(project: Path) -> None:
    package(project, **{"team__secrets.yaml": "password: hunter2\n"})
    finding = only(over("extends: pkg:team/secrets.yaml\n"))
    assert finding.code == "PG110"
    assert "hunter2" not in render_text([finding])


def test_a_relative_path_of_a_packaged_base_is_a_finding(project: Path) -> None:
    package(
        project,
        team__pathYAML=BASE.replace("$data", "photos/"),
        team__paramYAML=BASE.replace("data: {type: path}", "data: {type: path, default: photos/}"),
        team__diskYAML=BASE + "runtime: {cache: {disk: kept/}}\n",
        team__unsetYAML=BASE,
        team__homeYAML=BASE.replace("$data", "~/photos"),
    )
    for name, place, own in (("path", "5:31", ""), ("param", "3:31", ""), ("disk", "10:25", "params: {data: {default: x/}}\n")):
        spec = f"extends: pkg:team/{name}.pipegen.yaml\n{own}"
        finding = next(d for d in over(spec).diagnostics if d.code != "PG107")
        assert (finding.code, str(finding.span)) == ("PG114", f"pkg:team/{name}.pipegen.yaml:{place}")
        advised = finding.help[0].lines  # type: ignore[attr-defined]
        assert codes(over(f"{spec}{advised}\n")) == ["PG107"] * (name == "path")
    assert "in the spec that extends this one" in only(over("extends: pkg:team/unset.pipegen.yaml\n")).help[0]
    assert "PG114" not in codes(over("extends: pkg:team/home.pipegen.yaml\n"))


def test_findings_point_through_the_chain(project: Path) -> None:
    package(project, team__baseYAML=BASE.replace("size: 64", "size: 0"), team__middleYAML="extends: base.pipegen.yaml\nseed: 3\n")
    Path("mine.pipegen.yaml").write_text("extends: pkg:team/middle.pipegen.yaml\nparams: {data: {default: x/}}\n")
    found = inspect("mine.pipegen.yaml")
    (finding,) = found.diagnostics
    places = [str(label.span) for label in finding.labels]
    assert places == ["pkg:team/base.pipegen.yaml:9:15", "pkg:team/middle.pipegen.yaml:1:10", "mine.pipegen.yaml:1:10"]
    text = render_text([finding], sources=found.loaded.texts)
    assert "9 | batch: {size: 0}" in text
    assert text.count("extended here") == 2
    (line,) = render_github([finding]).splitlines()
    assert line.startswith("::error file=mine.pipegen.yaml,line=1,col=10,")
    assert "pkg:team/base.pipegen.yaml:9:15: `batch.size`" in line
    assert '"uri": "mine.pipegen.yaml"' in render_sarif([finding]).partition("relatedLocations")[0]


def test_what_stands_in_a_package_is_not_fixed(project: Path) -> None:
    package(project, team__baseYAML=BASE.replace("batch: {size: 64}", "seed: '3'\nbatch: {siez: 64}"))
    Path("mine.pipegen.yaml").write_text("extends: pkg:team/base.pipegen.yaml\nparams: {data: {default: x/}}\nshufle: none\n")
    fixes = {d.code + str(d.in_base): d.fix is not None for d in inspect("mine.pipegen.yaml").diagnostics}
    assert fixes["PG102False"] is True
    assert fixes["PG102True"] is False


def test_several_bases_of_which_later_ones_win(project: Path) -> None:
    package(project, team__baseYAML=BASE)
    Path("fast.yaml").write_text("extends: common.yaml\nbatch: {size: 8}\nruntime: {threads: 2}\n")
    Path("common.yaml").write_text("seed: 1\nbatch: {size: 4, remainder: keep}\nruntime: {jit: never}\n")
    loaded = over("extends: [pkg:team/base.pipegen.yaml, fast.yaml]\nparams: {data: {default: x/}}\nruntime: {threads: 1}\n")
    assert codes(loaded) == []
    spec = loaded.spec
    assert spec is not None
    assert (spec.seed, spec.batch.size, spec.batch.remainder, spec.runtime.jit, spec.runtime.threads) == (1, 8, "keep", "never", 1)
    origin = loaded.locate.origin
    assert origin(("batch", "size")) == "fast.yaml:2:15"
    assert origin(("batch", "remainder")) == "common.yaml:2:29"
    assert origin(("runtime", "threads")) == "mine.pipegen.yaml:3:20"
    turned = over("extends: [fast.yaml, pkg:team/base.pipegen.yaml]\nparams: {data: {default: x/}}\n").spec
    assert turned is not None
    assert turned.batch.size == 64


def test_bases_of_every_kind_in_one_spec(project: Path) -> None:
    """A package's steps, edited by a base from git, and once more by the spec itself."""
    package(project, team__baseYAML=BASE + "shuffle: none\n", team__fastYAML="runtime: {threads: 1}\n")
    locked(project, "transforms: {append: [random_flip, {rescale: {to: [0, 1]}}]}\n", name="edits.pipegen.yaml")
    loaded = over(
        f"extends: [pkg:team/base.pipegen.yaml, {GIT}#edits.pipegen.yaml, pkg:team/fast.pipegen.yaml]\n"
        "params: {data: {default: x/}}\ntransforms: {replace: {random_flip: {random_flip: {axis: both}}}}\n"
    )
    assert codes(loaded) == []
    steps = [next(iter(step)) if isinstance(step, dict) else step for step in loaded.raw["transforms"]]
    assert steps == ["resize", "random_flip", "rescale"]
    origin = loaded.locate.origin
    assert origin(("transforms", 2, "rescale", "to")).startswith(f"{GIT}#edits.pipegen.yaml:1:")
    assert origin(("transforms", 1, "random_flip", "axis")).startswith("mine.pipegen.yaml:3:")
    assert origin(("runtime", "threads")) == "pkg:team/fast.pipegen.yaml:1:20"


def test_a_base_may_be_met_twice_but_not_in_a_circle(project: Path) -> None:
    Path("common.yaml").write_text(BASE)
    for name in "ab":
        Path(f"{name}.yaml").write_text("extends: common.yaml\nseed: 2\n")
    assert codes(over("extends: [a.yaml, b.yaml]\nparams: {data: {default: x/}}\n")) == []
    Path("common.yaml").write_text(f"extends: [b.yaml]\n{BASE}")
    finding = only(over("extends: a.yaml\nparams: {data: {default: x/}}\n"))
    assert finding.code == "PG109"
    assert "b.yaml -> common.yaml" in finding.message
    for i in range(12):  # two to the twelfth, were each read as often as it is met
        Path(f"{i}.yaml").write_text(f"extends: [{i + 1}.yaml, ./{i + 1}.yaml]\n")
    Path("12.yaml").write_text(BASE)
    assert "PG003" in codes(over("extends: 0.yaml\n"))


def test_every_base_that_is_wrong_is_said(project: Path) -> None:
    found = over("extends: [a.yaml, pkg:tema/b.yaml, 3]\nseed: x\n").diagnostics
    assert [(d.code, str(d.span)) for d in found] == [
        ("PG110", "mine.pipegen.yaml:1:11"),
        ("PG113", "mine.pipegen.yaml:1:19"),
        ("PG104", "mine.pipegen.yaml:1:36"),
        ("PG104", "mine.pipegen.yaml:2:7"),
    ]


RIGHT = {
    "pkg:a.b/c/d.yaml": PackageFile("a.b", "c/d.yaml"),
    "git+https://h.org/t/s.git@v1#a/b.yaml": GitFile("git+https://h.org/t/s.git@v1", "a/b.yaml", "https://h.org/t/s.git", "v1"),
    "git+ssh://git@h.org:22/t/s@rel/1#b.yaml": GitFile("git+ssh://git@h.org:22/t/s@rel/1", "b.yaml", "ssh://git@h.org:22/t/s", "rel/1"),
    "base.yaml": None,
    "C:/base.yaml": None,
}


@pytest.mark.parametrize("value", RIGHT)
def test_addresses(value: str) -> None:
    address = parse(value)
    assert address == RIGHT[value]
    assert address is None or str(address) == value


@pytest.mark.parametrize(
    "value",
    [
        "pkg:a",
        "pkg:/a.yaml",
        "pkg:a-b/c.yaml",
        "pkg:a/../b.yaml",
        "pkg:a//b.yaml",
        "pkg:a/b\x1b.yaml",
        "git+http://h/s@v#b.yaml",
        "git+file:///s@v#b.yaml",
        "git+git@h:t/s@v#b.yaml",
        "git+ext::sh -c date@v#b.yaml",
        "git+https://u:secret@h/s@v#b.yaml",
        "git+https://token@h/s@v#b.yaml",
        "git+https://h/s#b.yaml",
        "git+https://h/s@v",
        "git+https://h/s@--upload-pack=date#b.yaml",
        "git+https://h/s@a..b#b.yaml",
        "git+https://h/s@v#../b.yaml",
        "git+https://h/s@v#.git/config",
        "git+https://h/s?x=1@v#b.yaml",
        "git+ssh://-oProxyCommand=date/s@v#b.yaml",
        "git+https://h:99999/s@v#b.yaml",
        "git+https:///s@v#b.yaml",
        "https://h/base.yaml",
    ],
)
def test_what_is_no_address(value: str) -> None:
    with pytest.raises(OpError) as caught:
        parse(value)
    assert caught.value.code == "PG115"
    assert "secret" not in caught.value.message
    assert caught.value.help


def locked(folder: Path, text: str = BASE, *, kept: str | None = None, name: str = "base.pipegen.yaml") -> None:
    """Writes a lock as `pipegen lock` does, with the text of one base."""
    place = folder / "pipegen.lock.d" / f"specs-{COMMIT[:12]}" / name
    place.parent.mkdir(parents=True)
    place.write_text(text if kept is None else kept)
    (folder / "pipegen.lock").write_text(
        f"pipegen_lock: 1\ngit:\n  {GIT}:\n    commit: {COMMIT}\n    texts: {{{name}: {digest(text.encode())}}}\n"
    )


def test_a_base_from_git_comes_from_the_nearest_lock_above(project: Path) -> None:
    locked(project)
    (project / "models" / "daisies").mkdir(parents=True)
    Path("models/daisies/spec.yaml").write_text(f"extends: {GIT}#base.pipegen.yaml\nparams: {{data: {{default: x/}}}}\n")
    loaded = load("models/daisies/spec.yaml", env={})
    assert codes(loaded) == []
    assert loaded.raw["source"]["image_folder"]["path"] == str(project / "models" / "daisies" / "x")
    assert loaded.locate.origin(("batch", "size")) == f"{GIT}#base.pipegen.yaml:9:15"
    locked(project / "models", BASE.replace("64", "16"))
    nearer = load("models/daisies/spec.yaml", env={})
    assert nearer.spec is not None
    assert nearer.spec.batch.size == 16


@pytest.mark.parametrize(
    ("revision", "file", "said"),
    [
        ("v1.2", "base.pipegen.yaml", ""),
        ("v1.3", "base.pipegen.yaml", f"{GIT[:-1]}3 is not resolved: it is not in pipegen.lock"),
        ("v1.2", "other.pipegen.yaml", f"{GIT}#other.pipegen.yaml is not resolved"),
    ],
)
def test_what_the_lock_does_not_know(revision: str, file: str, said: str, project: Path) -> None:
    locked(project)
    found = over(f"extends: {GIT.replace('v1.2', revision)}#{file}\nparams: {{data: {{default: x/}}}}\n").diagnostics.items
    assert [d.code for d in found] == (["PG116"] if said else [])
    if said:
        assert said in found[0].message
        assert "`pipegen lock`" in found[0].help[0]


def test_no_lock_and_a_changed_text(project: Path) -> None:
    spec = f"extends: {GIT}#base.pipegen.yaml\nparams: {{data: {{default: x/}}}}\n"
    finding = only(over(spec))
    assert finding.code == "PG116"
    assert "no pipegen.lock in the spec's folder or above" in finding.message
    locked(project, kept=BASE + "seed: 3\n")
    finding = only(over(spec))
    assert finding.code == "PG117"
    assert f"pipegen.lock.d/specs-{COMMIT[:12]}/base.pipegen.yaml differs from the text" in finding.message
    next(Path("pipegen.lock.d").rglob("*.yaml")).unlink()
    assert only(over(spec)).code == "PG117"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [\n", "it is not YAML"),
        ("pipegen_lock: 1\n<<<<<<< mine\na: 1\n=======\n", "it has a merge conflict"),
        ("pipegen_lock: 2\n", "has format 2"),
        ("pipegen_lock: 1\ngit: {x: {commit: y}}\n", "is damaged at `git.x.commit`"),
        ("", "is damaged"),
    ],
)
def test_a_damaged_lock(text: str, said: str, project: Path) -> None:
    Path("pipegen.lock").write_text(text)
    finding = only(over(f"extends: {GIT}#base.pipegen.yaml\nparams: {{data: {{default: x/}}}}\n"))
    assert finding.code == "PG532"
    assert said in finding.message


def test_a_lock_of_another_user_is_passed_over(project: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    locked(project.parent)
    assert find_lock(project) == project.parent / "pipegen.lock"
    os.chown(project.parent / "pipegen.lock", 12345, 12345)
    assert find_lock(project) != project.parent / "pipegen.lock"


def test_nothing_is_imported_that_fetches(project: Path) -> None:
    """Validating a spec whose base lies in a package, and one from git, starts no process and opens no socket."""
    package(project, team__baseYAML=BASE, team__INIT=BOOM)
    locked(project)
    Path("a.pipegen.yaml").write_text("extends: pkg:team/base.pipegen.yaml\nparams: {data: {default: x/}}\n")
    Path("b.pipegen.yaml").write_text(f"extends: {GIT}#base.pipegen.yaml\nparams: {{data: {{default: x/}}}}\n")
    code = (
        "import sys, socket, subprocess\n"
        "socket.socket = subprocess.Popen = sys.modules['tensorflow'] = sys.modules['team'] = None\n"
        "sys.argv = ['pipegen', 'validate']\nfrom pipegen.cli.app import main; main()"
    )
    root = Path(__file__).parents[2]
    paths = os.pathsep.join((str(root), str(project.parent / "site")))
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stdout.count("fine")) == (0, 2), ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        ("coco: {images: photos/, annotations: boxes.json}", ("images", "annotations")),
        ("tfds: {name: flowers, data_dir: sets/}", ("data_dir",)),
        ("by_split: {train: {coco: {images: photos/, annotations: boxes.json}}}", ("images", "annotations")),
    ],
)
def test_every_path_of_a_source_is_one(source: str, keys: tuple[str, ...], project: Path) -> None:
    """A path is relative to the file that it is written in, is none of the hash, and has no place in a package."""
    text = f"pipegen: 1\nsource: {{{source}}}\n"
    Path("deep").mkdir()
    Path("deep/base.yaml").write_text(text)
    loaded = over("extends: deep/base.yaml\n")
    at = loaded.raw["source"]
    while len(at) == 1 and isinstance(inner := next(iter(at.values())), dict):
        at = inner
    assert [at[key] for key in keys] == [
        str(project / "deep" / {"data_dir": "sets", "images": "photos"}.get(key, "boxes.json")) for key in keys
    ]
    assert loaded.spec is not None
    moved = over(text.replace("photos/", "/mnt/p").replace("boxes", "/mnt/b").replace("sets/", "~/s"))
    assert moved.spec is not None
    assert spec_hash(moved.spec) == spec_hash(loaded.spec)
    assert [d.code for d in missing_data(loaded.raw, loaded.locate.label)] == ["PG401"] * len(keys)
    package(project, team__baseYAML=text)
    assert codes(over("extends: pkg:team/base.pipegen.yaml\n")) == ["PG114"] * len(keys)
