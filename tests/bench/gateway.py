"""What HTTP costs: the same reads by gRPC (ghz) and through the gateway (wrk); pushed global updates."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from taskyard_taskdb.storage.migrate import upgrade
from tests.bench.measure import Figure, Report, median
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.gateway import GatewayService, call, gateway_service
from tests.harness.postgres import PostgresServer, migrated_template

NAME = "tenants/default/tasks/bench"
CONNECTIONS = 16
PUSHERS = 50
PUSHED_TASKS = 500
PUSHING = """
local ids = {%s}
local n = 0
function request()
  n = n + 1
  local data = '","status":"in_progress","task_status_data":{"n":' .. n .. '}}'
  local body = '{"task_id":"' .. ids[math.random(#ids)] .. data
  return wrk.format("POST", "/task_update", wrk.headers, body)
end
"""
COMMAND = {"spec": {"execution": {"command": {"program": "true"}}}}


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Rate at 16 connections, and the median time of a call on one connection alone."""
    missing = [name for name in ("wrk", "ghz") if _program(name) is None]
    if missing:
        install = "apt install wrk; go install github.com/bojand/ghz/cmd/ghz@latest"
        print(f"gateway: {' and '.join(missing)} not found ({install}); left out")
        return
    with (
        migrated_template(server, upgrade) as template,
        control_plane(server, template) as plane,
        tempfile.TemporaryDirectory() as folder,
    ):
        flags = ("--no-access-log",)
        gateway = gateway_service(plane.taskdbs[0].address, plane.schedulers[0].address, Path(folder), *flags)
        gateway.start()
        try:
            await asyncio.to_thread(_measure, plane, gateway, report, Path(folder), 1 if quick else 8)
            await asyncio.to_thread(_push, plane, gateway, report, Path(folder), 5 if quick else 60)
        finally:
            gateway.stop()


def _measure(plane: ControlPlane, gateway: GatewayService, report: Report, folder: Path, runs: int) -> None:
    key = plane.keys["tenant"]
    made = call(gateway, "POST", "/v1/tenants/default/tasks?task_id=bench", COMMAND, key=key)
    assert made.status == 200, made
    seconds = 2 if runs == 1 else 5
    address = plane.taskdbs[0].address
    rates: dict[str, list[float]] = {"grpc": [], "http": []}
    times: dict[str, list[float]] = {"grpc": [], "http": []}
    for _ in range(runs):
        rates["grpc"].append(_grpc(address, key, folder, CONNECTIONS, seconds)[0])
        rates["http"].append(_http(gateway, key, CONNECTIONS, seconds)[0])
        times["grpc"].append(_grpc(address, key, folder, 1, seconds)[1])
        times["http"].append(_http(gateway, key, 1, seconds)[1])
    direct, through = median(rates["grpc"]), median(rates["http"])
    report.add(Figure("GetTask by gRPC, 16 connections", direct, "calls/s", tuple(rates["grpc"])))
    report.add(
        Figure(
            "GetTask by HTTP, 16 connections",
            through,
            "calls/s",
            tuple(rates["http"]),
            through / direct,
            "gRPC",
            ">= 0.6",
            through >= 0.6 * direct,
        )
    )
    added = median(times["http"]) - median(times["grpc"])
    report.add(
        Figure("GetTask by gRPC, p50 on one connection", median(times["grpc"]), "ms", tuple(times["grpc"]))
    )
    report.add(
        Figure(
            "added by the gateway to p50", added, "ms", tuple(times["http"]), goal="<= 1.0", met=added <= 1.0
        )
    )


def _program(name: str) -> str | None:
    """A program of the PATH, or one that `go install` has made."""
    return shutil.which(name) or shutil.which(str(Path.home() / "go" / "bin" / name))


def _grpc(address: str, key: str, folder: Path, connections: int, seconds: int) -> tuple[float, float]:
    """Calls per second, and the median time in milliseconds."""
    contract = folder / "contract.binpb"
    if not contract.exists():
        build = [str(Path(sys.executable).with_name("buf")), "build", "protos", "-o", str(contract)]
        subprocess.run(build, check=True)
    ghz = _program("ghz")
    assert ghz is not None
    load = ["-c", str(connections), "--connections", str(connections), "-z", f"{seconds}s"]
    call = ["--call", "taskyard.v1.TaskService.GetTask", "-d", json.dumps({"name": NAME})]
    caller = ["-m", json.dumps({"authorization": f"Bearer {key}"})]
    ended = ["--duration-stop", "wait", "--format", "json"]
    command = [ghz, "--insecure", "--protoset", str(contract), *call, *caller, *load, *ended, address]
    printed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert set(printed["statusCodeDistribution"]) == {"OK"}, printed["statusCodeDistribution"]
    (half,) = [each["latency"] for each in printed["latencyDistribution"] if each["percentage"] == 50]
    return float(printed["rps"]), half / 1e6


def _http(gateway: GatewayService, key: str, connections: int, seconds: int) -> tuple[float, float]:
    url = f"http://{gateway.address}/v1/{NAME}"
    limits = ["-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--latency"]
    printed = subprocess.run(
        ["wrk", *limits, "-H", f"Authorization: Bearer {key}", url],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    assert found is not None and "Non-2xx" not in printed, printed
    return float(found[1]), _percentile(printed, 50)


def _push(plane: ControlPlane, gateway: GatewayService, report: Report, folder: Path, seconds: int) -> None:
    """Updates pushed by 50 callers: their rate, the time to accept one, and how many wait to be applied."""
    key = plane.keys["tenant"]
    ids = [call(gateway, "POST", "/task", {}, key=key).json["task_id"] for _ in range(PUSHED_TASKS)]
    script = folder / "push.lua"
    script.write_text(PUSHING % ",".join(f'"{each}"' for each in ids))
    headers = ["-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json"]
    limits = ["-t", "1", "-c", str(PUSHERS), "-d", f"{seconds}s", "--latency", "-s", str(script)]
    command = ["wrk", *limits, *headers, f"http://{gateway.address}"]
    largest = 0
    with (
        psycopg.connect(plane.url, autocommit=True) as connection,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        while process.poll() is None:
            largest = max(largest, _waiting(connection))
            time.sleep(0.2)
        ended = time.monotonic()
        while _waiting(connection):
            time.sleep(0.02)
        drained = time.monotonic() - ended
        assert process.stdout is not None
        printed = process.stdout.read()
    rate = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    assert rate is not None and "Non-2xx" not in printed, printed
    report.add(
        Figure("global updates accepted", float(rate[1]), "1/s", goal=">= 2,000", met=float(rate[1]) >= 2000)
    )
    report.add(Figure("time to accept an update, p50", _percentile(printed, 50), "ms"))
    report.add(Figure("time to accept an update, p99", _percentile(printed, 99), "ms"))
    report.add(Figure("updates that waited to be applied, most", largest, ""))
    report.add(Figure("backlog applied after the load", drained * 1000, "ms"))


def _waiting(connection: psycopg.Connection[tuple[int]]) -> int:
    row = connection.execute("SELECT count(*) FROM inbox").fetchone()
    assert row is not None
    return row[0]


def _percentile(printed: str, percent: int) -> float:
    found = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s)", printed)
    assert found is not None, printed
    return float(found[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[found[2]]
