"""What Prometheus scrapes from real services: the documented families, with their types and labels."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from taskyard import Client, Phase, command
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.processes import Service, free_port

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

# The leader reads its gauges every 15 s; the rest is for a busy machine.
GAUGE_SECONDS = 90.0
PAGE = Path(__file__).parents[2] / "docs/reference/metrics.md"
REQUIRED = {
    "taskyard_rpc_duration_seconds",
    "taskyard_taskdb_queue_depth",
    "taskyard_taskdb_queue_oldest_wait_seconds",
    "taskyard_taskdb_tasks_created_total",
    "taskyard_taskdb_runs_started_total",
    "taskyard_taskdb_tasks_ended_total",
    "taskyard_taskdb_tasks_retried_total",
    "taskyard_taskdb_runners",
    "taskyard_taskdb_pool_connections",
    "taskyard_taskdb_database_writable",
    "taskyard_taskdb_database_size_bytes",
    "taskyard_taskdb_leader",
    "taskyard_taskdb_job_age_seconds",
    "taskyard_scheduler_sessions",
    "taskyard_scheduler_claim_duration_seconds",
    "taskyard_runner_runs_ended_total",
    "taskyard_gateway_connections",
    "taskyard_gateway_request_duration_seconds",
}


def metrics_flag() -> tuple[str, str]:
    return "--metrics-listen", f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(
        postgres_server, migrated_template, taskdb_flags=metrics_flag(), scheduler_flags=metrics_flag()
    ) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(plane: ControlPlane) -> Iterator[Service]:
    port = free_port()
    flags: tuple[str, ...] = ("serve", "--listen", f"127.0.0.1:{port}", "--taskdb", plane.taskdbs[0].address)
    flags += ("--scheduler", plane.schedulers[0].address, *metrics_flag())
    service = Service("taskyard_gateway", flags, port, plane.folder / "gateway.log")
    yield service.start(wait=False)
    service.stop()


@pytest.fixture(scope="module")
def runner(plane: ControlPlane) -> Iterator[Service]:
    flags: tuple[str, ...] = (
        "--scheduler",
        plane.schedulers[0].address,
        "--id",
        "worker-1",
        "--kind",
        "command",
    )
    flags += ("--sandbox", "none", "--data-dir", str(plane.folder / "worker-1"), *metrics_flag())
    service = Service(
        "taskyard_runner", flags, 0, plane.folder / "runner.log", {"TASKYARD_KEY": plane.keys["runner"]}
    )
    yield service.start(wait=False)
    service.stop()


def endpoint(service: Service) -> str:
    return service.arguments[service.arguments.index("--metrics-listen") + 1]


def read(url: str) -> str:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return str(response.read().decode())
        except OSError:
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def pages(plane: ControlPlane, gateway: Service, runner: Service) -> dict[str, str]:
    """A scrape of each service, after it has done something and the leader has measured."""

    async def work() -> None:
        async with Client(plane.taskdbs[0].address, key=plane.keys["tenant"], tenant="default") as client:
            done = await client.wait(await client.create(command("true")), timeout=60)
            assert done.phase is Phase.SUCCEEDED
            failing = command("sh", "-c", "exit 1", retry=1)
            assert (await client.wait(await client.create(failing), timeout=60)).phase is not Phase.SUCCEEDED
            await client.create(command("true", runner_labels={"zone": "nowhere"}))

    asyncio.run(work())
    assert '"SERVING"' in read(f"http://{gateway.address}/ready") and read(f"http://{gateway.address}/live")
    services = {"taskdb": plane.taskdbs[0], "scheduler": plane.schedulers[0]}
    services |= {"gateway": gateway, "runner": runner}
    deadline = time.monotonic() + GAUGE_SECONDS
    while True:
        found = {name: read(f"http://{endpoint(service)}/metrics") for name, service in services.items()}
        if "taskyard_taskdb_queue_depth{" in found["taskdb"] and "tasks_retried_total" in found["taskdb"]:
            return found
        assert time.monotonic() < deadline, found["taskdb"]
        time.sleep(0.5)


class Documented(NamedTuple):
    """A row of the page."""

    kind: str
    labels: frozenset[str]


def documented() -> dict[str, Documented]:
    """What docs/reference/metrics.md promises, by the name in the scrape."""
    rows = re.findall(r"^\| `(\w+)` \| `[\w.]+` \| (\w+) \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    return {name: Documented(kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def families(page: str) -> dict[str, Family]:
    found = {}
    for family in text_string_to_metric_families(page):
        if family.name.startswith("taskyard_"):
            found[f"{family.name}_total" if family.type == "counter" else family.name] = family
    return found


@pytest.mark.timeout(240)
def test_the_scrape_has_the_documented_names_types_and_labels(pages: dict[str, str]) -> None:
    known = documented()
    seen: set[str] = set()
    for service, page in pages.items():
        for name, family in families(page).items():
            assert name in known, f"{service} reports {name}, which docs/reference/metrics.md does not list"
            assert family.type == known[name].kind, f"{name} is a {family.type}"
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            extra = {label for label in labels if not label.startswith("otel_scope")} - known[name].labels
            assert not extra, f"{name} has the undocumented labels {extra}"
            seen.add(name)
    assert seen >= REQUIRED, f"missing: {sorted(REQUIRED - seen)}"


@pytest.mark.timeout(240)
def test_the_scrape_counts_what_happened(pages: dict[str, str]) -> None:
    def total(name: str, **labels: str) -> float:
        family = families(pages["taskdb"])[name]
        samples = [each for each in family.samples if labels.items() <= each.labels.items()]
        return sum(each.value for each in samples if not each.name.endswith("_created"))

    assert total("taskyard_taskdb_tasks_ended_total", outcome="succeeded") >= 1
    assert total("taskyard_taskdb_tasks_retried_total") == 1
    assert total("taskyard_taskdb_runs_started_total") >= 3
    assert total("taskyard_taskdb_queue_depth", tenant="default") == 1
    assert total("taskyard_taskdb_runners", state="healthy") == 1
    assert total("taskyard_taskdb_database_writable") == 1 == total("taskyard_taskdb_leader")


@pytest.mark.timeout(240)
def test_every_histogram_has_buckets_that_fit_its_unit(pages: dict[str, str]) -> None:
    found = {name: each for page in pages.values() for name, each in families(page).items()}
    histograms = {name: each for name, each in found.items() if each.type == "histogram"}
    assert len(histograms) >= 3
    for name, family in histograms.items():
        bounds = sorted({float(each.labels["le"]) for each in family.samples if "le" in each.labels})
        assert name.endswith("_seconds") and bounds[0] <= 0.01 and bounds[-2] >= 60, f"{name}: {bounds}"


@pytest.mark.timeout(240)
def test_promtool_accepts_the_scrape(pages: dict[str, str]) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    for service, page in pages.items():
        own = "".join(line + "\n" for line in page.splitlines() if "taskyard_" in line)
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=own, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, f"{service}: {checked.stdout}{checked.stderr}"
