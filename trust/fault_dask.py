"""Faults on Dask: killed workers, restarted schedulers, slow workers, partitions that raise."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from karnet import KARRegressor
from trust.fault_kills import folder
from trust.record import table

M, D, CHUNK = 3000, 6, 100
# Seconds after which a fit counts as hanging.
LIMIT = 90.0
HEADER = ("fault", "seconds", "outcome", "as required", "next fit")


@dataclass(frozen=True)
class Found:
    """The outcome of a fit with a fault, and whether the next fit is correct."""

    name: str
    seconds: float
    outcome: str
    right: bool
    next_is_right: bool

    @property
    def row(self) -> tuple[object, ...]:
        """Return the row of the table."""
        right = ("no", "yes")
        return (
            self.name,
            f"{self.seconds:.1f}",
            self.outcome,
            right[self.right],
            ("wrong", "correct")[self.next_is_right],
        )

    @property
    def wrong(self) -> list[str]:
        """Return the failure, if there was one."""
        return [] if self.right and self.next_is_right else [f"{self.name}: {self.outcome}"]


def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, D))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def network() -> KARRegressor:
    return KARRegressor((20,), hidden="random", alpha=1.0, random_state=0)


def slow_and_noted(block: Any, folder: Any = None, seconds: float = 0.02) -> Any:
    """Return a block after a delay, and record that it was read."""
    if folder is not None:
        time.sleep(seconds)
        Path(folder, f"{time.monotonic_ns()}-{os.getpid()}").touch()
    return block


def slow_on_one(block: Any, folder: Any = None) -> Any:
    """Return a block, after a long delay on the first worker that asked for one."""
    if folder is not None:
        first = Path(folder, "first")
        if not first.exists():
            first.write_text(str(os.getpid()))
        time.sleep(0.5 if first.read_text() == str(os.getpid()) else 0.0)
    return block


def raises(block: Any, folder: Any = None) -> Any:
    """Fail on one block in the second pass over it."""
    if folder is not None:
        note = Path(folder, str(abs(hash(block.tobytes()))))
        if note.exists():
            raise OSError("the disk with this partition\nis gone")
        if block[0, 0] == rows()[0][1500, 0]:
            note.touch()
    return block


def collections(read: Callable[..., Any], where: Path, **options: Any) -> tuple[Any, Any]:
    """Return rows as Dask arrays whose blocks are read by a function in every pass."""
    X, y = rows()
    blocks = da.from_array(X, chunks=(CHUNK, -1))
    read_blocks = blocks.map_blocks(read, folder=str(where), meta=X[:0], **options)
    return read_blocks, da.from_array(y, chunks=CHUNK)


@contextmanager
def cluster() -> Iterator[Client]:
    """Provide a client with two workers."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


def same(net: Any) -> bool:
    """Return whether the network equals the one fitted in memory, bit for bit."""
    expected = network().fit(*rows())
    return net.layers_ == expected.layers_ and all(map(np.array_equal, net.coefs_, expected.coefs_))


def attempt(
    name: str,
    client: Client,
    collected: tuple[Any, Any],
    fault: Callable[[], None],
    next_client: Callable[[], Client] | None = None,
) -> Found:
    """Return the outcome of a fit during which a fault occurs."""
    net, errors = network(), []

    def fit() -> None:
        try:
            with client.as_current():
                net.fit(*collected)
        except BaseException as error:
            errors.append(error)

    start = time.monotonic()
    fitting = threading.Thread(target=fit, daemon=True)
    fitting.start()
    fault()
    fitting.join(LIMIT)
    seconds = time.monotonic() - start
    if fitting.is_alive():
        return Found(name, seconds, f"hangs after {LIMIT:.0f} s", False, False)
    if errors:
        outcome = _message(errors[0])
        right = _is_sentence(errors[0]) and not hasattr(net, "coefs_")
    else:
        right = same(net)
        outcome = "the same network, bit for bit" if right else "another network"
    return Found(name, seconds, outcome, right, _next(next_client() if next_client else client))


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", "\\n").replace("|", "/")


