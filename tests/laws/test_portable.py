"""The source runs on Linux, macOS and Windows: other calls stand behind a guard."""

from __future__ import annotations

import ast
import io
import os

import pytest

from karnet._util import atomic_file, environment
from karnet.cli import write_utf8
from tests.laws.test_imports import every_module

# Modules, and members of modules, that some systems lack.
MODULES = {"fcntl", "grp", "msvcrt", "posix", "pty", "pwd", "resource", "termios", "tty", "winreg"}
MEMBERS = {
    "mmap": {"MADV_DONTNEED", "MAP_PRIVATE", "MAP_SHARED", "PROT_READ", "PROT_WRITE"},
    "os": {
        *(
            "chown",
            "fork",
            "forkpty",
            "getegid",
            "geteuid",
            "getgid",
            "getloadavg",
            "getuid",
            "kill",
        ),
        *("killpg", "mkfifo", "nice", "openpty", "pipe2", "posix_fadvise", "register_at_fork"),
        *("sched_getaffinity", "sched_setaffinity", "setsid", "statvfs", "symlink", "sysconf"),
        *("uname", "wait", "waitpid"),
    },
    "signal": {
        *("SIGALRM", "SIGHUP", "SIGKILL", "SIGTERM", "SIGUSR1", "SIGUSR2", "alarm", "pthread_kill"),
        *("setitimer", "sigwait"),
    },
}
FOLDERS = ("/tmp", "/proc", "/dev", "/etc", "/sys", "/var", "C:\\")
# Parts of the condition of an `if` that make it a guard, and errors that a guard handles.
CONDITIONS = {"hasattr", "os.name", "sys.platform"}
ERRORS = {"AttributeError", "ImportError", "ModuleNotFoundError", "OSError"}


def is_guard(node):
    """Return whether a statement handles a system that lacks what it uses."""
    if isinstance(node, ast.If | ast.IfExp):
        return bool({ast.unparse(each) for each in ast.walk(node.test)} & CONDITIONS)
    if isinstance(node, ast.Try):
        caught = {getattr(n, "id", "") for each in node.handlers for n in ast.walk(each)}
        return bool(caught & ERRORS)
    return False


def not_portable(node):
    """Return the name in a node that some systems lack, or an empty string."""
    if isinstance(node, ast.Import):
        return next((each.name for each in node.names if each.name in MODULES), "")
    if isinstance(node, ast.ImportFrom):
        found = {each.name for each in node.names} & MEMBERS.get(node.module or "", set())
        return node.module if node.module in MODULES else next(iter(found), "")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.attr in MEMBERS.get(node.value.id, ()) else ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
        return node.value if node.value.startswith(FOLDERS) else ""
    return ""


def text_without_form(node):
    """Return whether a call opens text without its encoding, or writes it without line ends."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    named = {each.arg for each in node.keywords}
    if name in ("read_text", "write_text") and isinstance(node.func, ast.Attribute):
        return not ({"encoding"} | ({"newline"} if name == "write_text" else set())) <= named
    modes = node.args[1:2] if isinstance(node.func, ast.Name) else node.args[:1]
    if name != "open" or (modes and not isinstance(modes[0], ast.Constant)):
        return False  # `gzip.open(path)` and `archive.open(name)` are binary
    mode = str(modes[0].value) if modes else "r"
    needed = {"encoding"} if "r" in mode else {"encoding", "newline"}
    return "b" not in mode and not needed <= named


def violations(text):
    """Yield a line for every use of a name without a guard, and for text without its form."""
    tree = ast.parse(text)
    docstrings = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    nodes = [(tree, False)]
    while nodes:
        node, guarded = nodes.pop()
        name = "" if guarded or id(node) in docstrings else not_portable(node)
        if name or text_without_form(node):
            yield f"line {node.lineno}: {name or 'text without encoding or newline'}"
        guarded = guarded or is_guard(node)
        nodes += [(each, guarded) for each in ast.iter_child_nodes(node)]


@every_module
def test_the_source_is_portable(path):
    assert list(violations(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("import os\nos.fork()", 1),
        ("from os import fork", 1),
        ("import resource", 1),
        ("x = '/tmp/x'", 1),
        ("if name:\n    os.fork()", 1),
        ("if hasattr(os, 'fork'):\n    os.fork()", 0),
        ("try:\n    os.sysconf('x')\nexcept AttributeError:\n    pass", 0),
        ("try:\n    os.sysconf('x')\nfinally:\n    pass", 1),
        ("path.read_text()\nopen('a')\npath.open('w', encoding='utf-8')", 3),
        ("path.read_text(encoding='utf-8')\nopen('a', 'rb')\ngzip.open(path)", 0),
    ],
)
def test_the_law_finds_what_is_not_portable(text, n):
    assert len(list(violations(text))) == n


def test_a_file_that_is_open_elsewhere_is_replaced_when_it_is_free(tmp_path, monkeypatch):
    path, left, replace = tmp_path / "x.txt", [3], os.replace

    def locked(*paths):
        if left[0]:
            left[0] -= 1
            raise PermissionError(13, "used by another process")
        replace(*paths)

    monkeypatch.setattr(atomic_file.os, "replace", locked)
    monkeypatch.setattr(atomic_file, "sleep", lambda seconds: None)
    monkeypatch.setattr(atomic_file.os, "name", "nt")
    new = tmp_path / "new"
    new.write_text("new", encoding="utf-8")
    atomic_file._replace(new, path)
    monkeypatch.undo()
    assert path.read_text(encoding="utf-8") == "new"


def test_the_memory_is_known_or_assumed(monkeypatch):
    assert environment.memory() > 2**28
    monkeypatch.delattr(environment.os, "sysconf", raising=False)
    monkeypatch.setattr("sys.platform", "plan9")
    assert environment.memory() == 2**33


def test_redirected_output_is_utf_8_with_the_line_ends_of_other_systems():
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="cp1252", newline="\r\n")
    write_utf8(stream)
    stream.write("R² → 日\n")
    stream.flush()
    assert written.getvalue() == "R² → 日\n".encode()
