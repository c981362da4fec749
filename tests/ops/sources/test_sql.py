"""Queries: they only read, their rows are kept, and nothing shows a password."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import stat
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from pipegen.data.collect import collect
from pipegen.errors import OpError
from pipegen.ops.sources.table_sources import Csv, Sql
from pipegen.ops.sources.tables.sql import LateError, refuse_writing, run_query
from pipegen.spec.load import load
from pipegen.spec.spec_hash import spec_hash
from pipegen.terminal import Secretive, masked, secrets_in, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("sqlalchemy")

FEATURES: dict[str, Any] = {"n": {"kind": "tensor"}, "label": {"kind": "label", "column": "breed"}}
QUERY = "select n, breed, age from dogs order by n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "dogs.db") as database:
        database.execute("create table dogs (n integer, breed text, age real)")
        database.executemany("insert into dogs values (?, ?, ?)", [(i, "ab"[i % 2], None if i == 3 else i / 2) for i in range(8)])
    return tmp_path


def sql(query: str = QUERY, url: str = "sqlite:///dogs.db", **arguments: Any) -> Sql:
    return Sql(url=url, query=query, features=arguments.pop("features", FEATURES), **arguments)


def refusal(source: Any, folder: Path) -> OpError:
    with pytest.raises(OpError) as caught:
        source.list(folder)
    return caught.value


def snapshot(folder: Path) -> Path:
    (file,) = (folder / ".pipegen").iterdir()
    return file


def insert(folder: Path) -> None:
    with sqlite3.connect(folder / "dogs.db") as database:
        database.execute("insert into dogs values (99, 'c', 1)")


def test_rows_are_those_of_the_query_with_everything_a_table_has(folder: Path) -> None:
    listing = sql(where="age == '' or age > 1").list(folder)
    assert listing.keys == ("3", "4", "5", "6", "7")
    assert (tuple(listing.labels), listing.class_names) == ((1, 0, 1, 0, 1), ("a", "b"))
    assert listing.location.paths[0] == "row 3 of the query"
    assert [(n.code, n.help) for n in listing.notes] == [("PG455", "delete the file to query the database again")]


def test_runs_see_the_rows_of_the_first_one_until_the_snapshot_is_removed(folder: Path) -> None:
    assert len(sql().list(folder).keys) == 8
    insert(folder)
    before = snapshot(folder).read_bytes()
    assert len(sql().list(folder).keys) == 8
    os.rename(folder / "dogs.db", folder / "away.db")
    assert len(sql().list(folder).keys) == 8, "the database need not be there"
    assert snapshot(folder).read_bytes() == before
    os.rename(folder / "away.db", folder / "dogs.db")
    snapshot(folder).unlink()
    assert len(sql().list(folder).keys) == 9
    moved = folder.parent / "moved"
    folder.rename(moved)
    insert(moved)
    assert len(sql(url=f"sqlite:///{moved}/dogs.db").list(moved).keys) == 9, "a moved folder takes its snapshot along"


def test_another_query_has_another_snapshot(folder: Path) -> None:
    assert len(sql(snapshot="rows/kept.jsonl").list(folder).keys) == 8
    assert (folder / "rows" / "kept.jsonl").is_file()
    wrong = refusal(sql(QUERY + " limit 3", snapshot="rows/kept.jsonl"), folder)
    assert (wrong.code, wrong.field) == ("PG454", "snapshot")
    assert "holds the rows of another query" in wrong.message
    assert len(sql(QUERY + " limit 3").list(folder).keys) == 3


def test_a_damaged_snapshot_is_named(folder: Path) -> None:
    sql().list(folder)
    file = snapshot(folder)
    whole = file.read_bytes()
    cuts = [b"", whole[:40], whole[:-1], b"".join(whole.splitlines(True)[:-2]), whole.replace(b'"7"', b'"8"'), b"{}\n{}\n", b"\x00" * 99]
    for damaged in [*cuts, *(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :] for i in range(0, len(whole) - 70, 23))]:
        if damaged == whole[:-1]:
            continue  # the last line break says nothing
        file.write_bytes(damaged)
        wrong = refusal(sql(), folder)
        assert wrong.code == "PG454"
        assert str(file) in wrong.message
    file.write_bytes(whole)
    assert len(sql().list(folder).keys) == 8


def test_a_snapshot_that_cannot_be_kept_is_told(folder: Path) -> None:
    (folder / "file").write_text("")
    wrong = refusal(sql(snapshot="file/rows.jsonl"), folder)
    assert wrong.code == "PG454"
    assert "cannot be kept" in wrong.message


@pytest.mark.parametrize(
    "query",
    [
        "select 1; drop table dogs",
        "drop table dogs",
        "with x as (delete from dogs returning *) select * from x",
        "select * into copy from dogs",
        "select * from dogs for update",
        "insert into dogs values (1)",
        "select 1 /*! ; drop table dogs */",
        r"select '\'' ; drop table dogs --'",
        "select 'open",
        "select 1 /* open",
        "pragma writable_schema",
        "attach 'x' as y",
        "-- nothing",
    ],
)
def test_what_does_not_only_read_is_refused_before_it_runs(query: str) -> None:
    with pytest.raises(ValidationError, match="a query "):
        sql(query)


@pytest.mark.parametrize(
    "query",
    [
        "select * from dogs;",
        "SELECT 'drop table; -- x' as t -- and; delete\n from dogs /* update */",
        'with a as (select "update" from b) select * from a',
        "select replace(breed, 'a', 'it''s') from dogs where breed like '50%' and x::int = 3",
        "values (1), (2)",
        "select $tag$ ; drop $tag$",
        "(select 1 as x_update_y) union select 2"[1:].replace(")", "", 1),
    ],
)
def test_what_reads_is_taken(query: str) -> None:
    refuse_writing(query)


def test_the_database_itself_is_opened_for_reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.ops.sources.tables.sql.refuse_writing", lambda query: None)
    before = (folder / "dogs.db").read_bytes()
    wrong = refusal(sql("delete from dogs returning n, breed, age"), folder)
    assert (wrong.code, wrong.field) == ("PG453", "query")
    assert "readonly" in wrong.message
    assert (folder / "dogs.db").read_bytes() == before


def test_what_a_database_says_is_a_finding(folder: Path) -> None:
    wrong = refusal(sql("select * from dgos"), folder)
    assert (wrong.code, wrong.field) == ("PG453", "query")
    assert "refuses the query: no such table: dgos" in wrong.message
    assert not (folder / ".pipegen").exists() or not list((folder / ".pipegen").iterdir())
    assert refusal(sql(url="sqlite:///nowhere.db"), folder).code == "PG401"
    assert refusal(sql(url="sqlite://"), folder).code == "PG401"
    (folder / "text.db").write_text("no database at all, but some text that is long enough to be looked at" * 30)
    assert "file is not a database" in refusal(sql(url="sqlite:///text.db"), folder).message
    assert refusal(sql(url="no address"), folder).code == "PG453"
    driver = refusal(sql(url="postgresql+nodriver://u@h/db"), folder)
    assert driver.code in ("PG421", "PG453")


def test_without_sqlalchemy_the_finding_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sqlalchemy", None)
    wrong = refusal(sql(), folder)
    assert (wrong.code, wrong.field) == ("PG421", "url")
    assert "pipegen[sql]" in str(wrong.help)


def test_it_can_be_joined_and_join(folder: Path) -> None:
    (folder / "t.csv").write_text("k,file\n1,x\n3,y\n")
    join = {"table": {"sql": {"url": "sqlite:///dogs.db", "query": QUERY}}, "on": {"k": "n"}}
    listing = Csv(path="t.csv", features={"label": FEATURES["label"]}, join=join).list(folder)
    assert (listing.keys, listing.class_names) == (("0", "1"), ("b",))
    assert [n.code for n in listing.notes] == ["PG455"]


SECRET = "s3cr3t%2Fpw"
PLAIN = "s3cr3t/pw"
URL = f"postgresql://bob:{SECRET}@nowhere.invalid:5432/db?sslpassword={SECRET}x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"see {URL} !", "see postgresql://bob:***@nowhere.invalid:5432/db?sslpassword=*** !"),
        ("mysql://u:a@b:c@h/d", "mysql://u:***@h/d"),
        ("mssql+pyodbc:///?odbc_connect=UID%3Dsa%3BPWD%3Dtop%3BX%3D1", "mssql+pyodbc:///?odbc_connect=***"),
        ("postgresql://u@h:5432/db and https://x/y:z", "postgresql://u@h:5432/db and https://x/y:z"),
    ],
)
def test_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(masked(text)) == shown
    assert len(masked(text, aligned=True)) == len(text)
    assert not any(secret in masked(text, aligned=True) for secret in secrets_in(text))


def test_a_long_text_is_searched_once() -> None:
    """A page holds its pictures in one word each."""
    begun = time.process_time()
    assert masked("A" * 200_000 + " db://u:p@h").endswith(" db://u:***@h")
    assert time.process_time() - begun < 3, "it took a minute where each character began a search"


def test_an_address_shows_itself_without_its_password() -> None:
    url = Secretive(URL)
    for shown in (str(url), repr(url), f"{url}", f"{url:>9}", repr(sql(url=URL)), str(sql(url=URL).model_dump())):
        assert "s3cr3t" not in shown
    assert pickle.loads(pickle.dumps(url)).revealed == URL
    assert sql(url=URL).url.revealed == URL  # type: ignore[attr-defined]


FEW = ("validate --data", "show --format json", "lock")
MANY = ("validate", *FEW, "validate --format json", "validate --format sarif", "validate --format github", "show", "explain",
        "explain --format html -o out.html", "diff a.pipegen.yaml")  # fmt: skip


@pytest.mark.parametrize("commands", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_no_output_has_the_password(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], commands: tuple[str, ...]
) -> None:
    from typer.testing import CliRunner

    from pipegen.cli.commands import app

    monkeypatch.chdir(folder)
    body = f"query: '{QUERY}', features: {{n: {{kind: tensor}}}}}}\nbatch: {{size: 2}}\noutput: {{x: n}}\n"
    Path("a.pipegen.yaml").write_text(f"pipegen: 1\nsource:\n  sql: {{url: '{URL}', {body}")
    param = f"params: {{db: {{type: str, default: '{URL}', description: x}}}}\n"
    Path("b.pipegen.yaml").write_text(f"pipegen: 1\n{param}source:\n  sql: {{url: $db, {body}")
    Path("c.pipegen.yaml").write_text(f"pipegen: 1\nsource:\n  sql: {{ulr: '{URL}', {body}")
    shown = []
    for file in "abc" if commands is MANY else "ab":
        for command in commands:
            result = CliRunner().invoke(app, [*command.split(), f"{file}.pipegen.yaml"])
            shown.append(result.output + repr(result.exception))
    written = "".join(p.read_text() for p in folder.rglob("*") if p.is_file() and p.suffix in (".lock", ".html", ".jsonl"))
    everything = "".join(shown) + written + "".join(capfd.readouterr())
    assert "bob:***" in everything
    for form in (SECRET, PLAIN, "s3cr3t"):
        assert form not in everything


def test_errors_of_the_driver_are_masked() -> None:
    said = without_secrets(URL)(OSError(f"login failed for bob\nwith {PLAIN}, that is {SECRET} ({URL})"))
    assert said.startswith("login failed for bob with ***, that is *** (postgresql://bob:***@")
    assert "s3cr3t" not in said


def test_where_the_rows_are_is_no_part_of_the_meaning_and_the_query_is(tmp_path: Path) -> None:
    def hashed(**arguments: str) -> str:
        source = {"url": "sqlite:///a.db", "query": QUERY, "features": FEATURES, **arguments}
        loaded = load({"pipegen": 1, "source": {"sql": source}, "output": {"x": "n"}}, env={})
        assert loaded.spec is not None, loaded.diagnostics.items
        return spec_hash(loaded.spec)

    assert hashed() == hashed(url="postgresql://a:b@c/d") == hashed(snapshot="x.jsonl")
    assert hashed() != hashed(query=QUERY + " limit 3")


def test_a_relative_file_of_sqlite_is_relative_to_the_spec(folder: Path) -> None:
    (folder / "deep").mkdir()
    text = f"pipegen: 1\nsource:\n  sql: {{url: 'sqlite:///../dogs.db', query: '{QUERY}', features: {{n: {{kind: tensor}}}}}}\n"
    (folder / "deep" / "base.pipegen.yaml").write_text(text + "output: {x: n}\nsplits: {parts: {train: 4}}\n")
    (folder / "own.pipegen.yaml").write_text("pipegen: 1\nextends: deep/base.pipegen.yaml\nbatch: {size: 2}\n")
    loaded = load(str(folder / "own.pipegen.yaml"))
    assert loaded.spec is not None, loaded.diagnostics.items
    found = collect(loaded.spec, base=folder)
    assert found.manifest is not None, found.diagnostics.items
    assert found.manifest.num_examples("train") == 4


def test_snapshots_are_plain_files(folder: Path) -> None:
    sql().list(folder)
    assert stat.S_ISREG(snapshot(folder).lstat().st_mode)
    assert [p.name.endswith(".jsonl") for p in (folder / ".pipegen").iterdir()] == [True]


ENDLESS = "with recursive r(i) as (select 1 union all select i+1 from r) select count(*) as n, 'a' as breed from r"
ENDLESS_ROWS = "with recursive r(i) as (select 1 union all select i+1 from r) select i as n, 'a' as breed from r"


@pytest.mark.parametrize("query", [ENDLESS, ENDLESS_ROWS])
def test_a_query_has_a_time_limit(folder: Path, query: str) -> None:
    threads = threading.active_count()
    begun = time.monotonic()
    late = refusal(sql(query, time_limit=0.2), folder)
    assert (late.code, time.monotonic() - begun < 5) == ("PG453", True)
    assert "0.2 seconds" in late.message
    assert "`time_limit: " in late.lines[0]
    assert threading.active_count() <= threads, "the thread that asked has ended"
    assert not [p for p in (folder / ".pipegen").glob("*") if p.suffix == ".jsonl"], "nothing of it is kept"


def test_rows_that_always_come_do_not_outlast_the_limit() -> None:
    begun, checked = time.monotonic(), 0

    def work(connected: Callable[[Any], Callable[[], None]]) -> None:
        nonlocal checked
        check = connected(SimpleNamespace(interrupt=lambda: None))
        while True:
            check()
            checked += 1

    with pytest.raises(LateError):
        run_query(work, 1.0)
    assert 1 < time.monotonic() - begun < 5
    seen = checked
    time.sleep(0.2)
    assert seen == checked > 0, "the thread that asked has ended"


def test_a_query_is_ended_by_an_interrupt(folder: Path) -> None:
    """As Ctrl-C does: a handler that raises gets its turn while the database works."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            sql(ENDLESS).list(folder)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begun < 5