def _is_sentence(error: BaseException) -> bool:
    message = str(error)
    return isinstance(error, (RuntimeError, ValueError)) and "\n" not in message and message != ""


def _next(client: Client) -> bool:
    """Return whether a fit without a fault is correct."""
    X, y = rows()
    with client.as_current():
        net = network().fit(da.from_array(X, chunks=(500, -1)), da.from_array(y, chunks=500))
    return same(net)


def wait_for(where: Path, n: int) -> None:
    """Wait until n blocks have been read."""
    end = time.monotonic() + LIMIT
    while len(os.listdir(where)) < n:
        if time.monotonic() > end:
            raise TimeoutError(f"only {len(os.listdir(where))} of {n} blocks were read")
        time.sleep(0.005)


def _pids(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


def killing(client: Client, where: Path, n_workers: int) -> Callable[[], None]:
    """Return a function that kills workers in the second pass."""
    pids = _pids(client)[:n_workers]

    def kill() -> None:
        wait_for(where, int(1.5 * M / CHUNK))
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    return kill


def restarting(client: Client, where: Path) -> Callable[[], None]:
    """Return a function that restarts the scheduler and all workers in the second pass."""

    def restart() -> None:
        wait_for(where, int(1.5 * M / CHUNK))
        client.restart(timeout=LIMIT)

    return restart


def on_cluster(name: str) -> Found:
    """Return the outcome of one fault on a cluster of two workers."""
    read = {"a worker is slow": slow_on_one, "a partition raises": raises}
    with cluster() as client, folder() as where:
        faults = {
            "a worker is killed": killing(client, where, 1),
            "all workers are killed": killing(client, where, 2),
            "the cluster is restarted": restarting(client, where),
        }
        collected = collections(read.get(name, slow_and_noted), where)
        return attempt(name, client, collected, faults.get(name, lambda: None))


ON_CLUSTER = (
    "a worker is killed",
    "all workers are killed",
    "a worker is slow",
    "a partition raises",
    "the cluster is restarted",
)


class OwnScheduler:
    """A scheduler and two workers in separate processes, so that the scheduler can be killed."""

    def __init__(self, where: Path, port: int) -> None:
        self.where, self.port = where, port
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", port)
        self.workers = self.two_workers()

    def two_workers(self) -> list[subprocess.Popen[bytes]]:
        return [self.start("worker", self.address, "--nthreads", 1) for _ in range(2)]

    def start(self, kind: str, *options: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", kind, *map(str, options), "--no-dashboard"]
        # The new process imports from the same folders as this one.
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        with (self.where / "log.txt").open("a") as log:
            return subprocess.Popen(command, cwd=self.where, env=env, stdout=log, stderr=log)

    def client(self) -> Client:
        client = Client(self.address, set_as_default=False, timeout=LIMIT)
        client.wait_for_workers(2, timeout=LIMIT)
        return client

    def restart(self) -> None:
        """Kill the scheduler and start another one with its own workers."""
        self.scheduler.kill()
        self.scheduler.wait()
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", self.port)
        self.workers += self.two_workers()

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.terminate()
        for process in (*self.workers, self.scheduler):
            process.wait()


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


def without_scheduler() -> Found:
    """Return the outcome if the scheduler is killed and replaced."""
    with folder() as where, folder() as notes:
        own = OwnScheduler(where, free_port())
        try:
            client = own.client()

            def kill() -> None:
                wait_for(notes, int(1.5 * M / CHUNK))
                own.restart()

            collected = collections(slow_and_noted, notes)
            found = attempt(
                "the scheduler is killed, and another started", client, collected, kill, own.client
            )
            client.close(timeout=1)
            return found
        finally:
            own.stop()


def shown(found: list[Found]) -> str:
    """Return the table of the outcomes."""
    return table(HEADER, [each.row for each in found])
