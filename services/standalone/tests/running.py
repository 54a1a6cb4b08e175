"""A real `up` process under test: started as a user, read line by line, signalled, and waited for."""

import contextlib
import json
import os
import pwd
import queue
import select
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

import taskyard_standalone
from taskyard_standalone.account import Account, can_reach

ORDINARY = Account(pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid)
_HERE = Path(__file__).parent
_PATIENCE = 40.0
# SIGINT is ignored at first, as in every background job of a shell script.
_DRIVER = """
import json, signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_IGN)
from taskyard_standalone.programs import Programs
from taskyard_standalone.up import UpSettings, run_up
given = json.loads(sys.argv[1])
given["data_dir"] = Path(given["data_dir"])
given["programs"] = Programs(**{name: tuple(argv) for name, argv in given["programs"].items()})
sys.exit(run_up(UpSettings(**given)))
"""


def python_for(account: Account) -> str:
    """A Python of this version that `account` can execute; skips the test if there is none."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(name, path="/usr/bin:/usr/local/bin")):
        if candidate and can_reach(Path(candidate).resolve().parent, account):
            break
    else:
        pytest.skip(f"no {name} can be executed by an ordinary user")
    if not can_reach(Path(taskyard_standalone.__file__).parent, account):
        pytest.skip("the sources lie below a directory that an ordinary user cannot enter")
    return candidate


def wait_gone(pid: int, seconds: float = _PATIENCE) -> None:
    """Returns once the process has ended; fails the test if it has not in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], seconds)[0], f"process {pid} is still there"
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Answer:
    """How an `up` ended."""

    code: int
    lines: list[str]
    complaints: list[str]


class Up:
    """One running `up`."""

    def __init__(self, process: "subprocess.Popen[str]", data: Path) -> None:
        self.process = process
        self.data = data
        self.lines: list[str] = []
        self._arriving: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, text: str) -> str:
        """The next line that contains `text`; fails the test if `up` ends or stays silent first."""
        while True:
            line = self._arriving.get(timeout=_PATIENCE)
            assert line is not None, f"up ended without {text!r}: {self.lines} {self._complaints()}"
            self.lines.append(line)
            if text in line:
                return line

    def ready(self) -> "Up":
        self.until("Ready.")
        return self

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def answer(self) -> Answer:
        """Waits for the end."""
        code = self.process.wait(_PATIENCE)
        while (line := self._arriving.get(timeout=_PATIENCE)) is not None:
            self.lines.append(line)
        return Answer(code, self.lines, self._complaints())

    def children(self) -> dict[int, str]:
        """Every descendant by process id, with its command line."""
        found = {}
        for child in psutil.Process(self.pid).children(recursive=True):
            # PostgreSQL's workers come and go.
            with contextlib.suppress(psutil.NoSuchProcess):
                found[child.pid] = " ".join(child.cmdline())
        return found

    def postmaster(self) -> int:
        return int((self.data / "postgres" / "postmaster.pid").read_text().split()[0])

    def context(self) -> dict[str, Any]:
        return tomllib.loads((self.data / "context.toml").read_text())

    def url(self) -> str:
        """The embedded database's URL, as `up` printed it."""
        (line,) = [line for line in self.lines if "psql '" in line]
        return line.split("'")[1]

    def sql(self, statement: str) -> list[Any]:
        """Executes on the embedded database as soon as that answers."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _complaints(self) -> list[str]:
        return (self.data.parent / "stderr").read_text().splitlines()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._arriving.put(line.rstrip("\n"))
        self._arriving.put(None)


class UpFactory:
    """Starts `up` with stand-ins for the services, in a directory of its own."""

    def __init__(self, base: Path, account: Account | None, python: str) -> None:
        self.base = base
        self.data = base / "data"
        self.account = account
        self._python = python
        self._started: list[Up] = []
        self._faults = base / "faults"
        self._faults.mkdir()
        self._notes = base / "notes"
        self._notes.touch()
        if account is not None:
            os.chown(self._notes, account.uid, account.gid)

    def __call__(self, **settings: Any) -> Up:
        names = ("taskdb", "scheduler", "runner", "gateway")
        standin = str(_HERE / "standin.py")
        given = {
            "data_dir": str(self.data),
            "taskdb_port": 0,
            "scheduler_port": 0,
            "gateway_port": 0,
            "programs": {name: [self._python, standin, name] for name in names},
            **settings,
        }
        with (self.base / "stderr").open("w") as stderr:
            process = subprocess.Popen(
                [self._python, "-c", _DRIVER, json.dumps(given)],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=self._environment(),
                user=self.account.uid if self.account else None,
                group=self.account.gid if self.account else None,
                extra_groups=[] if self.account else None,
            )
        started = Up(process, Path(given["data_dir"]))
        self._started.append(started)
        return started

    def fault(self, name: str) -> Path:
        """Makes a stand-in misbehave until the returned file is removed."""
        path = self._faults / name
        path.touch()
        return path

    def notes(self, event: str) -> list[tuple[str, int]]:
        """Which service noted `event`, in order, with its process id."""
        lines = [line.split() for line in self._notes.read_text().splitlines()]
        return [(name, int(pid)) for name, what, pid in lines if what == event]

    def close(self) -> None:
        """Kills what still runs, and waits until its PostgreSQL has let go of the directory."""
        for up in self._started:
            children = up.children() if up.process.poll() is None else {}
            up.process.kill()
            up.process.wait()
            for pid in children:
                wait_gone(pid)

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "HOME": str(self.base),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "TASKYARD_STANDIN_NOTES": str(self._notes),
            "TASKYARD_STANDIN_FAULTS": str(self._faults),
        }