def test_many_rows_come_in_their_order(folder: Path) -> None:
    rows = "with recursive r(i) as (select 1 union all select i+1 from r where i < 7001) select i as n, 'a' as breed from r order by i"
    listing = sql(rows).list(folder)
    assert len(listing.keys) == 7001
    lines = snapshot(folder).read_text().splitlines()
    assert [int(json.loads(line)[0]) for line in lines[1:-1]] == [*range(1, 7002)]


@pytest.mark.parametrize("arguments", ["?mode=rwc", "?timeout=3&check_same_thread=false", "?mode=ro&cache=shared"])
def test_arguments_of_a_file_of_sqlite_have_no_effect_and_no_warning(
    folder: Path, arguments: str, recwarn: pytest.WarningsRecorder
) -> None:
    assert len(sql(url=f"sqlite:///dogs.db{arguments}").list(folder).keys) == 8
    assert [w for w in recwarn if "SAWarning" in str(w.category)] == []
    assert refusal(sql(url=f"sqlite:///fresh.db{arguments}"), folder).code == "PG401"
    assert not (folder / "fresh.db").exists()


@pytest.mark.parametrize("query", ["select load_extension('x.so') as n, 'a' as breed", "select fts3_tokenizer('x') as n, 'a' as breed"])
def test_a_query_of_sqlite_loads_no_library(folder: Path, query: str) -> None:
    assert refusal(sql(query), folder).code == "PG453"


