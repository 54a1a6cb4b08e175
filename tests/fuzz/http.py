"""Schemathesis against a gateway in front of the real servers, with a tenant's and an administrator's key.

It fails for a server error, for a status or content type that the OpenAPI document does not have, and for an
answer that its schema does not describe.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from taskyard_taskdb.storage.migrate import upgrade
from tests.harness.control_plane import control_plane
from tests.harness.gateway import gateway_service
from tests.harness.postgres import migrated_template, postgres_server

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "ignored_auth",
)
# A watch has no end, and a claim waits for one.
ENDLESS = ":(watch|claim)$"


def command(url: str, key: str, examples: int, seed: int) -> list[str]:
    program = Path(sys.executable).with_name("schemathesis")
    flags = [
        "--checks",
        ",".join(CHECKS),
        "--phases",
        "examples,coverage,fuzzing",
        "--exclude-path-regex",
        ENDLESS,
    ]
    flags += [
        "--max-examples",
        str(examples),
        "--seed",
        str(seed),
        "--header",
        f"Authorization: Bearer {key}",
    ]
    flags += ["--request-timeout", "30", "--suppress-health-check", "all", "--warnings", "off", "--no-shrink"]
    return [str(program), "run", f"{url}/openapi.json", "--url", url, *flags]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10, help="generated requests for each path and key")
    parser.add_argument("--seed", type=int, default=1, help="what is generated")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="taskyard-fuzz-") as folder,
        postgres_server(Path(folder)) as server,
        migrated_template(server, upgrade) as template,
        control_plane(server, template) as plane,
    ):
        Path(folder).chmod(0o755)
        gateway = gateway_service(plane.taskdbs[0].address, plane.schedulers[0].address, Path(folder))
        gateway.start()
        try:
            codes = [
                subprocess.run(
                    command(f"http://{gateway.address}", plane.keys[kind], given.examples, given.seed)
                ).returncode
                for kind in ("tenant", "admin")
            ]
        finally:
            gateway.stop()
        print(gateway.log_text() if any(codes) else "")
        return max(codes)


if __name__ == "__main__":
    sys.exit(main())
