"""No output has a secret of an address, whatever characters it is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipegen.ops.sources.tables.sql_address import ARGUMENTS
from pipegen.spec.places import Address
from pipegen.terminal import HARMLESS, Secretive, masked, masked_address, masked_value, without_secrets

TOKEN = "tOkEn"
ODD = st.text(alphabet="aZ09/'\" ;#%&?=:{}[]\\$é~^`|<>,.\t", max_size=6)
DATABASES = st.sampled_from(["postgresql", "mysql+pymysql", "mssql+pyodbc", "oracle", "duckdb", "x"])


@settings(max_examples=150, deadline=None)
@example("postgresql", "bob", "s3cr/et", "pw", "h/db")
@example("postgresql", "bob", "s3'cr", "et pw", "h/db")
@example("mssql+pyodbc", "", "a;b", "#%", "h/db?driver=x")
@given(DATABASES, st.text(alphabet="abc.-_ '", max_size=4), ODD, ODD, st.sampled_from(["h/db", "h:5432/db?sslmode=require", "/db", "h"]))
def test_everything_between_the_user_and_the_last_at_is_hidden(scheme: str, user: str, before: str, after: str, rest: str) -> None:
    address = f"{scheme}://{user}:{before}{TOKEN}{after}@{rest}"
    secret = before + TOKEN + after
    said = ValueError(f"{address} or {secret} or {secret!r}")
    for shown in (
        masked_address(address), str(Secretive(address)), repr(Secretive(address)), f"{Secretive(address)}", masked_value(address),
        masked(f"see {address} there"), masked(f"url: '{address}'", aligned=True), str(Address(address, scheme)),
        without_secrets(address)(said),
    ):  # fmt: skip
        assert TOKEN not in shown, shown
    assert masked_address(masked_address(address)) == masked_address(address)
    assert masked_address(address).startswith(f"{scheme}://{user}:***@")
    assert len(masked(address, aligned=True)) == len(address)


@settings(max_examples=150, deadline=None)
@given(DATABASES, st.text(alphabet="abcXYZ_%2d-", min_size=1, max_size=12), ODD, ODD)
@example("mssql+pyodbc", "odbc_connect", "PWD={s3;", "cretpw}")
@example("snowflake", "private_key", "", "")
@example("bigquery", "credentials_base64", "a/", "==")
def test_every_argument_that_is_not_known_to_be_harmless_is_hidden(scheme: str, key: str, before: str, after: str) -> None:
    if "&" in before + after:
        before, after = before.replace("&", ""), after.replace("&", "")
    address = f"{scheme}://u@h/db?sslmode=require&{key}={before}{TOKEN}{after}&timeout=3"
    for shown in (masked_address(address), str(Secretive(address)), masked(f"url: {address}", aligned=True), masked_value(address)):
        assert TOKEN not in shown, shown
        assert "sslmode=require" in shown
    bare = f"{scheme}://h/db?{TOKEN}"
    assert TOKEN not in masked_address(bare)


def test_what_is_harmless_is_shown() -> None:
    for address in ("sqlite:///s.db?mode=ro", "postgresql://h:5432/db?sslmode=require&connect_timeout=3", "mssql://h/d?driver=ODBC+Driver+18",
                    "http://h:8080/a@2x.png", "https://h/a.tar?download=1", "s3://bucket/a/b", "grpc://h:5050"):  # fmt: skip
        assert masked_address(address) == masked(address) == masked(f"see {address}!")[4:-1] == address
    assert masked_address("https://t0k3n@github.com/x.zip") == "https://***@github.com/x.zip"
    assert masked_address("https://h/x?X-Amz-Signature=abc&v=1") == "https://h/x?X-Amz-Signature=***&v=***"
    assert masked_address("http://user:pa/ss@h/x") == "http://user:***@h/x"
    assert masked_address("s3://key:secret@bucket/x") == "s3://key:***@bucket/x"
    secret = {"password", "sslpassword", "odbc_connect", "token", "private_key", "credentials_base64", "sslkey", "pwd"}
    assert not secret & HARMLESS
    assert {a for d in ARGUMENTS.values() for names in d.values() for a in names} & secret == {"password"}


SPEC = """pipegen: 1
params: {url: {type: str, default: 'sqlite:///x.db', env: DBURL}}
source: {sql: {url: $url, query: 'select n, label from t', features: {n: {kind: tensor}, label: {kind: label}}}}
output: {x: n}
batch: {size: 2}
"""
COMMANDS = ("show", "show --format json", "explain", "validate --data", "lock", "diff a.pipegen.yaml", "validate --format json --data")


def output_of(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, commands: tuple[str, ...]) -> str:
    from typer.testing import CliRunner

    from pipegen.cli.commands import app
    from pipegen.errors import SpecError
    from pipegen.phases.compilation import collect_data, load

    monkeypatch.chdir(folder)
    for name in "ab":
        Path(f"{name}.pipegen.yaml").write_text(SPEC)
    monkeypatch.setenv("DBURL", url)
    shown = []
    for command in commands:
        result = CliRunner().invoke(app, [*command.split(), "b.pipegen.yaml"])
        shown.append(result.output + repr(result.exception))
    given = [{"overrides": {"source.sql.url": url}}, {"params": {"url": url}}, {}]
    for own in given:
        try:
            spec = load(Path("b.pipegen.yaml"), **own)  # type: ignore[arg-type]
            shown += [repr(spec), repr(spec.model), spec._repr_html_(), str(spec.model.model_dump()), repr(spec.model.source)]
            collect_data(spec)
        except SpecError as error:
            shown += [str(error), repr(error)]
    result = CliRunner().invoke(app, ["show", "b.pipegen.yaml", "--set", f"url={url}"])
    shown.append(result.output)
    written = "".join(p.read_text() for p in folder.rglob("*") if p.is_file() and p.suffix in (".lock", ".jsonl"))
    return "".join(shown) + written


URLS = [
    f"postgresql+nodriver://bob:s3cr/{TOKEN}@127.0.0.1:1/db",
    f"postgresql+nodriver://bob:s3' \"{TOKEN};#@127.0.0.1:1/db?sslmode=require",
    f"mssql+nodriver:///?odbc_connect=PWD={{s3;{TOKEN}}};UID=x y",
]


@pytest.mark.parametrize("url", URLS)
def test_no_output_of_a_spec_has_a_secret(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlalchemy")
    everything = output_of(url, tmp_path, monkeypatch, COMMANDS[:4])
    assert TOKEN not in everything, [line for line in everything.splitlines() if TOKEN in line]
    assert "***" in everything


@pytest.mark.nightly
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(ODD, ODD, st.sampled_from(["postgresql+nodriver", "mysql+nodriver", "snowflake"]), st.booleans())
def test_no_output_of_any_spec_has_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, scheme: str, query: bool
) -> None:
    pytest.importorskip("sqlalchemy")
    secret = f"{before}{TOKEN}{after}".replace("&", "")
    url = f"{scheme}://u@127.0.0.1:1/db?some_key={secret}" if query else f"{scheme}://u:{secret}@127.0.0.1:1/db"
    assert TOKEN not in output_of(url, tmp_path, monkeypatch, COMMANDS)


def test_a_snapshot_has_no_secret(tmp_path: Path) -> None:
    """Its first line says what was asked."""
    import sqlite3

    pytest.importorskip("sqlalchemy")
    from pipegen.ops.sources.table_sources import Sql

    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute("create table t (n integer, label text)")
        database.execute("insert into t values (1, '$(touch x)`id`!')")
    source = Sql(url=f"sqlite:///s.db?some={TOKEN}", query="select n, label from t where label <> '`$(touch y)`'",
                 features={"n": {"kind": "tensor"}, "label": {"kind": "label"}})  # fmt: skip
    assert source.list(tmp_path).class_names == ("$(touch x)`id`!",)
    (file,) = (tmp_path / ".pipegen").iterdir()
    text = file.read_text()
    assert TOKEN not in text
    assert not set("$`!") & set(text), "a shell that reads it runs nothing"
    assert json.loads(text.splitlines()[1]) == ["1", "$(touch x)`id`!"]


def test_json_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    from pipegen.terminal import json_text, say

    value: Any = {"a": [f"postgresql://u:{TOKEN}'\"@h/d?x={TOKEN} y", "me@x.org"], "b": f'see http://h/x?sig={TOKEN}, "then" go'}
    say(json_text(value))
    out = capsys.readouterr().out
    assert TOKEN not in out
    assert json.loads(out)["a"][1] == "me@x.org"
