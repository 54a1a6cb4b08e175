"""One trace leads from the client through every service into the task's own environment."""

import subprocess

from tests.acceptance.otlp_receiver import receiving
from tests.acceptance.suite import BIN, client_environment, running_suite

SERVICES = {"test-client", "taskyard-taskdb", "taskyard-scheduler", "taskyard-runner"}

PROGRAM = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from taskyard import SyncClient, command

provider = TracerProvider(resource=Resource.create({"service.name": "test-client"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
with SyncClient() as client, trace.get_tracer("test").start_as_current_span("submit") as span:
    task = client.create(command("printenv", "TRACEPARENT"))
    client.wait(task, timeout=30)
    print(format(span.get_span_context().trace_id, "032x"))
    print([line.message for line in client.logs(task)][0])
provider.shutdown()
"""


def test_one_trace_from_the_client_to_the_task() -> None:
    with receiving() as (receiver, endpoint):
        exporting = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "200"}
        with running_suite(**exporting) as suite:
            ended = subprocess.run(
                [BIN / "python", "-c", PROGRAM],
                cwd=suite.folder,
                env={**client_environment(), **exporting},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert ended.returncode == 0, ended.stderr + suite.logs()
            trace, traceparent = ended.stdout.split()
            assert traceparent.split("-")[1] == trace
            assert receiver.wait_for_services(trace, SERVICES, 20) >= SERVICES
