"""The base of the kit must load without the packages of the extras."""

from __future__ import annotations

import subprocess
import sys

BASE = (
    "auth",
    "failpoint",
    "keys",
    "logs",
    "metrics",
    "metric_names",
    "options",
    "run",
    "settings",
    "shutdown",
)

PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"opentelemetry", "protovalidate", "grpc_health", "grpc_reflection",
                                  "prometheus_client", "psycopg", "sqlalchemy"}:
            raise ImportError(name)

sys.meta_path.insert(0, Refuse())
"""


def test_the_base_loads_without_the_extras_and_telemetry_does_nothing() -> None:
    program = PROGRAM + "".join(f"import taskyard_kit.{name}\n" for name in BASE)
    program += """
from taskyard_kit import metric_names, metrics, telemetry
from taskyard_kit.telemetry import TelemetrySettings, span
class Settings(TelemetrySettings):
    service = "light"
telemetry.configure(Settings())
metrics.instrument(metric_names.RPC_DURATION).add(1, {})
with span("work", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01", task="t1"):
    print(telemetry.current_traceparent())
print(next(iter(Settings(metrics_listen="127.0.0.1:1").check())))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    passed_on, problem = done.stdout.splitlines()
    assert passed_on == "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    assert problem == (
        "metrics_listen = '127.0.0.1:1': needs OpenTelemetry; "
        "install the extra taskyard-kit[telemetry] or leave it empty"
    )
