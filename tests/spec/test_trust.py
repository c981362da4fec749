"""A spec is data: its addresses load nothing, it sends nothing away, and it writes only where it may. The caller may allow more."""

from __future__ import annotations

import re
import typing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from pipegen.ops.model import field_docs
from pipegen.ops.registry import datatests, sources, transforms
from pipegen.ops.sources.tables.sql_address import _ADDRESS, ARGUMENTS, unsafe
from pipegen.spec.allowed import Allowed
from pipegen.spec.load import Loaded, load
from pipegen.spec.models import PipelineSpec
from pipegen.spec.params import is_secret
from pipegen.spec.places import KNOWN, OBJECT_STORES, PATHS, PLACES, SOURCE_PATHS, STEP_PATHS

ROOT = Path(__file__).parents[2]
FEATURES: dict[str, Any] = {"n": {"kind": "tensor"}, "label": {"kind": "label"}}
QUERY = "select n, label from t order by n"


def found(spec: dict[str, Any], **given: Any) -> list[str]:
    return [d.code for d in loaded(spec, **given).diagnostics.items if d.severity.value == "error"]


def loaded(spec: dict[str, Any], **given: Any) -> Loaded:
    return load({"pipegen": 1, **spec}, env=given.pop("env", {}), **given)


def sql(url: str, query: str = QUERY, **more: Any) -> dict[str, Any]:
    params = more.pop("params", {})
    source = {"url": url, "query": query, "features": FEATURES, **more}
    return {"source": {"sql": source}, "output": {"x": "n"}, **({"params": params} if params else {})}


def photos(path: Any, **more: Any) -> dict[str, Any]:
    return {"source": {"image_folder": {"path": path}}, "transforms": [{"resize": {"size": 8}}], **more}


DRIVERS = [(f"{dialect}+{driver}" if driver else dialect) for dialect, drivers in ARGUMENTS.items() for driver in drivers]
HOSTILE = (
    "odbc_connect", "plugin", "plugin_dir", "default_auth", "auth_plugin", "read_default_file", "read_default_group", "init_command",
    "local_infile", "allow_local_infile", "client_flag", "ssl_ca", "ssl_key", "ssl_cert", "sslkey", "sslcert", "sslrootcert", "sslcrl",
    "options", "service", "servicefile", "passfile", "krbsrvname", "gsslib", "replication", "dsn", "filedsn", "conn_properties",
    "config", "config_dir", "wallet_location", "thick_mode", "lib_dir", "custom_user_config", "extension_directory",
    "allow_unsigned_extensions", "autoload_known_extensions", "preload_extensions", "load_extension", "vfs", "uri", "creator", "module",
    "sql_mode", "unix_socket", "host_option", "trusted_connection", "authentication",
)  # fmt: skip


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_address_has_only_the_arguments_of_its_driver(driver: str) -> None:
    database = f"{driver}:///s.db" if driver.startswith(("sqlite", "duckdb")) else f"{driver}://u@h/d"
    dialect, _, name = driver.partition("+")
    for argument in ARGUMENTS[dialect][name] - {"driver"}:
        assert not [*unsafe(f"{database}?{argument}=1")], argument
    for argument in HOSTILE:
        for spelling in (argument, argument.replace("_", "%5F"), argument.upper()):
            assert [*unsafe(f"{database}?{spelling}=1")], spelling
            assert [*unsafe(f"{database}?timeout=1&{spelling}=")], spelling


