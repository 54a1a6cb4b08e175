"""Environments of the peers, made from their pinned manifests below `.bench-peers/` and used again."""

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CACHE = ROOT / ".bench-peers"


class Missing(Exception):
    """What a peer needs is not on this machine."""


@dataclass(frozen=True)
class Environment:
    """A folder of programs, its manifests, and the commands that install them into a folder of the cache."""

    name: str
    tools: tuple[str, ...]
    manifests: tuple[str, ...]
    sources: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return CACHE / self.name

    def prepare(self) -> None:
        """Install it unless that is done for these manifests. Raises Missing."""
        for tool in self.tools:
            if shutil.which(tool) is None:
                raise Missing(f"{tool} is not installed")
        stamp, digest = self.folder / ".installed", self._digest()
        if stamp.is_file() and stamp.read_text() == digest:
            return
        print(f"  installing {self.name} into {self.folder.relative_to(ROOT)}", flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for command in self._commands():
            try:
                subprocess.run(command, check=True, cwd=self.folder, capture_output=True, text=True)
            except subprocess.CalledProcessError as error:
                lines = (error.stderr.strip() or error.stdout.strip() or "no output").splitlines()
                raise Missing(f"`{' '.join(command[:3])}` failed: {lines[-1]}") from error
        stamp.write_text(digest)

    def _digest(self) -> str:
        digest = hashlib.sha256(sys.version.encode())
        for name in (*self.manifests, *self.sources):
            digest.update((HERE / self.name / name).read_bytes())
        return digest.hexdigest()

    def _commands(self) -> list[list[str]]:
        source = HERE / self.name
        if self.name == "river":
            return [["go", "build", "-C", str(source), "-o", str(self.folder / "peer"), "."]]
        if self.name == "node":
            for name in self.manifests:
                shutil.copy(source / name, self.folder)
            return [["npm", "ci", "--no-audit", "--no-fund"]]
        uv = str(Path(sys.executable).with_name("uv"))
        requirements = str(source / "requirements.lock")
        return [
            [uv, "venv", "--python", sys.executable, "--clear", "."],
            [uv, "pip", "install", "--python", "bin/python", "--no-deps", "-r", requirements],
        ]


RIVER = Environment("river", ("go",), ("go.mod", "go.sum"), ("main.go",))
NODE = Environment("node", ("node", "npm"), ("package.json", "package-lock.json"))
PYTHON = Environment("python", (), ("requirements.lock",))


def node_command(program: str) -> list[str]:
    """A program of node/, which finds its packages beside itself only."""
    for name in (program, "protocol.mjs"):
        shutil.copy(HERE / "node" / name, NODE.folder)
    return ["node", str(NODE.folder / program)]


def python_command(program: str) -> list[str]:
    """A program of python/."""
    return [str(PYTHON.folder / "bin" / "python"), str(HERE / "python" / program)]


def river_command() -> list[str]:
    """The program of river/."""
    return [str(RIVER.folder / "peer")]
