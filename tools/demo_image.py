"""Writes the files of a container image with one small program that prints hello, for the demo."""

import platform
import sys
from pathlib import Path

from taskyard_runner.executors.container import static_program

HELLO = b"hello from a container\n"
# write(1, HELLO, length), exit(0); the text follows the instructions.
_PROGRAMS = {
    "x86_64": (62, "b801000000 bf01000000 488d3510000000 ba{length:02x}000000 0f05 31ff b83c000000 0f05"),
    "aarch64": (183, "200080d2 e1000010 e20280d2 080880d2 010000d4 000080d2 a80b80d2 010000d4"),
}


def main(folder: Path) -> None:
    """Makes the root file system."""
    for name in ("bin", "dev", "etc", "proc", "run", "sys", "tmp"):
        (folder / name).mkdir(parents=True)
    machine, code = _PROGRAMS[platform.machine()]
    program = folder / "bin/hello"
    program.write_bytes(static_program(machine, bytes.fromhex(code.format(length=len(HELLO))) + HELLO))
    for path in (folder.parent, folder, program.parent, program):
        path.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
