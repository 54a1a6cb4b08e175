"""What a leash is for: nothing outlives the program that it holds, or the test that holds it."""

import subprocess
import sys

import psutil

from tests.harness.leash import LEFT_SOMETHING, leashed, tied

# Prints the ids of a child that lost its parent and its session, and of itself.
STRAYS = "setsid sleep 600 & echo $!; echo $$; "


def ended(*pids: int) -> bool:
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=20)
    return not alive


def test_the_exit_code_is_passed_on() -> None:
    assert subprocess.run(leashed("sh", "-c", "exit 7")).returncode == 7
    assert subprocess.run(leashed("sh", "-c", "kill -9 $$")).returncode == 137


def test_processes_left_running_are_ended_and_named() -> None:
    held = subprocess.run(leashed("sh", "-c", STRAYS), capture_output=True, text=True, timeout=60)
    assert held.returncode == LEFT_SOMETHING and "sleep 600" in held.stderr
    assert ended(*map(int, held.stdout.split()))


def test_all_descendants_end_when_the_leash_or_its_parent_is_killed() -> None:
    program = (
        "import subprocess, sys; from tests.harness.leash import leashed;"
        "subprocess.run(leashed('sh', '-c', sys.argv[1]))"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, STRAYS + "sleep 600"], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    pids = [int(holder.stdout.readline()) for _ in range(2)]
    assert all(map(psutil.pid_exists, pids))
    holder.kill()
    holder.wait()
    assert ended(*pids)
    holder.stdout.close()


def test_a_tied_process_keeps_its_id_and_ends_when_its_parent_is_killed() -> None:
    program = "import subprocess, sys; from tests.harness.leash import tied;" + (
        "child = subprocess.Popen(tied('sleep', '600')); print(child.pid, flush=True); child.wait()"
    )
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    pid = int(holder.stdout.readline())
    holder.kill()
    holder.wait()
    assert ended(pid)
    holder.stdout.close()
    assert subprocess.run(tied("sh", "-c", "exit 7")).returncode == 7
