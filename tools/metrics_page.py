"""Writes docs/reference/metrics.md from the metric_names modules, or with --check compares it."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

from taskyard_kit.metric_names import Metric

PAGE = "docs/reference/metrics.md"
MODULES = {
    "every gRPC service": "taskyard_kit.metric_names",
    "taskdb": "taskyard_taskdb.metric_names",
    "scheduler": "taskyard_scheduler.metric_names",
    "runner": "taskyard_runner.agent.metric_names",
    "gateway": "taskyard_gateway.metric_names",
}
_UNITS = {"s": "seconds", "By": "bytes"}
HEADER = """\
# Metrics

Each service serves its metrics to Prometheus with `--metrics-listen HOST:PORT`, at `/metrics`;
`taskyard up --metrics` serves those of all services on 9420 to 9424. The same go to an OTLP collector with
`OTEL_EXPORTER_OTLP_ENDPOINT`, under the names with dots. A histogram `x` has the series `x_bucket`, `x_sum`
and `x_count`.

Beside `/metrics` are `/ready` (200 or 503: whether the service can do its work) and `/live` (200 as long as
the process runs).

taskdb's leader alone reports what describes the whole suite (queue, runners, jobs, webhooks, standbys, size);
counters of tasks grow on the replica that counts them, so add them up over all replicas.
"""
TITLES = "| Prometheus | OpenTelemetry | kind | labels | meaning |\n|---|---|---|---|---|"


def prometheus_name(metric: Metric) -> str:
    """The name of a metric's family in the scrape."""
    name = metric.name.replace(".", "_")
    unit = _UNITS.get(metric.unit, "")
    if unit:
        name += f"_{unit}"
    return f"{name}_total" if metric.kind == "counter" else name


def metrics_of(module: str) -> list[Metric]:
    """The metrics that a module declares, by name."""
    found = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Metric)]
    return sorted(found, key=lambda metric: metric.name)


def lines() -> Iterator[str]:
    """The page."""
    yield HEADER
    for service, module in MODULES.items():
        yield f"## {service}\n\n{TITLES}"
        for metric in metrics_of(module):
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            kind = "gauge" if metric.kind == "updown" else metric.kind
            yield f"| `{prometheus_name(metric)}` | `{metric.name}` | {kind} | {labels} | {metric.about} |"
        yield ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout")
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args()
    page, text = arguments.root / PAGE, "\n".join(lines()).rstrip() + "\n"
    if not arguments.check:
        page.write_text(text)
        return 0
    if page.exists() and page.read_text() == text:
        return 0
    print(f"{PAGE} differs from the metric_names modules")
    return 1


if __name__ == "__main__":
    sys.exit(main())
