"""The words that greet a user once Taskyard is ready: the first command to try, as it works right here."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from taskyard_standalone.settings import UpSettings, default_data_dir

_NEARBY = ".taskyard"


def welcome(
    settings: UpSettings,
    data_dir: Path,
    here: Path,
    gateway: str = "",
    global_tasks: str | None = None,
    console: str | None = None,
) -> str:
    """What to print; `here` is the user's directory, `gateway` serves HTTP, `console` is a sign-in link."""
    command = [*_context(data_dir, here), _program(here), "run", "--", "echo", "hello"]
    lines = ["Ready. In another terminal, try:", f"  {' '.join(command)}"]
    if not settings.runner:
        lines.append("There is no runner on this machine: tasks wait until one connects.")
    if gateway:
        again = " ".join([*command[:-4], "open"])
        if console:
            lines.append(f"Console: {console}")
            lines.append(f"  That link signs one browser in, within five minutes; `{again}` makes another.")
        else:
            lines.append(f"Console: http://{gateway}/, signed in by `{again}`")
        lines.append(f"HTTP and its reference: http://{gateway}/docs")
    if global_tasks:
        lines.append(f"Global tasks without a key: http://{global_tasks}")
        lines.append("  Everything that runs on this machine can use it, tasks of other tenants too.")
    lines.append(f"Logs are in {data_dir / 'logs'}. Ctrl-C stops Taskyard and keeps its data.")
    return "\n".join(lines)


def _program(here: Path) -> str:
    """How to call the command line of this installation, which need not be on the PATH."""
    installed = Path(sys.executable).parent / "taskyard"
    found = shutil.which("taskyard")
    if not installed.exists() or (found and os.path.samefile(found, installed)):
        return "taskyard"
    return shlex.quote(str(installed.relative_to(here) if installed.is_relative_to(here) else installed))


def _context(data_dir: Path, here: Path) -> list[str]:
    """What to put before the command so that it finds this Taskyard; nothing if it does by itself."""
    if data_dir == Path(os.path.expanduser(default_data_dir())):
        return []
    if data_dir.name == _NEARBY:
        return [] if here.is_relative_to(data_dir.parent) else ["cd", shlex.quote(str(data_dir.parent)), "&&"]
    # The command line looks for a directory of this name, here and above.
    return ["ln", "-s", shlex.quote(str(data_dir)), _NEARBY, "&&"]