def test_sqlite_opens_no_other_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.ops.sources.tables.sql.refuse_writing", lambda query: None)
    wrong = refusal(sql("attach 'other.db' as other"), folder)
    assert "not authorized" in wrong.message
    assert not (folder / "other.db").exists()


def test_the_snapshot_beside_the_spec_follows_no_link(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (folder / ".pipegen").symlink_to(outside)
    assert refusal(sql(), folder).code == "PG671"
    assert not list(outside.iterdir())


@pytest.mark.parametrize("driver", ["pymysql", "mysqldb", "mysqlconnector", "mariadbconnector"])
def test_drivers_of_mysql_send_no_file_that_a_server_asks_for(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlalchemy

    from pipegen.ops.sources.tables.sql import _engine

    made: dict[str, Any] = {}
    monkeypatch.setattr(sqlalchemy, "create_engine", lambda url, **options: made.update(options))
    for dialect in ("mysql", "mariadb"):
        url = SimpleNamespace(get_backend_name=lambda dialect=dialect: dialect, get_driver_name=lambda: driver, password=None)
        _engine(sqlalchemy, url, ".")
        assert [value for name, value in made["connect_args"].items() if "local_infile" in name] in ([False], [0])


def test_duckdb_reads_no_other_file(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("duckdb_engine")
    url = f"duckdb:///{folder}/d.duckdb"
    (folder / "secret.csv").write_text("n,breed\n1,a\n")
    with duckdb.connect(str(folder / "d.duckdb")) as database:
        database.execute("create table dogs as select 1 as n, 'a' as breed")
        database.execute(f"create view leak as select * from read_csv('{folder}/secret.csv')")
    assert len(sql("select n, breed from dogs", url=url).list(folder).keys) == 1
    for query in ("select * from leak", f"select * from read_csv('{folder}/secret.csv')", f"from '{folder}/secret.csv'"):
        assert refusal(sql(query, url=url), folder).code == "PG453", query
    endless = "select count(*) as n, 'a' as breed from range(100000000) a, range(100000000) b"
    assert "its `time_limit`" in refusal(sql(endless, url=url, time_limit=1), folder).message
