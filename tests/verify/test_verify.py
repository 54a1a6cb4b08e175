"""`make verify` fails for each kind of damage that it checks, and names the fix."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ["LICENSE", "buf.gen.yaml", "buf.yaml", "clients", "protos", "pyproject.toml", "requirements.lock"]
COPIED += ["services", "third_party", "tools"]
TASK_PROTO = "protos/taskyard/v1/task.proto"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the checks read, free to be damaged."""
    ignored = shutil.ignore_patterns("__pycache__", "tests", "node_modules", ".*")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def verify(checkout: Path, check: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/verify.py", "--root", str(checkout), check]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text()
    after = change(before)
    assert after != before, f"the damage does not apply to {path}"
    path.write_text(after)


def assert_turns_red(checkout: Path, check: str, damage: Callable[[], None], says: str, fix: str) -> None:
    healthy = verify(checkout, check)
    assert healthy.returncode == 0, healthy.stdout
    damage()
    damaged = verify(checkout, check)
    assert damaged.returncode == 1, damaged.stdout
    assert says in damaged.stdout
    assert fix in damaged.stdout.splitlines()[-1]


def test_lint_error_in_a_proto_is_found(checkout: Path) -> None:
    def damage() -> None:
        bad = "\n// Lower case, which STANDARD refuses.\nmessage bad_name {}\n"
        edit(checkout / TASK_PROTO, lambda text: text + bad)

    assert_turns_red(checkout, "proto-lint", damage, "bad_name", "edit the protos")


def test_breaking_change_is_found(checkout: Path) -> None:
    def damage() -> None:
        first_field = re.compile(r"^(message Task \{.*?) = \d+", re.MULTILINE | re.DOTALL)
        edit(checkout / TASK_PROTO, lambda text: first_field.sub(r"\1 = 9000", text, count=1))

    assert_turns_red(checkout, "proto-breaking", damage, 'on message "Task" was deleted', "make image")


def test_stale_stub_is_found(checkout: Path) -> None:
    def damage() -> None:
        new = "\n// A message without generated stubs.\nmessage Stale {}\n"
        edit(checkout / TASK_PROTO, lambda text: text + new)

    stale = "stale: clients/python/src/taskyard/v1/task_pb2.py"
    assert_turns_red(checkout, "stubs", damage, stale, "make generate")


def test_stub_that_no_proto_explains_is_found(checkout: Path) -> None:
    orphan = "clients/python/src/taskyard/v1/orphan_pb2.py"

    def damage() -> None:
        (checkout / orphan).write_text("")

    assert_turns_red(checkout, "stubs", damage, f"not generated from any proto: {orphan}", "make generate")


def test_language_without_its_tools_is_named_and_skipped(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "no-tools"
    tools.mkdir()
    command = [sys.executable, "tools/generate.py", "--check", "--root", str(checkout), "python", "go"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PATH": str(tools)})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("go: skipped, `go -C clients/go tool")
    assert "install Go" in ended.stdout


def plain_protoc(*arguments: str) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-Iprotos", "-Ithird_party", *arguments]
    files = [str(path.relative_to(ROOT / "protos")) for path in (ROOT / "protos").rglob("*.proto")]
    ended = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_plain_protoc_generates_python(tmp_path: Path) -> None:
    """Without buf: two import paths and no option are enough."""
    plain_protoc(f"--python_out={tmp_path}")
    assert (tmp_path / "taskyard/v1/task_pb2.py").is_file()


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
@pytest.mark.timeout(600)
def test_the_page_on_other_languages_generates_go(tmp_path: Path) -> None:
    """Its command and its buf template, with the plugins of clients/go."""
    text = (ROOT / "docs/howto/other-languages.md").read_text()
    (command,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (template,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    for name in (
        "google.golang.org/protobuf/cmd/protoc-gen-go",
        "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
    ):
        build = ["go", "-C", "clients/go", "build", "-o", f"{tmp_path}/", name]
        subprocess.run(build, cwd=ROOT, check=True)
    protoc = tmp_path / "protoc"
    protoc.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m grpc_tools.protoc "$@"\n')
    protoc.chmod(0o755)
    (tmp_path / "template.yaml").write_text(template)
    generate = f'buf generate --template "{tmp_path}/template.yaml" -o "{tmp_path}/with-buf"'
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = command.replace("=out", f"={tmp_path}") + generate
    ended = subprocess.run(
        ["sh", "-ec", script], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    plain = (tmp_path / "taskyard.dev/go/taskyard/v1/task.pb.go").read_text()
    assert "buf/validate" in plain
    slim = (tmp_path / "with-buf/out/taskyard.dev/go/taskyard/v1/task.pb.go").read_text()
    assert "buf/validate" not in slim


def test_every_proto_names_its_package_of_go_and_java() -> None:
    for path in (ROOT / "protos").rglob("*.proto"):
        folder = path.parent.relative_to(ROOT / "protos").as_posix()
        assert f'option go_package = "taskyard.dev/go/{folder};' in path.read_text(), path
        assert f'option java_package = "dev.{folder.replace("/", ".")}";' in path.read_text(), path


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("services/taskdb/src/taskyard_taskdb/domain/intruder.py", "psycopg"),
        ("services/taskdb/src/taskyard_taskdb/storage/intruder.py", "taskyard.v1.task_pb2"),
        ("services/taskdb/src/taskyard_taskdb/watch/intruder.py", "grpc"),
        ("services/scheduler/src/taskyard_scheduler/intruder.py", "taskyard_taskdb"),
        ("services/runner/src/taskyard_runner/intruder.py", "sqlalchemy"),
        ("services/runner/src/taskyard_runner/warden/intruder.py", "taskyard_kit"),
    ],
)
def test_forbidden_import_is_found(checkout: Path, module: str, imported: str) -> None:
    intruder = checkout / module

    def damage() -> None:
        intruder.parent.mkdir(exist_ok=True)
        (intruder.parent / "__init__.py").touch()
        intruder.write_text(f"import {imported}\n")

    name = ".".join(intruder.relative_to(checkout).with_suffix("").parts[3:])
    assert_turns_red(checkout, "imports", damage, name, "import from a layer that may")


def test_lock_older_than_the_requirements_is_found(checkout: Path) -> None:
    def damage() -> None:
        edit(checkout / "pyproject.toml", lambda text: text.replace('"uv>=', '"left-pad>=1",\n    "uv>='))

    assert_turns_red(checkout, "lock", damage, "other requirements", "make lock")


def test_host_in_the_lock_is_found(checkout: Path) -> None:
    def damage() -> None:
        edit(checkout / "requirements.lock", lambda text: f"--index-url https://index.invalid/simple\n{text}")

    assert_turns_red(checkout, "tree", damage, "requirements.lock:1: names a host", "edit the files")


def test_package_of_another_version_is_found(checkout: Path) -> None:
    def damage() -> None:
        path = checkout / "services/kit/pyproject.toml"
        edit(path, lambda text: text.replace('version = "', 'version = "9.', 1))

    assert_turns_red(checkout, "tree", damage, "services/kit/pyproject.toml: version is 9.", "edit the files")


def test_a_page_of_the_reference_that_is_stale_is_found(checkout: Path) -> None:
    shutil.copytree(ROOT / "docs/reference", checkout / "docs/reference")

    def damage() -> None:
        edit(checkout / TASK_PROTO, lambda text: text.replace("// A unit of work:", "// One unit of work:"))

    assert_turns_red(checkout, "reference", damage, "stale: docs/reference/messages.md", "make generate")


@pytest.fixture
def tested(checkout: Path) -> Path:
    """A copy with the tests of taskdb, whose marks name the compared statements."""
    tests = "services/taskdb/tests"
    shutil.copytree(ROOT / tests, checkout / tests, ignore=shutil.ignore_patterns("__pycache__"))
    return checkout


def test_sql_without_an_equivalence_test_is_found(tested: Path) -> None:
    def damage() -> None:
        path = tested / "services/taskdb/tests/storage/test_sql_equivalence.py"
        edit(
            path, lambda text: text.replace('@pytest.mark.equivalence("claim", "insert_claimed_leases")', "")
        )

    says = "row claim is decided by statement insert_claimed_leases without a test"
    assert_turns_red(tested, "equivalence", damage, says, "write the tests named above")


def test_a_row_that_moves_into_sql_needs_a_test(tested: Path) -> None:
    def damage() -> None:
        path = tested / "services/taskdb/src/taskyard_taskdb/domain/rules/outcome.py"
        edit(path, lambda text: text.replace('"retries used up", act', '"retries used up", sql=("x",), act'))

    assert_turns_red(
        tested, "equivalence", damage, "row exhaust is decided by statement x", "write the tests"
    )


def test_sql_that_changes_leases_past_the_lifecycle_is_found(tested: Path) -> None:
    def damage() -> None:
        folder = tested / "services/taskdb/src/taskyard_taskdb/storage"
        path = next(path for path in sorted(folder.rglob("*.sql")) if "-- name: end_runs" in path.read_text())
        new = "\n-- name: end_all\n-- Locks every lease.\nUPDATE leases SET phase = 3\n"
        edit(path, lambda text: text + new)

    says = "statement end_all writes tasks or leases"
    assert_turns_red(tested, "equivalence", damage, says, "write the tests")
