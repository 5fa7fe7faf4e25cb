"""Files are written whole or not at all, by whoever writes them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading

import pytest

from karnet._util.atomic_file import check_writable, whole_file
from karnet.cli import _console
from karnet.paper import figures
from karnet.paper.store import Store, write_csv


def fill(path, error):
    with whole_file(path) as unfinished:
        unfinished.write_text("half")
        raise error


def test_an_error_names_the_file_that_was_asked_for_and_nothing_else(tmp_path):
    path = tmp_path / "out.txt"
    with pytest.raises(OSError, match="No space left") as raised:
        fill(path, OSError(errno.ENOSPC, "No space left on device"))
    assert str(raised.value) == f"[Errno {errno.ENOSPC}] No space left on device: '{path}'"
    with pytest.raises(FileNotFoundError, match=r"No such file.*other"):
        fill(path, FileNotFoundError(errno.ENOENT, "No such file", "other"))
    assert not list(tmp_path.iterdir())


def test_the_longest_name_that_a_folder_takes_can_be_written(tmp_path):
    path = tmp_path / ("ß" * 127)
    with whole_file(path) as unfinished:
        unfinished.write_text("whole")
    assert path.read_text() == "whole"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
def test_a_device_or_a_pipe_is_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="Not an ordinary file"), whole_file(pipe) as unfinished:
        unfinished.write_text("new")
    assert pipe.is_fifo()
    with pytest.raises(ValueError, match="is not an ordinary file: name one to write"):
        check_writable(pipe)


def test_two_tables_written_to_one_name_at_once_are_both_whole(tmp_path):
    path, both = tmp_path / "t.csv", threading.Barrier(2)

    def rows(kind):
        yield [kind, 0]
        both.wait(10)
        yield from ([kind, k] for k in range(1, 1000))
        both.wait(10)

    threads = [
        threading.Thread(target=write_csv, args=(path, ["kind", "k"], rows(kind))) for kind in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kinds, *_ = zip(*(line.split(",") for line in path.read_text().split()[1:]), strict=True)
    assert len(kinds) == 1000
    assert len(set(kinds)) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_a_table_that_cannot_be_finished_leaves_the_old_one(tmp_path):
    path = tmp_path / "t.csv"
    write_csv(path, ["k"], [[1]])
    with pytest.raises(ZeroDivisionError):
        write_csv(path, ["k"], ([1 / k] for k in (2, 1, 0)))
    assert path.read_text().split() == ["k", "1"]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_figure_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    figure = figures.Figure()
    figures.save(figure, tmp_path, "f")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["f.png", "f.svg"]
    draw = figures.Figure.savefig

    def half(self, target, **options):
        draw(self, target, **options)
        if options.get("format") == "png":
            target.write_bytes(target.read_bytes()[:100])
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(figures.Figure, "savefig", half)
    with pytest.raises(OSError, match=r"No space left on device.*f\.png"):
        figures.save(figure, tmp_path, "f")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_sqlite_says_is_one_sentence_about_the_file(tmp_path):
    path = tmp_path / "results.sqlite"
    path.write_bytes(b"no data base, but long enough to be looked at" * 10)
    with pytest.raises(OSError, match=r"results\.sqlite cannot be used: file is not a database\.$"):
        Store(path, "a")
    path.unlink()
    with Store(path, "a") as store:
        store.add_command("first")
        store._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(OSError, match="cannot be used: attempt to write a readonly database"):
            store.add_command("second")
        assert store.commands() == ["first"]
    with pytest.raises(OSError, match="cannot be used"):
        Store(tmp_path / "none" / "results.sqlite", "a")


def said_by(work, capsys):
    """Return the exit code of a command that works like this, and what it said."""
    import typer

    with pytest.raises(typer.Exit) as end:
        _console.sentences(work)()
    return end.value.exit_code, capsys.readouterr().err


def test_errors_of_the_system_are_sentences_without_numbers(tmp_path, capsys):
    path = tmp_path / "none" / "x"
    assert said_by(lambda: path.write_text(""), capsys) == (
        2,
        f"karnet: {path}: No such file or directory.\n",
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_results_that_standard_output_does_not_take_are_an_error():
    line = "from karnet.cli import main; main(['datasets'])"
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", line], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (ended.returncode, ended.stderr) == (2, "karnet: No space left on device.\n")
