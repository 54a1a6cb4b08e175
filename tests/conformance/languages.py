"""The languages of the kit: how a driver is built, and the command that runs it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Language:
    """One language; commands run in the checkout. `probes` succeed where its toolchain is installed."""

    name: str
    command: tuple[str, ...]
    probes: tuple[tuple[str, ...], ...] = ()
    build: tuple[tuple[str, ...], ...] = ()

    def missing(self) -> str:
        """The probe that fails, empty if the toolchain is there."""
        return next((" ".join(probe) for probe in self.probes if not _succeeds(probe)), "")

    def prepare(self) -> None:
        """Build the driver; raises CalledProcessError."""
        for step in self.build:
            subprocess.run(step, cwd=ROOT, check=True)


def _succeeds(command: tuple[str, ...]) -> bool:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0
    except OSError:
        return False


LANGUAGES = (
    Language("python", (sys.executable, str(ROOT / "tests/conformance/python_driver.py"))),
    Language(
        "go",
        (str(ROOT / "clients/go/build/conformance-driver"),),
        probes=(("go", "-C", "clients/go", "list", "-deps", "./cmd/conformance-driver"),),
        build=(
            ("go", "-C", "clients/go", "build", "-o", "build/conformance-driver", "./cmd/conformance-driver"),
        ),
    ),
    Language(
        "typescript",
        ("node", str(ROOT / "clients/typescript/dist/conformance/driver.js")),
        probes=(("npm", "--version"),),
        build=(
            (
                "sh",
                "-ec",
                "cd clients/typescript; test node_modules/.package-lock.json -nt package-lock.json"
                " || npm ci --no-audit --no-fund --loglevel=error; npm run build --silent",
            ),
        ),
    ),
    Language(
        "java",
        (str(ROOT / "clients/java/conformance.sh"),),
        probes=(("mvn", "--version"), ("javac", "--version")),
        build=(("make", "-C", "clients/java", "build"),),
    ),
    Language(
        "rust",
        (str(ROOT / "clients/rust/target/debug/examples/conformance_driver"),),
        probes=(("cargo", "--version"),),
        build=(
            (
                *("cargo", "build", "-q", "--locked", "-j1", "--manifest-path", "clients/rust/Cargo.toml"),
                *("--example", "conformance_driver"),
            ),
        ),
    ),
)
