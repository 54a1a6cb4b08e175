"""Stand-ins for Taskyard's services: they take the same arguments and signals, and note what happened.

`standin.py NAME ...` acts as the service NAME. TASKYARD_STANDIN_NOTES names the file of notes;
TASKYARD_STANDIN_FAULTS a directory where a file NAME.<fault> makes that service misbehave.
"""

import argparse
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NAME = sys.argv[1]
STOPPED = {signal.SIGTERM, signal.SIGINT}


def note(event: str) -> None:
    with open(os.environ["TASKYARD_STANDIN_NOTES"], "a") as file:
        file.write(f"{NAME} {event} {os.getpid()}\n")


def has_fault(fault: str) -> bool:
    return (Path(os.environ["TASKYARD_STANDIN_FAULTS"]) / f"{NAME}.{fault}").exists()


def migrate() -> None:
    if has_fault("migrate"):
        sys.exit("taskyard-taskdb: the schema is newer than this program: install the newer one")
    assert os.environ["TASKYARD_DATABASE_URL"].startswith("postgresql://")
    note("migrated")


def create_keys(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    for name in ("tenant", "suffix"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args(arguments)
    assert given.tenant == "default" and os.environ["TASKYARD_DATABASE_URL"]
    for kind in ("admin", "tenant", "scheduler", "runner"):
        note(f"made-{kind}-key")
        print(f'{kind} = "ty_up{kind}{given.suffix}_secret"')


def serve(arguments: list[str]) -> None:
    import grpc
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc

    parser = argparse.ArgumentParser()
    parser.add_argument("--listen")
    parser.add_argument("--taskdb")
    given, _ = parser.parse_known_args(arguments)
    server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(given.listen)
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    server.start()
    note("started")
    wait_for_stop()
    server.stop(0)


def serve_http(arguments: list[str]) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    parser = argparse.ArgumentParser()
    parser.add_argument("--listen")
    given, _ = parser.parse_known_args(arguments)
    host, _, port = given.listen.rpartition(":")
    server = HTTPServer((host, int(port)), Healthy)
    Thread(target=server.serve_forever, daemon=True).start()
    note("started")
    wait_for_stop()
    server.shutdown()


def wait_for_stop() -> None:
    if has_fault("deaf"):
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPED)
        note("deaf")
        signal.sigwait({signal.SIGUSR1})
    signal.sigwait(STOPPED)
    note("stopped")


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPED)
    fault = {"migrate": "migrate-killed", "keys": "keys-killed"}.get(sys.argv[2], "killed")
    if has_fault(fault):
        (Path(os.environ["TASKYARD_STANDIN_FAULTS"]) / f"{NAME}.{fault}").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if has_fault("crash"):
        sys.exit(f"taskyard-{NAME}: cannot go on")
    match sys.argv[2:]:
        case ["migrate"]:
            migrate()
        case ["keys", "create-set", *arguments]:
            create_keys(arguments)
        case ["serve", *arguments] if NAME == "gateway":
            assert "TASKYARD_KEY" not in os.environ
            serve_http(arguments)
        case ["serve", *arguments]:
            assert NAME != "scheduler" or os.environ["TASKYARD_KEY"].startswith("ty_upscheduler")
            serve(arguments)
        case arguments:
            assert os.environ["TASKYARD_KEY"].startswith("ty_uprunner"), arguments
            assert "TASKYARD_DATABASE_URL" not in os.environ
            note("started")
            while has_fault("waits"):
                time.sleep(0.05)
            print('{"event": "session_opened"}', flush=True)
            wait_for_stop()


main()