@pytest.mark.parametrize(
    "url",
    [
        "mssql+pyodbc:///?odbc_connect=DRIVER%3Dsqlt/evil.so",
        "mssql+pyodbc://u@h/d?driver=/tmp/evil.so",
        "mssql+pyodbc://u@h/d?driver=evil.so",
        "mssql+pyodbc://u@h/d?DRIVER=..%5Cevil.dll",
        "mssql+pyodbc://u@h/d?driver=x};DSN=y",
        "mssql+pyodbc://u@h/d?app=x;DRIVER=/evil.so",
        "mssql+pyodbc://u@h;DRIVER=evil/d",
        "mssql+pyodbc://u@h/d;DRIVER=evil",
        "duckdb:///d.duckdb?allow_unsigned_extensions=true&extension_directory=/x&autoload_known_extensions=true",
        "duckdb:///md:mine",
        "duckdb:///md%3Amine",
        "mssql+pyodbc://u@h/d%3BDRIVER%3D%2Fevil.so",
        "duckdb:///s3://bucket/d.duckdb",
        "mysql+mysqldb://h/db?read_default_file=/x/my.cnf",
        "sqlite:///s.db?vfs=x",
        "sqlite+pysqlcipher://:pw@/s.db",
        "snowflake://u@a/d",
        "bigquery://p?credentials_path=/x",
        "access+pyodbc://h/d",
        "shillelagh://",
    ],
)
def test_an_address_that_could_load_code_is_refused_unless_it_is_the_callers(url: str) -> None:
    (finding,) = {d.code: d for d in loaded(sql(url)).diagnostics.items if d.code == "PG670"}.values()
    assert finding.labels[0].path == "source.sql.url"
    assert "--set" in "".join(finding.help)
    param = {"u": {"type": "str", "default": "sqlite:///s.db", "env": "DB"}}
    assert "PG670" not in found(sql("$u", params=param), env={"DB": url})
    assert "PG670" not in found(sql("$u", params=param), params={"u": url})
    assert "PG670" not in found(sql("sqlite:///s.db"), overrides={"source.sql.url": url})
    assert "PG670" in found(sql("$u", params={"u": {"type": "str", "default": url}})), "a default stands in the spec"
    head, mark, rest = url.partition("://")
    if mark and rest:
        assert "PG670" in found(sql(f"{head}://$u", params=param), params={"u": rest}), "a part of an address is not the address"
    joined = {"csv": {"path": "t.csv", "features": FEATURES, "join": {"table": {"sql": {"url": url, "query": QUERY}}, "on": {"n": "n"}}}}
    assert "PG670" in found({"source": joined, "output": {"x": "n"}})


def test_installed_drivers_go_by_their_names() -> None:
    for name in ("ODBC+Driver+18+for+SQL+Server", "FreeTDS", "SQL Server"):
        assert found(sql(f"mssql+pyodbc://u@h/d?driver={name}&Encrypt=yes&TrustServerCertificate=yes")) == []


_PART = st.text(alphabet="abAB09%+.-_~:@/?#&=;{}[]'\" \\é\n", max_size=12)


