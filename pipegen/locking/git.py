"""Base specs in git repositories, which only `pipegen lock` fetches; commits come from the lock or are resolved again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pipegen.diagnostics.suggest import closest, hints
from pipegen.spec.lock_file import Pin, digest, kept_text, text_path
from pipegen.spec.shared_bases import BaseProblem, GitFile

_PATIENCE = 120.0  # the time limit of a git command in seconds
_LARGEST = "1m"  # the largest file that is fetched, if the server can filter: larger ones are not specs
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
    "protocol.allow=never",
)
_TRANSPORTS = ("protocol.https.allow=always", "protocol.ssh.allow=always")
_OF_ANOTHER_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR",
    "GIT_PREFIX", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE", "GIT_TEMPLATE_DIR", "GIT_ALLOW_PROTOCOL", "GIT_CONFIG",
)  # fmt: skip
"""Variables that hooks such as pre-commit set for the repository that they run in."""


@dataclass(slots=True)
class Repositories:
    """Repositories, each fetched at most once, into a temporary folder of the caller."""

    folder: Path
    _fetched: dict[tuple[str, str], Path] = field(default_factory=dict, init=False)

    def resolve(self, address: GitFile) -> str:
        """Resolves a tag or a branch to its present commit; a commit stays itself. Raises `PG533` if the repository cannot be reached,
        or lacks the tag."""
        if address.is_commit:
            return address.revision
        wanted = [f"refs/tags/{address.revision}^{{}}", f"refs/tags/{address.revision}", f"refs/heads/{address.revision}"]
        found = self._refs(address, wanted)
        commit = next((found[ref] for ref in wanted if ref in found), None)
        if commit is None:
            known = [ref.split("/", 2)[2] for ref in self._refs(address, ["refs/tags/*", "refs/heads/*"]) if not ref.endswith("^{}")]
            near = closest(address.revision, known)
            hint = f"did you mean `{near}`?" if near else f"it has {', '.join(known[:8]) or 'none'}"
            raise BaseProblem("PG533", f"{address.url} has no tag or branch `{address.revision}`", hint)
        return commit

    def text(self, address: GitFile, commit: str, most: int) -> bytes:
        """Reads the bytes of a file at a commit. Raises `PG533` if it cannot be fetched, is not a regular file, or is larger than
        `most`."""
        folder = self._at(address, commit)
        listed = _git(["ls-tree", "-z", "--full-tree", commit, "--", address.file], address, folder, remote=False)
        mode, _, rest = listed.partition(b"\0")[0].partition(b" ")
        if not listed:
            names = _git(["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit], address, folder, remote=False)
            every = names.decode(errors="replace").split("\0")
            near = hints(address.file, [name for name in every if name.endswith((".yaml", ".yml"))])
            raise BaseProblem("PG533", f"{address.place} has no file {address.file}", *near)
        if mode not in (b"100644", b"100755"):
            raise BaseProblem("PG533", f"{address.file} in {address.place} is a link or a folder, not a file", "name the file itself")
        blob = rest.split()[1].decode()
        too_large = BaseProblem("PG533", f"{address.file} in {address.place} is larger than any spec", "name the file of the spec")
        try:
            size = int(_git(["cat-file", "-s", blob], address, folder, remote=False))
        except BaseProblem:  # filtered out when the commit was fetched
            raise too_large from None
        if size > most:
            raise too_large
        return _git(["cat-file", "blob", blob], address, folder, remote=False)

    def _refs(self, address: GitFile, patterns: Sequence[str]) -> dict[str, str]:
        lines = _git(["ls-remote", "--", address.url, *patterns], address, self.folder).decode(errors="replace").splitlines()
        return {ref: commit for commit, _, ref in (line.partition("\t") for line in lines)}

    def _at(self, address: GitFile, commit: str) -> Path:
        """Fetches one commit into a bare repository, and returns its folder."""
        key = (address.url, commit)
        if key not in self._fetched:
            folder = self.folder / str(len(self._fetched))
            kind = f"--object-format={'sha256' if len(commit) == 64 else 'sha1'}"
            _git(["init", "--quiet", "--bare", "--template=", kind, str(folder)], address, self.folder, remote=False)
            _git(["config", "remote.origin.url", address.url], address, folder, remote=False)
            options = ["--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", f"--filter=blob:limit={_LARGEST}"]
            _git(["fetch", *options, "origin", commit], address, folder)
            self._fetched[key] = folder
        return self._fetched[key]


def _git(arguments: list[str], address: GitFile, folder: Path, *, remote: bool = True) -> bytes:
    """Runs git, which may use the network only if `remote` is set; raises `PG533` if it fails or takes too long."""
    settings = [*_SETTINGS, *(_TRANSPORTS if remote else ())]
    command = ["git", "--literal-pathspecs", *(part for setting in settings for part in ("-c", setting)), *arguments]
    env = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    env |= {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never", "GIT_CEILING_DIRECTORIES": str(folder.parent), "LC_ALL": "C"}
    try:
        # In a session of its own, git has no terminal to ask for a password.
        process = subprocess.Popen(  # noqa: S603 - no shell, and `parse` has checked the address
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except FileNotFoundError:
        raise BaseProblem("PG533", f"{address.place} cannot be fetched: git is not installed", "install git, and lock again") from None
    with process:
        try:
            out, said = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            raise BaseProblem("PG533", f"{address.url} did not answer within {_PATIENCE:g} seconds", "try again later") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # its helpers, such as ssh, too
    if process.returncode:
        lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
        why = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "no reason given")
        why = why.partition(":")[2].strip() or why
        help_ = f"check with `git ls-remote {address.url}` that git reaches it; pipegen cannot enter a password"
        raise BaseProblem("PG533", f"{address.place} cannot be fetched: {why}", help_)
    return out


@dataclass(slots=True)
class Resolving:
    """A reader of bases that records their commits (`resolved`), the fetched texts, by the paths to keep them at, and the names of the
    requested repositories (`met`).

    `pins` has the commits in the lock before, which need not exist; `update` is the name of the repository to resolve again, "" for all,
    `None` for none.
    """

    lock: Path
    pins: dict[str, Pin]
    update: str | None
    repositories: Repositories
    resolved: dict[str, Pin] = field(default_factory=dict)
    texts: dict[Path, bytes] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def text(self, address: GitFile, most: int) -> bytes:
        """Reads the text of a base; raises `PG533` if it cannot be fetched."""
        names = {address.repository, address.url, address.place}
        self.met |= names
        anew = self.update == "" or self.update in names
        known = self.resolved.get(address.place) or (None if anew else self.pins.get(address.place))
        commit = known.commit if known is not None else self.repositories.resolve(address)
        path, pin = text_path(self.lock, address, commit), self.pins.get(address.place)
        data = self.texts.get(path)  # fetched before in this run, or kept by the lock of the same commit
        if data is None and pin is not None and pin.commit == commit and address.file in pin.texts:
            with suppress(BaseProblem):  # missing or changed: fetch it again
                data = kept_text(self.lock, address, commit, pin.texts[address.file], most)
        if data is None:
            data = self.repositories.text(address, commit, most)
            self.texts[path] = data
        earlier = self.resolved.get(address.place, Pin(commit=commit)).texts
        self.resolved[address.place] = Pin(commit=commit, texts=dict(sorted({**earlier, address.file: digest(data)}.items())))
        return data

    def moved(self) -> list[str]:
        """Lists the tags that are new, or have another commit than in the lock."""
        lines = []
        for place, pin in sorted(self.resolved.items()):
            old = self.pins.get(place)
            if old is None:
                lines.append(f"{place} is commit {pin.commit[:12]}")
            elif old.commit != pin.commit:
                lines.append(f"{place} has moved from commit {old.commit[:12]} to {pin.commit[:12]}")
        return lines
