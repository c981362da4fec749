"""`pipegen lock` on bases from git: over https from a server on this machine, without a checkout, and nothing fetched by anyone else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
import yaml
from git_server import certificate, commit, git, served

from pipegen import locking as fetching
from pipegen.api.lock import check_specs, lock_specs
from pipegen.errors import OpError, SpecError
from pipegen.phases.compilation import inspect
from pipegen.spec.shared_bases import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE = """\
pipegen: 1
params: {data: {type: path, env: NO_SUCH_VARIABLE}}
source: {image_folder: {path: $data}}
splits: {parts: {train: 0.8, validation: 0.2}}
transforms: [{resize: {size: 24}}]
batch: {size: 4}
"""
MIDDLE = "extends: ../base.pipegen.yaml\nbatch: {size: 2}\n"
pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None or shutil.which("openssl") is None, reason="needs git and openssl"),
    pytest.mark.timeout(120),
]


class Remote(NamedTuple):
    """A repository, its address, its first commit, and what the server was asked for."""

    folder: Path
    place: str
    first: str
    asked: list[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, list[str], Path]]:
    root = tmp_path_factory.mktemp("served")
    cert, key = certificate(root / "tls")
    with served(root / "repositories", cert, key) as (address, asked):
        yield root / "repositories", address, asked, cert


@pytest.fixture
def remote(server: tuple[Path, str, list[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """A new repository with a tag, and a working directory with a spec that has a base there."""
    root, address, asked, cert = server
    folder = root / f"{tmp_path.name}.git"
    first = commit(folder, {"base.pipegen.yaml": BASE, "photos/middle.pipegen.yaml": MIDDLE}, "v1")
    monkeypatch.setenv("GIT_SSL_CAINFO", str(cert))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.chdir(tmp_path)
    place = f"git+{address}/{folder.name}@v1"
    Path("mine.pipegen.yaml").write_text(f"extends: {place}#photos/middle.pipegen.yaml\nparams: {{data: {{default: photos/}}}}\n")
    asked.clear()
    return Remote(folder, place, first, asked)


def test_a_tag_becomes_a_commit_whose_texts_are_kept(remote: Remote) -> None:
    before = inspect("mine.pipegen.yaml").diagnostics
    assert [d.code for d in before] == ["PG116"]
    assert not remote.asked, "validating fetches nothing"
    (done,) = lock_specs(["mine.pipegen.yaml"])
    assert done.git == [f"{remote.place} is commit {remote.first[:12]}"]
    held = yaml.safe_load(Path("pipegen.lock").read_text())
    assert held["git"][remote.place]["commit"] == remote.first
    kept = {str(p.relative_to("pipegen.lock.d")): p.read_text() for p in Path("pipegen.lock.d").rglob("*.yaml")}
    folder = f"{remote.folder.stem}-{remote.first[:12]}"
    assert kept == {f"{folder}/base.pipegen.yaml": BASE, f"{folder}/photos/middle.pipegen.yaml": MIDDLE}
    remote.asked.clear()
    spec = inspect("mine.pipegen.yaml").spec
    assert spec is not None
    assert spec.model.batch.size == 2
    assert not check_specs(["mine.pipegen.yaml"]).findings
    text = Path("pipegen.lock").read_bytes()
    assert not lock_specs(["mine.pipegen.yaml"])[0].written
    assert Path("pipegen.lock").read_bytes() == text
    assert not remote.asked, "what is locked is not asked for again"


def test_a_moved_tag_is_taken_only_when_asked_to(remote: Remote) -> None:
    lock_specs(["mine.pipegen.yaml"])
    second = commit(remote.folder, {"base.pipegen.yaml": BASE.replace("24", "32")}, "v1")
    lock_specs(["mine.pipegen.yaml"])
    assert not check_specs(["mine.pipegen.yaml"]).findings
    with pytest.raises(SpecError, match="did you mean"):
        lock_specs(["mine.pipegen.yaml"], update=f"{remote.folder.stem}x")
    (done,) = lock_specs(["mine.pipegen.yaml"], update=remote.folder.stem)
    assert done.git == [f"{remote.place} has moved from commit {remote.first[:12]} to {second[:12]}"]
    assert [p.name for p in Path("pipegen.lock.d").iterdir()] == [f"{remote.folder.stem}-{second[:12]}"], "the old texts go"
    spec = inspect("mine.pipegen.yaml").spec
    assert spec is not None
    assert spec.model.transforms[0].size == 32  # type: ignore[attr-defined]


@pytest.mark.nightly
def test_a_branch_a_commit_and_what_another_spec_still_needs(remote: Remote) -> None:
    url = remote.place.rpartition("@")[0]
    data = "params: {data: {default: photos/}}\n"
    Path("branch.pipegen.yaml").write_text(f"extends: {url}@main#base.pipegen.yaml\n{data}")
    Path("commit.pipegen.yaml").write_text(f"extends: {url}@{remote.first}#base.pipegen.yaml\n{data}")
    lock_specs(["mine.pipegen.yaml", "branch.pipegen.yaml", "commit.pipegen.yaml"])
    Path("mine.pipegen.yaml").unlink()
    (done,) = lock_specs(["branch.pipegen.yaml"])
    assert done.notes[-1] == "mine.pipegen.yaml is gone, so it was removed from the lock"
    held = yaml.safe_load(Path("pipegen.lock").read_text())
    assert {place.rpartition("@")[2]: [*pin["texts"]] for place, pin in held["git"].items()} == {
        "main": ["base.pipegen.yaml"],
        remote.first: ["base.pipegen.yaml"],
    }
    assert [p.name for p in Path("pipegen.lock.d").rglob("*.yaml")] == ["base.pipegen.yaml"]
    assert not check_specs(["branch.pipegen.yaml", "commit.pipegen.yaml"]).findings


def test_a_lost_text_is_fetched_again_from_the_same_commit(remote: Remote) -> None:
    lock_specs(["mine.pipegen.yaml"])
    text = Path("pipegen.lock").read_text()
    commit(remote.folder, {"base.pipegen.yaml": BASE.replace("24", "32")}, "v1")
    shutil.rmtree("pipegen.lock.d")
    assert {d.code for d in check_specs(["mine.pipegen.yaml"]).findings} == {"PG117"}
    lock_specs(["mine.pipegen.yaml"])
    assert Path("pipegen.lock").read_text() == text
    assert not check_specs(["mine.pipegen.yaml"]).findings


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("@v1", "@v2", "has no tag or branch `v2`"),
        ("middle.pipegen", "midle.pipegen", "did you mean `photos/middle.pipegen.yaml`?"),
        ("photos/middle.pipegen.yaml", "link.yaml", "is a link or a folder"),
        pytest.param("photos/middle.pipegen.yaml", "large.yaml", "larger than any spec", id="left-out"),
        pytest.param("photos/middle.pipegen.yaml", "large.yaml", "larger than any spec", id="sent", marks=pytest.mark.nightly),
        pytest.param("photos/middle.pipegen.yaml", "photos", "is a link or a folder", marks=pytest.mark.nightly),
        pytest.param(".git@", ".gitt@", "cannot be fetched: repository", marks=pytest.mark.nightly),
        pytest.param("https://localhost", "https://127.0.0.1", "cannot be fetched: unable to access", marks=pytest.mark.nightly),
    ],
)
def test_what_cannot_be_fetched_says_why_and_locks_nothing(
    old: str, new: str, said: str, remote: Remote, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.id == "left-out":
        git(remote.folder, "config", "uploadpack.allowFilter", "true")  # as the large hosts have it
    if not (remote.folder / "link.yaml").is_symlink():
        (remote.folder / "link.yaml").symlink_to("/etc/passwd")
        commit(remote.folder, {"large.yaml": "# " + "x" * 2**21}, "v1")
    path = Path("mine.pipegen.yaml")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SpecError) as caught:
        lock_specs(["mine.pipegen.yaml"])
    (finding,) = caught.value.diagnostics
    assert finding.code == "PG533"
    assert said in " ".join((finding.message, *finding.help))
    assert str(finding.span) == "mine.pipegen.yaml:1:10"
    assert not Path("pipegen.lock").exists()


def test_no_hook_filter_or_submodule_runs(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the repository and the settings of the user say, a fetch runs nothing of theirs."""
    ran = tmp_path / "ran"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-merge", "reference-transaction", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        (hooks / name).chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = touch {ran}\n[init]\n\ttemplateDir = {hooks.parent}\n"
        f'[filter "lfs"]\n\tsmudge = touch {ran}\n\tprocess = touch {ran}\n\trequired = true\n[submodule]\n\trecurse = true\n'
    )
    module = '[submodule "sub"]\n\tpath = sub\n\turl = ext::touch ' + str(ran) + "\n"
    commit(remote.folder, {".gitattributes": "*.yaml filter=lfs\n", ".gitmodules": module}, "v1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    # What a hook such as pre-commit's sets is about another repository.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    lock_specs(["mine.pipegen.yaml"])
    assert not ran.exists()
    assert not (tmp_path / "nowhere").exists()


def test_settings_that_lead_to_another_transport_are_of_no_use(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "file://{remote.folder.parent}/"]\n\tinsteadOf = https://localhost\n[protocol]\n\tallow = always\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    with pytest.raises(SpecError, match="transport 'file' not allowed"):
        lock_specs(["mine.pipegen.yaml"])


def test_a_server_that_does_not_answer_has_a_time_limit(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(fetching, "_PATIENCE", 0.3)
    with pytest.raises(SpecError, match="did not answer within"):
        lock_specs(["mine.pipegen.yaml"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpecError, match="git is not installed"):
        lock_specs(["mine.pipegen.yaml"])


def test_ssh_takes_no_options_and_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ssh of the test's own notes how it is called, and whether it has a terminal to ask on."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\n(exec < /dev/tty) 2> {tmp_path}/terminal\necho "no key" >&2\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    address = parse("git+ssh://git@host.example:2222/team/specs@v1#a.yaml")
    with pytest.raises(OpError) as caught:
        fetching.Repositories(tmp_path).resolve(address)  # type: ignore[arg-type]
    assert "cannot be fetched" in caught.value.message
    assert "-p 2222 git@host.example git-upload-pack" in (tmp_path / "called").read_text()
    assert (tmp_path / "terminal").read_text()


@pytest.mark.nightly
def test_the_command_and_a_build_need_no_network_once_locked(remote: Remote) -> None:
    lock_specs(["mine.pipegen.yaml"])
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root, "PATH": "/nowhere"}
    for words in (["validate", "mine.pipegen.yaml"], ["lock", "--check"], ["show", "mine.pipegen.yaml"]):
        ran = subprocess.run([sys.executable, "-m", "pipegen", *words], env=env, capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert git(remote.folder, "log", "--oneline").count("\n") == 0
