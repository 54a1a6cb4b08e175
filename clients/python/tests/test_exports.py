"""The public names are those that can be imported, and importing the package alone loads none of them."""

import subprocess
import sys

import taskyard


def test_every_public_name_can_be_imported() -> None:
    homes = set(taskyard._HOME) | {"errors", "limits", "presets", "script", "words"}
    assert set(taskyard.__all__) == homes
    assert sorted(taskyard.__all__) == taskyard.__all__
    for name in taskyard.__all__:
        assert getattr(taskyard, name) is not None
    assert set(taskyard.__all__) <= set(dir(taskyard))


def test_the_package_alone_loads_nothing_heavy() -> None:
    program = "import sys, taskyard, taskyard.errors; print('grpc' in sys.modules, 'google' in sys.modules)"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.split() == ["False", "False"]
