"""What every test can use: `--update-golden`, and Hypothesis profiles (`HYPOTHESIS_PROFILE=ci` for more examples). By day
examples are the same each time, so that a change alone decides whether it lands; by night they are new ones."""

from __future__ import annotations

import gc
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from nightly_parts import PARTS, has_nightly_tests, parts_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Where Python was told to keep no compiled modules, as in many containers, each process of the suite, and each that a test starts, would
# compile pipegen and the tests anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_IN_MEMORY = "/dev/shm"
_ROOM = 4 << 30
"""Bytes; at its most the suite has a part of this in files at once."""

with suppress(OSError):  # where there is no such folder
    if os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM:
        # Tests make and remove tens of thousands of folders; on a disk each takes milliseconds.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _IN_MEMORY)

_OWN = Path.cwd() / ".pipegen"
"""Where a pipeline keeps what a database answered, if no test has gone elsewhere."""

_SWEEP_S = 20.0
"""Seconds of processor time between two searches of everything that lives for garbage; what one test made is searched after each."""

_FEW = 2000
"""Objects that a test may leave, and nothing is searched after it."""

_ALL_TF = re.compile(r"^pytestmark = \[?pytest\.mark\.tf\b", re.MULTILINE)

_HAS_TESTS = {
    "not tf": lambda text: not _ALL_TF.search(text),
    "smoke": lambda text: "mark.smoke" in text,
    "nightly": has_nightly_tests,
}
"""For `-m` with these words: whether a file can have tests of them. Others are not read, which takes half a minute in all."""

_NIGHT_S = 3600
"""Seconds that a test may take which runs by night, where it says nothing of its own: a machine may be busy."""

