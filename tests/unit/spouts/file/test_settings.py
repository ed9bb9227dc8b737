"""FileTransactionalSpout: paths, headers and arguments that will not do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stormline.spouts.file import FileTransactionalSpout, byte_ranges
from stormline.spouts.file.errors import BadHeader, BadLine, FileMissing, InvalidFileSpout, UnusableFile
from stormline.topology.errors import InvalidStream, UnknownField
from tests.kits.file_spout import Run, declared_fields, write

pytestmark = pytest.mark.usefixtures("in_tmp")


# ------------------------------------------------------------------------------- paths that will not do


def test_a_file_that_does_not_exist_is_named_when_declared_and_at_the_start() -> None:
    message = r"nowhere\.csv' does not exist on .*; the driver and every executor read the files, so put it"
    with pytest.raises(FileMissing, match=message):
        declared_fields(FileTransactionalSpout("nowhere.csv"))
    with pytest.raises(FileNotFoundError, match=message):
        Run(FileTransactionalSpout("nowhere.csv", ["n"]))


def test_a_glob_without_files_cannot_name_the_fields() -> None:
    write("empty.csv", "")
    with pytest.raises(
        FileMissing, match=r"no file with a header matches \['\*\.csv'\] yet, .* name them with fields="
    ):
        declared_fields(FileTransactionalSpout("*.csv"))


def test_a_directory_and_a_pipe_are_refused() -> None:
    Path("dir").mkdir()
    with pytest.raises(
        UnusableFile, match=r"dir' is a directory, expected a file; to read the files in it pass '.*dir/\*"
    ):
        Run(FileTransactionalSpout("dir", ["n"]))
    os.mkfifo("pipe")
    with pytest.raises(UnusableFile, match="pipe' is no regular file; a batch must be readable again"):
        Run(FileTransactionalSpout("pipe", ["n"]))


def test_a_name_that_is_no_text_is_refused() -> None:
    try:
        with open(b"\xff.csv", "wb") as file:
            file.write(b"n\n1\n")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    with pytest.raises(UnusableFile, match="is not valid UTF-8; rename it"):
        Run(FileTransactionalSpout("*.csv"))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\x1f\x8b\x08\0", "compressed with gzip; unpack it first"),
        (b"BZh91AY&SY", "compressed with bzip2; unpack it first"),
        (b"PK\x03\x04", "a zip archive; unpack it first"),
        (b"PAR1\0\0", "a Parquet file; pass format='parquet'"),
        ("n\n1\n".encode("utf-16"), "UTF-16; convert it to UTF-8 first"),
    ],
)
def test_files_that_are_no_plain_text_are_refused(head: bytes, message: str) -> None:
    write("a.csv", head)
    with pytest.raises(UnusableFile, match=rf"a\.csv' is {message}"):
        declared_fields(FileTransactionalSpout("a.csv"))


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_ranges, "LINE_BYTES_MAX", 1000)
    monkeypatch.setattr(byte_ranges, "READ_BYTES_MAX", 100)
    write("a.txt", "short\n" + "x" * 5000)
    with pytest.raises(UnusableFile, match=r"a\.txt:2: the line is longer than 1000 bytes; is this a file of lines"):
        Run(FileTransactionalSpout("a.txt", format="text")).plan()


# ------------------------------------------------------------------------------- CSV headers and columns


def test_fields_pick_and_order_the_columns() -> None:
    write("a.csv", "a,b,c\n1,2,3\n4,,6\n")
    assert declared_fields(FileTransactionalSpout("a.csv")) == ["attempt", "a", "b", "c"]
    picked = FileTransactionalSpout("a.csv", ["c", "a"])
    assert declared_fields(picked) == ["attempt", "c", "a"]
    assert Run(picked).rows() == [["3", "1"], ["6", "4"]]
    assert Run(FileTransactionalSpout("a.csv", ["b"])).rows() == [["2"], [""]]


def test_without_a_header_the_fields_name_the_columns() -> None:
    write("a.csv", "1;2\n3;4\n")
    spout = FileTransactionalSpout("a.csv", ["x", "y"], header=False, delimiter=";", types={"y": int})
    assert Run(spout).rows() == [["1", 2], ["3", 4]]


def test_types_convert_also_columns_that_are_not_taken() -> None:
    write("a.csv", "a,b\n1,2\n")
    assert Run(FileTransactionalSpout("a.csv", types={"b": float})).rows() == [["1", 2.0]]


def test_another_header_in_a_later_file_halts() -> None:
    write("a.csv", "a,b\n1,2\n")
    write("b.csv", "b,a\n1,2\n")
    spout = FileTransactionalSpout(["a.csv", "b.csv"])
    with pytest.raises(
        BadHeader, match=r"b\.csv' has the columns \['b', 'a'\], but .*a\.csv' has \['a', 'b'\]; all fi"
    ):
        Run(spout).rows()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a,a\n", "has 2 columns named 'a'; name others with fields="),
        ("a,\n", "has a column without a name; name others"),
        ("attempt,a\n", "has a column 'attempt', the name of the first field of every tuple; name others"),
        ('a,"b"c\n', r"a\.csv:1: the header row cannot be read: not valid CSV: ',' expected after '\"'; correct"),
        ('\n\na,"b', r"a\.csv:3: the header row cannot be read: not valid CSV: a quote is opened and never closed"),
    ],
)
def test_a_header_that_gives_no_fields_is_refused(header: str, message: str) -> None:
    write("a.csv", header)
    with pytest.raises(BadHeader, match=message):
        declared_fields(FileTransactionalSpout("a.csv"))


def test_a_field_or_type_that_no_column_has_is_refused() -> None:
    write("a.csv", "word,n\n")
    with pytest.raises(UnknownField, match=r"has no field 'wrod'; its fields are \['word', 'n'\]; did you mean 'word'"):
        Run(FileTransactionalSpout("a.csv", ["wrod"])).coordinator.is_ready()
    with pytest.raises(UnknownField, match="has no field 'm'"):
        declared_fields(FileTransactionalSpout("a.csv", types={"m": int}))


def test_a_header_may_hold_quotes_and_line_feeds() -> None:
    write("a.csv", '"a\nb",c\n1,2\n')
    spout = FileTransactionalSpout("a.csv")
    assert declared_fields(spout) == ["attempt", "a\nb", "c"]
    write("a.csv", '"a\nb",c\n1\n')
    with pytest.raises(BadLine, match=r"a\.csv:3: the row has 1 values"):
        Run(spout).rows()


# ------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "cvs"}, r"format is 'cvs', expected one of .*; did you mean 'csv'"),
        ({"on_bad_line": "warn"}, "on_bad_line is 'warn', expected 'error' or 'skip'"),
        ({"rows_per_batch": 0}, "rows_per_batch is 0, expected a whole number of at least 1"),
        ({"rows_per_batch": True}, "rows_per_batch is True, expected a whole"),
        ({"paths": []}, r"paths is \[\], expected a path or a list with at least one"),
        ({"paths": [""]}, "paths holds '', expected non-empty text or a Path"),
        ({"paths": [3]}, "paths holds 3, expected"),
        ({"fields": "n"}, r"fields is the text 'n', expected a list: \['n'\]"),
        ({"fields": []}, "fields is empty; name at least one field"),
        ({"format": "jsonl"}, "format='jsonl' needs fields: name the keys"),
        ({"header": False}, "header=False needs fields: name the columns"),
        ({"format": "text", "fields": ["a", "b"]}, "gives one field, the line; fields names 2"),
        ({"format": "text", "types": {"line": int}}, "types is for format='csv'; leave it out with format='text'"),
        ({"format": "text", "delimiter": ";"}, "delimiter is for format='csv'"),
        ({"format": "text", "header": False}, "header is for format='csv'"),
        ({"defaults": {"n": 1}}, "defaults is for format='jsonl'; leave it out with format='csv'"),
        ({"fields": ["n"], "types": {"n": 3}}, r"types\['n'\] is 3, expected a callable"),
        ({"delimiter": '"'}, "delimiter is '\"', expected one ASCII character"),
        ({"encoding": "utf8x"}, "encoding 'utf8x' is not known to Python"),
        (
            {"encoding": "utf-16"},
            "encoding 'utf-16' does not keep ASCII characters as single bytes.* convert the files",
        ),
        ({"encoding": "iso2022_jp"}, "encoding 'iso2022_jp' does not keep"),
        ({"encoding": "cp500"}, "encoding 'cp500' does not keep"),
        (
            {"encoding": "gbk", "delimiter": "|"},
            r"delimiter '\|' is also the second byte of characters in encoding 'gbk'.* convert the files to UTF-8",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFileSpout, match=message):
        FileTransactionalSpout(**{"paths": "a.csv", **arguments})


@pytest.mark.parametrize("encoding", ["gbk", "big5", "shift_jis", "gb18030", "latin-1", "utf-8"])
def test_a_comma_is_a_delimiter_in_every_encoding(encoding: str) -> None:
    FileTransactionalSpout("a.csv", encoding=encoding)


def test_field_names_are_checked_when_declared() -> None:
    with pytest.raises(UnknownField, match=r"named in types: the spout has no field 'm'; its fields are \['n'\]"):
        FileTransactionalSpout("a.csv", ["n"], types={"m": int})
    with pytest.raises(InvalidStream, match="field 'n' is given twice"):
        FileTransactionalSpout("a.csv", ["n", "n"])


def test_a_glob_that_matches_nothing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(FileTransactionalSpout("*.csv", fields=["a"]))
    assert not run.coordinator.is_ready()
    assert not run.coordinator.is_ready()
    assert [record.getMessage() for record in caplog.records] == ["no file matches ['*.csv'] yet"]