@settings(max_examples=150, deadline=None)
@given(_PART, _PART, _PART, _PART, _PART)
def test_an_address_is_taken_apart_as_sqlalchemy_does(user: str, password: str, host: str, database: str, query: str) -> None:
    """What is looked at here is what the driver gets later."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    text = f"mssql+pyodbc://{user}:{password}@{host}/{database}?{query}"
    try:
        theirs = sqlalchemy.make_url(text)
    except Exception:  # which its driver never sees
        return
    ours = _ADDRESS.match(text)
    assert ours is not None
    assert (ours["name"], ours["ipv6"] or ours["host"]) == (theirs.drivername, theirs.host)
    assert theirs.database in (ours["database"], unquote(ours["database"] or "")), "some versions decode it"
    if not [*unsafe(text)]:
        assert {key.lower() for key in theirs.query} <= ARGUMENTS["mssql"]["pyodbc"]
        assert not set(";{}=") & set(f"{theirs.host}{theirs.database}")


def test_every_scheme_that_fsspec_knows_is_known_or_refused() -> None:
    registry = pytest.importorskip("fsspec.registry")
    for scheme in sorted({*registry.known_implementations, "python", "zip", "reference", "dask", "filecache"}):
        address = f"{scheme}://h/x"
        assert ("PG670" in found(photos(address))) == (scheme not in KNOWN), scheme
        assert "PG670" not in found(photos("$d", params={"d": {"type": "path", "env": "D"}}), env={"D": address}), scheme


@pytest.mark.parametrize(
    "address",
    [
        "zip://a.zip::http://h/x",
        "http://h/x::zip://y",
        "s3://b/x::reference://y",
        "memory://a::b",
        "simplecache::http://h/x",
        " http://h/x",
    ],
)
def test_chains_of_addresses_are_refused(address: str) -> None:
    assert found(photos(address)) == ["PG670"]
    assert found(photos([address, "here/"])) in (["PG670"], ["PG670", "PG104"], ["PG104", "PG670"])


# What is written


PLACES_TO_WRITE = [
    ("errors", lambda file: photos("p/", errors={"decode": {"skip": {"report": file}}}), "errors.decode.skip.report"),
    ("snapshot", lambda file: sql("sqlite:///s.db", snapshot=file), "source.sql.snapshot"),
]


@pytest.mark.parametrize(("spec", "path"), [(spec, path) for _, spec, path in PLACES_TO_WRITE], ids=[name for name, *_ in PLACES_TO_WRITE])
def test_files_to_write_lie_below_the_spec_or_the_working_directory(
    spec: Any, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import yaml

    here, cwd, home = tmp_path / "specs", tmp_path / "cwd", tmp_path / "home"
    for folder in (here, cwd, home):
        folder.mkdir()
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("HOME", str(home))
    (here / "link").symlink_to(home)
    (here / "file").symlink_to(home / ".bashrc")

    def codes(file: str, **given: Any) -> list[str]:
        text = yaml.safe_dump({"pipegen": 1, **spec(file)})
        (here / "s.pipegen.yaml").write_text(text)
        return [d.code for d in load(str(here / "s.pipegen.yaml"), **given).diagnostics.items if d.severity.value == "error"]

    for fine in ("a.jsonl", "runs/a.jsonl", str(cwd / "a.jsonl"), str(here / "x" / "a.jsonl"), "../specs/a.jsonl"):
        assert codes(fine) == [], fine
    for wrong in (
        "~/.bash_login",
        "../a.jsonl",
        "/etc/cron.d/x",
        "link/a.jsonl",
        "file",
        str(home / "a"),
        "../specs-2/a",
        "s3://b/a",
        "a\0b",
    ):
        assert codes(wrong) == ["PG671"], wrong
    outside = str(home / "a.jsonl")
    assert codes(outside, allowed=Allowed.by([home], [])) == []
    assert codes(str(tmp_path / "home2"), allowed=Allowed.by([home], [])) == ["PG671"]
    assert codes("a.jsonl", overrides={path: outside}) == []
    assert codes("$p") == ["PG106"]


def test_the_environment_gives_no_leave_to_write() -> None:
    """The spec chooses the variable: `$HOME`."""
    spec = photos("p/", params={"p": {"type": "path", "default": "a", "env": "HOME_X"}}, errors={"decode": {"skip": {"report": "$p"}}})
    assert found(spec, env={"HOME_X": "/home/user/.profile"}) == ["PG671"]
    assert found(spec, params={"p": "/home/user/a.jsonl"}) == []
    part = photos("p/", params={"p": {"type": "path", "default": "a"}}, errors={"decode": {"skip": {"report": "$p/.profile"}}})
    assert found(part, params={"p": "/root"}) == ["PG671"]


# What is sent away


SECRETS = [
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "HF_TOKEN", "GITHUB_TOKEN", "API_KEY", "APIKEY", "MY_API_KEY_2",
    "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "DJANGO_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "SECRET_VALUE", "GH_PAT", "NPM_AUTH",
    "AZURE_STORAGE_CONNECTION_STRING", "SSH_PASSPHRASE", "openai_api_key", "TOKEN",
]  # fmt: skip
OPEN = ["AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "HOME", "DATA", "FLOWERS", "DATABASE_URL", "PATH_TO_DATA", "PWD", "SIZE"]


def test_secrets_are_no_params_unless_the_caller_allows_them() -> None:
    assert [name for name in SECRETS if not is_secret(name)] == []
    assert [name for name in OPEN if is_secret(name)] == []
    for name in SECRETS:
        spec = photos("$k/", params={"k": {"type": "str", "default": "x", "env": name}})
        assert found(spec) == ["PG672"], name
        assert found(spec, allowed=Allowed.by([], [name])) == []
        assert found(spec, allowed=Allowed.by([], ["OTHER"])) == ["PG672"]


SERVERS = ("http://h", "https://h", "HTTP://h", "ftp://h", "sftp://h", "webhdfs://h")


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("form", ["{}/$k/", "{}/a?x=$k", "{}$k/", "{}:$k/"])
def test_the_environment_is_no_part_of_an_address_of_a_server(server: str, form: str) -> None:
    params = {"k": {"type": "str", "default": "x", "env": "K"}}
    spec = photos(form.format(server), params=params)
    assert found(spec, env={"K": "1"}) == ["PG673"]
    assert found(spec) == ["PG673"], "whether or not it is set here"
    assert found(spec, params={"k": "1"}) == []
    assert found(spec, allowed=Allowed.by([], ["K"])) == []
    assert found(photos("$k", params=params), env={"K": f"{server}/x"}) == []
    default = {"k": {"type": "path", "default": f"{server}/x", "env": "K"}}
    assert found(photos("$k", params=default)) == []


@pytest.mark.parametrize("scheme", sorted(OBJECT_STORES | {"memory", "file"}))
def test_in_a_path_and_in_an_object_store_it_may_be_a_part(scheme: str) -> None:
    params = {"k": {"type": "str", "default": "x", "env": "K"}}
    assert found(photos(f"{scheme}://$k/a/$k", params=params), env={"K": "1"}) == []
    assert found(photos("data/$k/a", params=params), env={"K": "1"}) == []


def test_what_else_is_sent_to_a_server_holds_nothing_of_the_environment() -> None:
    params = {"k": {"type": "str", "default": "x", "env": "K"}, "y": {"type": "int", "default": 1, "env": "Y"}}
    server = "postgresql+psycopg://u@h/d"
    assert found(sql(server, "select n, label from t where s = '$k'", params={"k": params["k"]})) == ["PG673"]
    assert found(sql(server, "$k", params={"k": {**params["k"], "default": QUERY}})) == ["PG673"]
    assert found(sql(server, "select n, label from t where y = $y", params={"y": params["y"]})) == [], "a number is no secret"
    assert found(sql("sqlite:///s.db", "select n, label from t where s = '$k'", params={"k": params["k"]})) == []
    whole = {"u": {"type": "str", "default": "sqlite:///s.db", "env": "U"}, "k": params["k"]}
    assert found(sql("$u", "select n, label from t where s = '$k'", params=whole), env={"U": server}) == []
    assert found(sql("postgresql://u:$k@h/d", params={"k": params["k"]})) == ["PG673"]
    voc = {"voc": {"path": "http://h/VOC", "images": "$k"}}
    assert "PG673" in found({"source": voc, "params": {"k": params["k"]}, "transforms": [{"resize": {"size": 8}}]})


def test_parts_of_a_mix_are_looked_at_one_by_one() -> None:
    def mix(other: dict[str, Any]) -> dict[str, Any]:
        one = {"source": {"image_folder": {"path": "http://h/x/"}}}
        return {
            "source": {"mix": {"epoch": "shortest", "parts": {"a": one, "b": {"source": other}}}},
            "params": {"k": {"type": "str", "default": "x", "env": "K"}},
            "transforms": [{"resize": {"size": 8}}],
        }

    assert found(mix({"image_folder": {"path": "data/$k/"}})) == []
    assert found(mix({"image_folder": {"path": "http://h/$k/"}})) == ["PG673"]
    assert found(mix({"image_folder": {"path": "http://h/", "pattern": "$k/*.jpg"}})) == ["PG673"]


def test_a_stage_does_not_launder_the_environment() -> None:
    params = {"k": {"type": "str", "default": "x", "env": "K"}, "a": {"type": "str", "default": "grpc://h:1"}}
    spec = photos("p/", params=params, runtime={"service": {"address": "$a"}}, stages=[{"epochs": 1, "params": {"a": "grpc://$k:5050"}}])
    assert "PG673" in found(spec, env={"K": "secret"})
    assert "PG673" in found(photos("p/", params=params, runtime={"service": {"address": "grpc://$k:5050"}}), params={"a": "b"})


@pytest.mark.parametrize(("dialect", "variable"), [("postgresql", "PGPASSWORD"), ("mysql+pymysql", "MYSQL_PWD"), ("mariadb", "MYSQL_PWD")])
def test_a_driver_sends_the_password_of_the_environment_to_no_server_of_the_spec(dialect: str, variable: str) -> None:
    spec = sql(f"{dialect}://u@h/d")
    assert found(spec) == []
    assert found(spec, env={variable: "x"}) == ["PG673"]
    assert found(spec, env={variable: "x"}, allowed=Allowed.by([], [variable])) == []
    assert found(sql(f"{dialect}://u:own@h/d"), env={variable: "x"}) == []
    assert found(sql("$u", params={"u": {"type": "str", "env": "U"}}), env={variable: "x", "U": f"{dialect}://u@h/d"}) == []


# Who allows more


def test_what_is_allowed_is_checked() -> None:
    for wrong in ("folder", 3, [3]):
        with pytest.raises(TypeError, match="allow_write"):
            Allowed.by(wrong, [])  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="allow_env"):
            Allowed.by([], wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="allow_env"):
        Allowed.by([], ["A-B"])
    with pytest.raises(ValueError, match="allow_write"):
        Allowed.by(["a\0b"], [])


def test_every_command_that_loads_a_spec_takes_both_options() -> None:
    import typer

    from pipegen.cli.commands import app

    def commands(group: Any, name: str = "") -> Any:
        for own in getattr(group, "commands", {}):  # which are imported as they are asked for
            yield from commands(group.get_command(None, own), f"{name} {own}")
        if not hasattr(group, "commands"):
            yield name, {option for parameter in group.params for option in parameter.opts}

    seen = 0
    for name, options in commands(typer.main.get_command(app)):
        if "--set" in options:
            seen += 1
            assert {"--allow-write", "--allow-env"} <= options, name
        else:
            assert "--allow-code" not in options, name
    assert seen > 15


@pytest.mark.parametrize("command", ["show", "explain", "validate"])
def test_the_options_reach_the_spec(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from pipegen.cli.commands import app

    monkeypatch.chdir(tmp_path)
    params = "params: {k: {type: str, default: x, env: MY_TOKEN}}\nerrors: {decode: {skip: {report: /var/log/a.jsonl}}}\n"
    text = f"pipegen: 1\n{params}source: {{image_folder: {{path: $k}}}}\ntransforms: [{{resize: {{size: 8}}}}]\n"
    Path("s.pipegen.yaml").write_text(text)
    result = CliRunner().invoke(app, [command, "s.pipegen.yaml"])
    assert "PG671" in result.output
    assert "PG672" in result.output
    fine = CliRunner().invoke(app, [command, "s.pipegen.yaml", "--allow-write", "/var/log", "--allow-env", "MY_TOKEN"])
    assert "PG67" not in fine.output
    assert fine.exit_code == 0, fine.output
    assert "PG672" in CliRunner().invoke(app, [command, "s.pipegen.yaml", "--allow-write", "/var/log"]).output, "it is for one call"
    assert CliRunner().invoke(app, [command, "s.pipegen.yaml", "--allow-env", "A-B"]).exit_code == 2


def test_a_spec_that_was_loaded_keeps_what_it_was_allowed(tmp_path: Path) -> None:
    import pipegen

    file = tmp_path / "s.pipegen.yaml"
    params = "params: {k: {type: str, default: x, env: MY_TOKEN}}"
    file.write_text(f"pipegen: 1\n{params}\nsource: {{image_folder: {{path: $k}}}}\ntransforms: [{{resize: {{size: 8}}}}]\n")
    spec = pipegen.load(file, allow_env=["MY_TOKEN"])
    assert pipegen.load(spec, overrides={"batch.size": 4}).model.batch.size == 4
    with pytest.raises(pipegen.SpecError, match="PG672"):
        pipegen.load(file)


@pytest.mark.parametrize("value", ["x\\0y", "pkg:a\\0b/c.yaml", "pkg:json/\\0.yaml", "git+https://h/\\0@v1#a.yaml", "git+file:///a\\0@v#x"])
def test_a_name_that_no_file_can_have_is_a_finding_of_extends(value: str, tmp_path: Path) -> None:
    file = tmp_path / "n.pipegen.yaml"
    file.write_text(f'extends: "{value}"\n')
    first = load(str(file)).diagnostics.sorted()[0]
    assert first.code in ("PG110", "PG113", "PG115", "PG116")
    assert (first.span.line, first.span.column) == (1, 10)  # type: ignore[union-attr]
    if value == "x\\0y":
        assert first.code == "PG110"


# The page


def _texts(kind: Any) -> bool:
    return kind is str or any(map(_texts, typing.get_args(kind)))


def _models(kind: Any, into: list[type[BaseModel]]) -> None:
    for inner in typing.get_args(kind):
        _models(inner, into)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in into:
        into.append(kind)
        kind.model_rebuild()
        for field in kind.model_fields.values():
            _models(field.annotation, into)


NO_PLACES = {
    "PipelineSpec.name", "Splits.parts", "Splits.group", "PathGroup.path", "ArrayFeature.key", "Files.key", "Yolo.split", "Accepted.key",
    "Accepted.path", "Disjoint.key", "Disjoint.path", "Present.key", "Present.path", "Unique.key", "Unique.path", "ImageFolder.classes",
    "ImageFolder.pattern", "Mix.parts", "Csv.features", "DataFrame.features", "Excel.features", "Files.features", "JsonLines.features",
    "Parquet.features", "Sql.features", "GeoTiff.window", "AudioFolder.pattern", "FilesFeature.duration", "FilesFeature.offset",
    "RecordFeature.duration", "RecordFeature.offset", "TableFeature.duration", "TableFeature.offset",
}  # fmt: skip
"""Texts whose documentation speaks of files, and that name none: columns, patterns within a folder, features by name."""
ABOUT_PLACES = re.compile(r"\b(?:file|folder|address|variable of the env|environment variable|module:function|TensorFlow device)\b", re.I)


def test_the_page_about_security_has_every_key_that_names_a_place_or_code() -> None:
    """A new key whose documentation speaks of a file, a folder or an address has a line there, or is named above as none."""
    page = (ROOT / "docs" / "security.md").read_text()
    table = page[page.index("## Every key") : page.index("## Addresses of files")]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    named = {name for row in rows for quoted in re.findall(r"`([^`]+)`", row) for name in (quoted, quoted.rpartition(".")[2])}
    models: list[type[BaseModel]] = []
    for kind in (PipelineSpec, *sources().values(), *transforms().values(), *datatests().values()):
        _models(kind, models)
    missing = set()
    for model in models:
        docs = field_docs(model)
        for name, field in model.model_fields.items():
            full = f"{model.__name__}.{name}"
            speaks = ABOUT_PLACES.search(docs.get(name) or "") is not None
            if _texts(field.annotation) and speaks and full not in NO_PLACES and name not in named:
                missing.add(full)
    assert not missing
    places = SOURCE_PATHS | STEP_PATHS | PLACES | {p[-1] for p in PATHS} | {p for s in sources().values() for p in s.places}
    assert places <= named
    for name in sorted(KNOWN):
        assert f"`{name}://`" in page
    for dialect, drivers in ARGUMENTS.items():
        assert f"`{dialect}" in page
        for argument in frozenset().union(*drivers.values()):
            assert f"`{argument}`" in page or argument.startswith("keepalives"), argument


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["http://h/{}", "postgresql://u:{}@h/d", "data/{}", "s3://b/{}"]),
    st.lists(st.sampled_from(["$a", "${a}", "x", "$b", "$$"]), min_size=1, max_size=5),
)
def test_a_value_of_the_environment_never_reaches_a_server_in_part(address: str, parts: list[str]) -> None:
    """However a value is put together: what is accepted holds the token only where it is not sent."""
    token = "t0ken"
    params = {"a": {"type": "str", "default": "d", "env": "A"}, "b": {"type": "str", "default": "e"}}
    text = address.format("-".join(parts))
    used = {name: param for name, param in params.items() if f"${name}" in text or f"${{{name}}}" in text}
    spec = sql(text, params=used) if address.startswith("postgres") else photos(text, **({"params": used} if used else {}))
    codes = found(spec, env={"A": token})
    sent = address.startswith(("http", "postgres")) and "a" in used
    assert ("PG673" in codes) == sent
