"""A real gateway in front of a real taskdb and scheduler, for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.gateway import GatewayService, gateway_service
from tests.harness.postgres import PostgresServer


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayService]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    service = gateway_service(plane.taskdbs[0].address, plane.schedulers[0].address, folder)
    try:
        service.start()
        yield service
    finally:
        service.stop()
        print(service.log_text())
