"""The lock of specs: the file with the entry of each spec, changes since, and bases in git repositories, which only `pipegen lock` fetches.

An entry has what a spec depends on; functions and packages are found without running code.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pipegen.cache.store import tensorflow_version
from pipegen.comparing import changes_beside
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, is_address
from pipegen.diagnostics.suggest import hints
from pipegen.errors import OpError
from pipegen.files import write_whole
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.transform import Transform
from pipegen.phases.specs import Learned, Spec
from pipegen.release import __version__
from pipegen.spec.changes import meaning_changes
from pipegen.spec.extends import through_chain
from pipegen.spec.lock_file import Data, Entry, FunctionSource, Lock, Pin, digest, kept_text, text_path
from pipegen.spec.models import PipelineSpec
from pipegen.spec.shared_bases import GitFile, PackageFile, find_top, package_file, parse, search_path
from pipegen.spec.spec_hash import meaning
from pipegen.spec.step_list import ids_of

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest


def entry_of(spec: Spec, lock: Path, data: Data | None = None, learned: Iterable[Learned] = ()) -> Entry:
    """Makes the entry of a spec: its texts by their paths from the lock, which need not exist yet, and all else that decides its numbers.

    `data` is the result of `data_of`, and `learned` what its steps have learned, if these are known.
    """
    texts = {entry_name(name, lock): digest(text.encode("utf-8", "surrogatepass")) for name, text in spec.loaded.texts.items()}
    addresses = [parse(name) for name in spec.loaded.texts if is_address(name)]
    functions = {name: function_source(name) for name in python_functions(spec.model)}
    return Entry(
        hash=spec.hash,
        texts=dict(sorted(texts.items())),
        packages=dict(sorted(distribution_of(address) for address in addresses if isinstance(address, PackageFile))),
        functions={name: source for name, source in sorted(functions.items()) if source is not None},
        data=data,
        fitted=numbers_of(spec, learned),
        versions={name: version for name, version in (("pipegen", __version__), ("tensorflow", tensorflow_version())) if version},
        meaning=json.loads(json.dumps(meaning(spec.model))),
    )


def numbers_of(spec: Spec, learned: Iterable[Learned]) -> dict[str, str]:
    """Hashes what steps have learned, by their ids and the features."""
    ids = ids_of(spec.model.transforms)
    return {f"{ids[found.step]}.{found.feature}": digest(found.numbers.to_bytes({})) for found in learned}


def data_of(manifest: Manifest, content: str | None = None) -> Data:
    """Describes listed data; `content` is the `content_digest` of its bytes."""
    counts = {split: manifest.num_examples(split) for split in manifest.splits}
    return Data(fingerprint=manifest.split_fingerprint, examples=counts, classes=len(manifest.class_names), content=content)


def entry_name(file: str, lock: Path) -> str:
    """The name of a spec, or of a text, in a lock: its path relative to the lock, or its address."""
    return file if is_address(file) else os.path.relpath(os.path.abspath(file), lock.parent).replace(os.sep, "/")


MOVED, ALIKE = "PG531", "PG534"
"""The findings: something changed; something changed, but means the same."""
_AGAIN = "if that is meant, run `pipegen lock` with this spec and commit the lock"


def differences(spec: Spec, old: Entry, new: Entry) -> list[Diagnostic]:
    """Makes a finding for each change; data and statistics that `new` lacks are not compared."""
    where = spec.loaded.locate.label
    changes = meaning_changes(old.meaning, new.meaning)[0] if old.hash != new.hash else []
    meaning = [c for c in changes if c.kind in ("numbers", "perhaps")]
    texts = [*_texts(old, new)]
    places = [where(() if change.gone else change.path) for change in meaning]
    found = [make(MOVED, f"since the lock, {c}", at, help=(c.whole_effect, *texts, _AGAIN)) for c, at in zip(meaning, places, strict=True)]
    if not meaning:
        found += [make(ALIKE, f"{what}, and the spec means the same", where(()), help=(_AGAIN,)) for what in texts]
    lost = [name for name in python_functions(spec.model) if name in old.functions.keys() - new.functions.keys()]
    found += [make(MOVED, f"the source of the function `{name}` is not found here", where(()), help=(_AGAIN,)) for name in lost]
    versions = {name: new.versions.get(name, version) for name, version in old.versions.items()}
    for change in changes_beside(old, new.model_copy(update={"versions": versions})):
        code = ALIKE if change.path[0] == "versions" else MOVED
        found.append(make(code, f"since the lock, {change}", where(()), help=(change.effect, _AGAIN)))
    return through_chain(found, spec.loaded.locate.files)


def _texts(old: Entry, new: Entry) -> Iterator[str]:
    for name in dict.fromkeys([*old.texts, *new.texts]):
        if name not in new.texts:
            yield f"{name} is no longer a part of it"
        elif name not in old.texts:
            yield f"{name} is a new part of it"
        elif old.texts[name] != new.texts[name]:
            yield f"the text of {name} differs"
    for name in old.packages.keys() & new.packages.keys():
        if old.packages[name] != new.packages[name]:
            yield f"the package {name} went from {old.packages[name] or 'no version'} to {new.packages[name] or 'no version'}"


_HOPS = 8  # the most modules that a function may be imported through


def python_functions(spec: PipelineSpec) -> list[str]:
    """Lists the functions that the steps of a spec call, in all stages of training, as `module:function`."""

    def called(steps: Iterable[Transform]) -> Iterator[str]:
        for step in steps:
            if isinstance(step, CustomTransform):
                yield step.function
            yield from called(step.inner_steps())

    return list(dict.fromkeys(name for one in (spec, *(stage.resolved for stage in spec.stages)) for name in called(one.transforms)))


def function_source(function: str) -> FunctionSource | None:
    """Hashes a function's lines and its module; `None` if the source is not found.

    Looks where `import` would look, and in the working directory, and follows names that a module imports from another one. The module
    counts, too, since the function may call other code in it.
    """
    module, _, name = function.partition(":")
    for _ in range(_HOPS):
        path = _module_path(module)
        if path is None:
            return None
        try:
            text = path.read_bytes()
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError):
            return None
        node = next((node for node in reversed(tree.body) if name in _defines(node)), None)
        if isinstance(node, ast.ImportFrom):
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (above, node.module) if part)
            name = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
            continue
        parts = [] if node is None else [*getattr(node, "decorator_list", ()), node]
        lines = [ast.get_source_segment(text.decode(errors="replace"), part) or "" for part in parts]
        return FunctionSource(function=digest("\n".join(lines).encode()) if lines else None, module=digest(text))
    return None


def _defines(node: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement at the top of a module binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _module_path(module: str) -> Path | None:
    """Finds the source of a module by its top-level name, so that packages on the way are not run."""
    top, *below = module.split(".")
    spec = find_top(top) or PathFinder.find_spec(top, [os.getcwd()])
    if spec is None:
        return None
    if not below and spec.origin is not None and spec.origin.endswith(".py"):
        return Path(spec.origin)
    for folder in spec.submodule_search_locations or ():
        place = Path(folder, *below)
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None


_LISTS = ("RECORD", "SOURCES.txt", "installed-files.txt")  # lists of a distribution's files; the name depends on the installer


def distribution_of(address: PackageFile) -> tuple[str, str | None]:
    """Finds the distribution of a base: its name and version; else the package's name and `None`.

    Reads only the metadata beside the package and, if that does not list the file, the metadata of editable installs.
    """
    path = package_file(address)
    site = search_path(address, path)
    listed = path.relative_to(site).as_posix()
    for found in distributions(path=[str(site)]):
        for name in _LISTS:
            lines = (found.read_text(name) or "").splitlines()
            if any(line.partition(",")[0].strip('"').removeprefix("../") == listed for line in lines):
                return found.name, found.version
    for found in distributions():
        with suppress(ValueError):
            said = json.loads(found.read_text("direct_url.json") or "{}")
            source = urlsplit(said.get("url", "")) if said.get("dir_info", {}).get("editable") else None
            if source is not None and source.scheme == "file" and path.is_relative_to(unquote(source.path)):
                return found.name, found.version
    return address.place.partition(".")[0], None


_HEAD = "# Written by `pipegen lock`, to be committed. `pipegen lock --check` says what has moved since; do not edit it by hand.\n"


_LISTED = ("texts", "packages", "fitted")  # keys whose maps have a line for each name


class _Lines(dict[str, Any]):
    """A map written line by line."""


class _Line(list[Any]):
    """A list written on one line, if it fits."""


def write_lock(path: Path, lock: Lock) -> bool:
    """Writes a lock in a stable order if its text changed; returns true if it did. Raises `OSError` if it cannot be written."""
    from pipegen.spec.runtime_fix import Dumper as Plain
    from pipegen.spec.runtime_fix import to_yaml

    class Dumper(Plain):
        """A dumper with representers of its own."""

    Dumper.add_representer(_Lines, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=False))
    Dumper.add_representer(_Line, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True))
    git = {place: _plain(pin) for place, pin in sorted(lock.git.items())}
    specs = {name: _plain(entry) for name, entry in sorted(lock.specs.items())}
    values: dict[str, Any] = {"pipegen_lock": lock.pipegen_lock, **({"git": git} if git else {}), "specs": specs}
    text = _HEAD + to_yaml(values, Dumper, width=140, default_flow_style=None)
    with suppress(OSError, UnicodeDecodeError):  # missing or unreadable
        if path.read_text(encoding="utf-8") == text:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    return True


def _plain(part: Pin | Entry) -> dict[str, Any]:
    """Converts a part to plain values, without empty ones."""
    values = part.model_dump(mode="json")
    if "transforms" in values.get("meaning", {}):
        values["meaning"]["transforms"] = [_Line(step) for step in values["meaning"]["transforms"]]
    if values.get("data") is not None:
        values["data"] = {key: value for key, value in values["data"].items() if value is not None}
    return {key: _Lines(value) if key in _LISTED else value for key, value in values.items() if value not in ({}, None)}


def drop_texts(path: Path, old: Mapping[str, Pin], new: Mapping[str, Pin]) -> None:
    """Removes the kept texts that a lock no longer names, and the folders that they leave empty."""
    gone = {*_kept(path, old)} - {*_kept(path, new)}
    for kept in gone:
        kept.unlink(missing_ok=True)
        for folder in kept.parents:
            if folder == path.parent or any(folder.iterdir()):
                break
            folder.rmdir()


def _kept(path: Path, git: Mapping[str, Pin]) -> Iterator[Path]:
    for place, pin in git.items():
        for file in pin.texts:
            with suppress(OpError):  # a malformed line, edited by hand
                address = parse(f"{place}#{file}")
                if isinstance(address, GitFile):
                    yield text_path(path, address, pin.commit)


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
            near = hints(address.revision, known, f"it has {', '.join(known[:8]) or 'none'}")
            raise OpError("PG533", f"{address.url} has no tag or branch `{address.revision}`", help=near[0])
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
            raise OpError("PG533", f"{address.place} has no file {address.file}", help=near)
        if mode not in (b"100644", b"100755"):
            raise OpError("PG533", f"{address.file} in {address.place} is a link or a folder, not a file", help="name the file itself")
        blob = rest.split()[1].decode()
        too_large = OpError("PG533", f"{address.file} in {address.place} is larger than any spec", help="name the file of the spec")
        try:
            size = int(_git(["cat-file", "-s", blob], address, folder, remote=False))
        except OpError:  # filtered out when the commit was fetched
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
        raise OpError("PG533", f"{address.place} cannot be fetched: git is not installed", help="install git, and lock again") from None
    with process:
        try:
            out, said = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            raise OpError("PG533", f"{address.url} did not answer within {_PATIENCE:g} seconds", help="try again later") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # its helpers, such as ssh, too
    if process.returncode:
        lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
        why = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "no reason given")
        why = why.partition(":")[2].strip() or why
        help_ = f"check with `git ls-remote {address.url}` that git reaches it; pipegen cannot enter a password"
        raise OpError("PG533", f"{address.place} cannot be fetched: {why}", help=help_)
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
            with suppress(OpError):  # missing or changed: fetch it again
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