settings.register_profile("dev", max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("night", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("ci", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`, `--part` and `--as-users`."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing them")
    parser.addoption("--part", choices=[*PARTS], help="the nightly tests of one part; without it `-m nightly` runs all of them")
    parser.addoption("--as-users", action="store_true", help="leave TensorFlow as users have it; `-m smoke` does so, too")


def _chosen(config: pytest.Config, mark: str) -> bool:
    """Whether `-m` names a mark."""
    return mark in config.getoption("markexpr")


def _as_users(config: pytest.Config) -> bool:
    """Whether TensorFlow is as users have it. The suite takes shortcuts, by day and by night."""
    return bool(config.getoption("--as-users")) or _chosen(config, "smoke") or config.getoption("--part") == "measured"


def pytest_configure(config: pytest.Config) -> None:
    """TensorFlow runs without oneDNN, and XLA compiles without optimization, unless the variables are set or it is as users have it.

    Each function that TensorFlow instantiates is searched for operations that oneDNN has, and for each kind of operation all kernels that
    there are, once a thread; threads end with their pipeline. That was a fifth of the suite's processor time. `.ci/run` runs the smoke set
    with both, and `test_onednn.py` repeats by night what is proven by day, as users have it. Without optimization it takes a tenth less.
    """
    if (part := config.getoption("--part")) is not None:
        config.option.markexpr = "nightly"
        if len(PARTS[part].paths) == 1:
            config.option.dist = "load"  # else the tests of one file all run in one process
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "night" if _chosen(config, "nightly") else "dev"))
    if not _as_users(config):
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")


def pytest_unconfigure() -> None:
    """What lives now is not searched for garbage when the process ends, which takes seconds behind thousands of graphs."""
    gc.freeze()


@pytest.fixture(scope="session", name="as_users")
def _as_users_fixture(pytestconfig: pytest.Config) -> bool:
    """Whether TensorFlow is as users have it."""
    return _as_users(pytestconfig)


@pytest.fixture(scope="session", autouse=True)
def _styles(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[None]:
    """Two pictures for `styles/`, where the worked examples of steps with reference images have theirs; the smoke set has none of them."""
    if _chosen(pytestconfig, "smoke"):
        yield
        return
    from PIL import Image

    from pipegen.ops.families import references

    folder = tmp_path_factory.mktemp("references")
    for number in range(2):
        ramp = Image.linear_gradient("L").resize((40, 30)).rotate(90 * number)
        Image.merge("RGB", (ramp, ramp.point(lambda v: v // 2 + 40), ramp.point(lambda v: 255 - v))).save(folder / f"{number}.png")
    found = references.files_at

    def files(path: str, endings: frozenset[str]) -> list[Path]:
        return found(path, endings) or (found(str(folder), endings) if "styles" in Path(path).parts else [])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(references, "files_at", files)
        yield


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Passes over files that have no test of the chosen mark or part; those that need TensorFlow import it at once, which takes seconds."""
    has_tests, part = _HAS_TESTS.get(config.getoption("markexpr")), config.getoption("--part")
    if has_tests is None or not collection_path.match("test_*.py"):
        return None
    if part is not None and part not in parts_of(str(collection_path.relative_to(config.rootpath))):
        return True
    return None if has_tests(collection_path.read_text(encoding="utf-8")) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nearly all that collecting the tests makes stays for good: to search it for garbage was a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _mark_as_nightly(items: list[pytest.Item]) -> None:
    """Marks cases of tests with `by_day(n)` as nightly: all but n, which are spread over them. A case that is named on its own runs."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("by_day"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for own in cases.values():
        (most,) = own[0].get_closest_marker("by_day").args
        by_day = {place * len(own) // most for place in range(most)}
        for place, item in enumerate(own):
            if place not in by_day:
                item.add_marker(pytest.mark.nightly)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nightly tests, and those beside other libraries, run where `-m` names them. Files that need TensorFlow come first: some take a
    minute, and whichever process is done early takes the quick ones."""
    if not _chosen(config, "smoke"):
        _mark_as_nightly(items)
    if not _chosen(config, "nightly"):
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
    if not (_chosen(config, "nightly") or _chosen(config, "peers")):
        peers = [item for item in items if item.get_closest_marker("peers")]
        items[:] = [item for item in items if not item.get_closest_marker("peers")]
        config.hook.pytest_deselected(items=peers)
    for item in items:
        if item.get_closest_marker("nightly") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_NIGHT_S))
    slow = {item.path for item in items if item.get_closest_marker("tf")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def slow_tracing(pytestconfig: pytest.Config) -> list[bool]:
    """Whether `quick_tracing` has something to do yet."""
    return [True] * (not _as_users(pytestconfig))


@pytest.fixture(autouse=True)
def quick_tracing(slow_tracing: list[bool]) -> None:
    """Graphs are traced in half the time, once TensorFlow is there."""
    if slow_tracing and "tensorflow.python.util.tf_stack" in sys.modules:
        import tracing

        slow_tracing.clear()
        tracing.quicken()


@pytest.fixture(scope="session")
def swept() -> dict[str, float]:
    """When everything was last searched for garbage."""
    return {}


@pytest.fixture(autouse=True)
def sweep(swept: dict[str, float], pytestconfig: pytest.Config) -> Iterator[None]:
    """Free the graphs of finished tests soon.

    TensorFlow's graphs are in cycles, and each holds a copy of every function that was alive when it was made: the longer they lie
    about, the dearer each is to free. Left to Python, which waits until a quarter of all objects are new, a few dozen pipelines once
    took two minutes to free, in whichever test came next. A search of everything takes a quarter of a second, so what a test makes stays
    in the young generations while it runs, and those alone are searched after it. The smoke set leaves it to Python.
    """
    yield
    if "tensorflow" not in sys.modules or _chosen(pytestconfig, "smoke"):
        return
    if not swept:  # the modules themselves stay for good, and need not be looked through
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 1_000_000, 1_000_000)
    elif time.process_time() - swept["at"] > _SWEEP_S:
        gc.collect()
    else:
        if gc.get_count()[0] > _FEW:
            gc.collect(1)
        return
    swept["at"] = time.process_time()


def _sound_name(record: logging.LogRecord) -> bool:
    """Fails a test whose graph has a name that TensorFlow warns about."""
    assert "not a valid node name" not in record.getMessage(), record.getMessage()
    return True


@pytest.fixture(scope="session", autouse=True)
def _names_of_nodes() -> None:
    """No graph has a name that TensorFlow changes, with a warning that a user can do nothing about."""
    logging.getLogger("tensorflow").addFilter(_sound_name)


@pytest.fixture
def signals_as_usual() -> Iterator[None]:
    """Programs that a test starts heed Ctrl-C, a hangup and every other signal; a suite that runs in the background is told to ignore
    some of them, and so are they."""
    own = {signal.SIGPIPE, signal.SIGXFSZ}  # which Python itself ignores
    ignored = [number for number in signal.valid_signals() - own if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(autouse=True)
def chance(request: pytest.FixtureRequest) -> None:
    """What a test leaves to chance is the same each time: a flow without a seed takes one of NumPy's global generator, as Keras does."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(autouse=True)
def leaves_nothing() -> Iterator[None]:
    """No test leaves a folder of pipegen's where the tests were started: a later test, or run of the tests, would read what it holds."""
    before = _OWN.exists()
    yield
    assert before or not _OWN.exists(), f"a test left {_OWN}: this one, or one beside it; `monkeypatch.chdir(tmp_path)`"


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written anew."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's cache folder, which is none of the user's own: what steps learn is kept there. Where the file of the machine is said,
    no pipeline asks which machine it is."""
    folder = tmp_path_factory.mktemp("cache-home")
    os.environ["XDG_CACHE_HOME"], os.environ["PIPEGEN_MACHINE"] = str(folder), str(folder / "machine.json")
    return folder


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder where temporary files are usually kept, for what asks about the disk."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 43 small photographs in three classes: `daisy`, `rose` and `tulip`; of many sizes, one a PNG.

    It is shared: a test that damages or adds files works on a copy.
    """
    from pipes import write_photos

    return write_photos(tmp_path_factory.mktemp("photos"))
