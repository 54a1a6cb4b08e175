"""The languages that stubs are generated for: their command, their plugins and the files they own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Files = dict[Path, bytes]
OUT = "{out}"
# Retries and deadlines, which every client reads.
SERVICE_CONFIG = Path("clients/python/src/taskyard/service_config.json")


@dataclass(frozen=True)
class Language:
    """One language of the contract.

    `command` writes below the folder OUT. `owned` are files below `source`, and directories there that hold
    generated files only. Each command of `probes` must succeed for the plugins to run; `remedy` installs what
    is missing.
    """

    name: str
    command: tuple[str, ...]
    source: Path
    owned: tuple[Path, ...]
    probes: tuple[tuple[str, ...], ...] = ()
    remedy: str = ""
    # Files of the checkout that its client carries a copy of, by the place of the copy below `source`.
    copies: Mapping[Path, Path] = field(default_factory=dict)
    finish: Callable[[Files], Files] = field(default=lambda files: files)


def template(path: str) -> tuple[str, ...]:
    """Return the command that generates by a buf template."""
    return ("buf", "generate", "--template", path, "-o", OUT)


def template_and_service_config(path: str, folder: str) -> tuple[str, ...]:
    """Return the command that generates by a buf template and puts the service config into a folder."""
    config = "clients/python/src/taskyard/service_config.json"
    return (
        "sh",
        "-ec",
        f"buf generate --template {path} -o {OUT}; cp {config} {OUT}/{folder}/service_config.json",
    )


def finish_python(files: Files) -> Files:
    """Drop stubs without a module and add the package markers."""
    # mypy-protobuf writes a _pb2_grpc.pyi for protos without a service too; those have no module.
    stubs = {path: content for path, content in files.items() if path.with_suffix(".py") in files}
    return stubs | {folder / "__init__.py": package_marker(folder) for folder in python_packages(stubs)}


def python_packages(stubs: Files) -> set[Path]:
    """Return the folders that become regular packages; `buf` stays a namespace that others may share."""
    folders = {parent for path in stubs for parent in path.parents}
    return {folder for folder in folders if len(folder.parts) > 1 and folder.parts[0] == "taskyard"}


def package_marker(folder: Path) -> bytes:
    return f'"""Generated stubs of protos/{folder.as_posix()}; `make generate` writes them."""\n'.encode()


LANGUAGES = (
    Language(
        "python",
        template("buf.gen.yaml"),
        Path("clients/python/src"),
        (Path("taskyard/v1"), Path("taskyard/compat"), Path("buf")),
        finish=finish_python,
    ),
    # Served by reflection: the descriptors of the stubs carry no comments.
    Language(
        "reflection",
        (
            *("buf", "build", "--path", "protos/taskyard", "--exclude-imports", "--as-file-descriptor-set"),
            *("-o", f"{OUT}/services/kit/src/taskyard_kit/contract.binpb"),
        ),
        Path("services/kit/src/taskyard_kit"),
        (Path("contract.binpb"),),
    ),
    Language(
        "go",
        template("clients/go/buf.gen.yaml"),
        Path("clients/go"),
        (Path("taskyard"), Path("service_config.json")),
        copies={Path("service_config.json"): SERVICE_CONFIG},
        probes=(("go", "-C", "clients/go", "tool", "-n", "protoc-gen-go"),),
        remedy="install Go and run `go -C clients/go mod download`",
    ),
    Language(
        "typescript",
        template_and_service_config("clients/typescript/buf.gen.yaml", "clients/typescript/src"),
        Path("clients/typescript/src"),
        (Path("gen"), Path("service_config.json")),
        probes=(("node", "clients/typescript/node_modules/.bin/protoc-gen-es", "--version"),),
        remedy="install Node 20 and run `npm --prefix clients/typescript ci`",
    ),
    Language(
        "java",
        template_and_service_config("clients/java/buf.gen.yaml", "clients/java/src/generated"),
        Path("clients/java/src/generated"),
        (Path("java"), Path("service_config.json")),
        probes=(
            ("clients/java/target/tools/protoc", "--version"),
            ("test", "-x", "clients/java/target/tools/protoc-gen-grpc-java"),
        ),
        remedy="install Java 17 and Maven and run `make -C clients/java tools`",
    ),
    # The plugin of prost is a library: a small program calls it with the descriptors.
    Language(
        "rust",
        (
            "sh",
            "-ec",
            f"set={OUT}/contract.binpb; folder={OUT}/clients/rust/src/stubs;"
            " buf build --path protos/taskyard/v1 --path third_party/google/rpc"
            " --exclude-path protos/taskyard/v1/lease_service.proto"
            " --exclude-path protos/taskyard/v1/session_service.proto"
            " --exclude-path protos/taskyard/v1/runner_link_service.proto"
            " --as-file-descriptor-set -o $set;"
            " clients/rust/target/debug/taskyard-codegen $set $folder;"
            " rm -f $folder/buf.validate.rs $folder/google.api.rs $folder/google.protobuf.rs;"
            " cp clients/python/src/taskyard/service_config.json $folder/",
        ),
        Path("clients/rust/src/stubs"),
        (Path("taskyard.v1.rs"), Path("google.rpc.rs"), Path("service_config.json")),
        probes=(("test", "-x", "clients/rust/target/debug/taskyard-codegen"),),
        remedy="install Rust and run `cargo build -p taskyard-codegen` in clients/rust",
    ),
)
