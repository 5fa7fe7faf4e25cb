"""Processes that are forked with all modules loaded, and in which a fault occurs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Bytes that a process may print before they are read.
PIPE = 2**20
# Seconds after which a process counts as hanging.
LIMIT = 120.0
# Flags with which a file is opened for writing.
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass
class Run:
    """Work for a forked process, and the fault that occurs in it.

    Attributes
    ----------
    work : callable
        Raises `SystemExit` for an exit code other than 0.
    fault : callable, optional
        Called in the process before the work.
    moment : float, optional
        Seconds until the signal is sent.
    signal : int
        The signal.
    about : any
        Anything by which the caller recognises the run.
    """

    work: Callable[[], None]
    fault: Callable[[], None] | None = None
    moment: float | None = None
    signal: int = signal.SIGKILL
    about: Any = None


@dataclass
class Ended:
    """How a process ended: its exit code or signal, its output and its duration."""

    run: Run
    code: int | None
    killed: int | None
    out: str
    err: str
    seconds: float
    # From the signal to the end.
    latency: float | None

    @property
    def message(self) -> str:
        """Return the only line on standard error, or no text if there are more."""
        lines = self.err.strip().splitlines()
        return lines[0] if len(lines) == 1 else ""


@dataclass
class _Child:
    run: Run
    pid: int
    pipes: tuple[int, int]
    start: float = field(default_factory=time.monotonic)
    signalled: float | None = None


def _start(run: Run) -> _Child:
    sys.stdout.flush()
    sys.stderr.flush()
    (out, to_out), (err, to_err) = os.pipe(), os.pipe()
    with warnings.catch_warnings():
        # Newer versions of Python warn about threads, which the child does not inherit.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        os.dup2(to_out, 1)
        os.dup2(to_err, 2)
        os.setpgid(0, 0)
        _work(run)
    for pipe in (to_out, to_err):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)
        os.close(pipe)
    return _Child(run, pid, (out, err))


def _work(run: Run) -> None:
    """Do the work and end the process without exit handlers."""
    code: Any = 0
    try:
        if run.fault is not None:
            run.fault()
        run.work()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else 1)


def _read(pipe: int) -> str:
    """Return the contents of a pipe, whose other end may still be open."""
    os.set_blocking(pipe, False)
    parts = []
    with contextlib.suppress(BlockingIOError):
        while part := os.read(pipe, PIPE):
            parts.append(part)
    os.close(pipe)
    return b"".join(parts).decode(errors="replace")


def _look(child: _Child) -> Ended | None:
    """Send a signal that is due, and return how the process ended, or None if it runs."""
    now = time.monotonic()
    moment = child.run.moment
    if moment is not None and child.signalled is None and now - child.start >= moment:
        os.kill(child.pid, child.run.signal)
        child.signalled = time.monotonic()
    if now - child.start > LIMIT:
        os.kill(child.pid, signal.SIGKILL)
        raise TimeoutError(f"{child.run.about} hangs: {_read(child.pipes[1])}")
    pid, status = os.waitpid(child.pid, os.WNOHANG)
    if not pid:
        return None
    end = time.monotonic()
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    out, err = map(_read, child.pipes)
    latency = None if child.signalled is None else end - child.signalled
    return Ended(child.run, code, killed, out, err, end - child.start, latency)


def run_all(runs: Iterable[Run], at_once: int = 2) -> Iterator[Ended]:
    """Yield how runs end; at most `at_once` run at the same time."""
    waiting, live = iter(runs), []
    more = True
    try:
        while live or more:
            while more and len(live) < at_once:
                run = next(waiting, None)
                more = run is not None
                if run is not None:
                    live.append(_start(run))
            for child in list(live):
                ended = _look(child)
                if ended is not None:
                    live.remove(child)
                    yield ended
            time.sleep(0.003)
    finally:
        for child in live:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)


def run_one(work: Callable[[], None], **options: Any) -> Ended:
    """Return how one run ends."""
    (ended,) = run_all([Run(work, **options)])
    return ended


# Faults


def no_room_above(n_bytes: int) -> None:
    """Limit the size of files: writing more is an error, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def killed_at_byte(n_bytes: int) -> None:
    """Let the system kill this process in the middle of a write, after `n_bytes`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def at_each_step_of_writing(folder: Path, step: Callable[[], None]) -> None:
    """Call `step` whenever a file of a folder is opened to write, flushed, moved or removed."""
    inside = os.path.realpath(folder)

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(path, (str, os.PathLike)) and flags & WRITES:
                of_folder(path)
        elif event in ("os.rename", "os.remove", "os.mkdir", "sqlite3.connect"):
            of_folder(args[0])

    def of_folder(path: Any) -> None:
        if isinstance(path, (str, os.PathLike)) and os.path.realpath(path).startswith(inside):
            step()

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **options: Any) -> Any:
            step()
            found = function(*args, **options)
            step()
            return found

        return stepped

    os.fsync, os.replace = around(os.fsync), around(os.replace)
    sys.addaudithook(audit)


def killed_at_step(folder: Path, number: int) -> None:
    """Kill this process at the `number`-th step of writing."""
    left = number

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    at_each_step_of_writing(folder, step)
