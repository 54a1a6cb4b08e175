"""Task types that carry the rules of systems Taskyard replaces, as files for `taskyard apply --preset`."""

from pathlib import Path

ABOUT = {
    "aiopslab": "AIOpsLab: problems solved by workers of Kind clusters",
    "agent-functions": "a planning agent: six functions of planners and workers",
    "niyanta": "Niyanta: workloads with checkpoints, redistributed and archived",
    "global-tasks": "Global tasks DB: work that modules do and report themselves",
    "solti": "solti: commands, containers and modules in slots",
}
PAGES = {
    "aiopslab": "coming-from-aiopslab",
    "agent-functions": "coming-from-agent-functions",
    "niyanta": "coming-from-niyanta",
    "global-tasks": "global-tasks",
    "solti": "coming-from-solti",
}
NAMES = tuple(ABOUT)


def path(name: str) -> Path:
    """The file of a preset; raises ValueError for an unknown name."""
    if name not in NAMES:
        raise ValueError(f"{name!r} is no preset; there are {', '.join(NAMES)}")
    return Path(__file__).with_name(f"{name}.yaml")
