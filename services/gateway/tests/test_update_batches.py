"""Updates of concurrent requests share calls to taskdb, and each request has its own answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from google.rpc.status_pb2 import Status

from services.gateway.tests.echo import echo_server
from services.gateway.tests.mirror import mirror_of
from taskyard.compat.v1 import global_task_service_pb2 as pb
from taskyard_gateway.update_batches import BATCH, SINGLE
from tests.harness.control_plane import ControlPlane
from tests.harness.gateway import Answered, GatewayService, call

CALLERS = 40


def _at_once(gateway: GatewayService, requests: list[tuple[dict[str, Any], str]]) -> list[Answered]:
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(lambda r: call(gateway, "POST", "/task_update", r[0], key=r[1]), requests))


def test_each_of_many_requests_at_once_has_its_own_answer(
    plane: ControlPlane, gateway: GatewayService
) -> None:
    key = plane.keys["tenant"]
    tasks = [call(gateway, "POST", "/task", {}, key=key).json["task_id"] for _ in range(3)]
    bodies: list[tuple[dict[str, Any], int]] = []
    for number in range(CALLERS):
        stored = {"task_id": tasks[number % 3], "status": "in_progress", "task_status_data": {"n": number}}
        bodies += [
            (stored, 200),
            ({**stored, "task_id": "missing"}, 404),
            ({**stored, "status": "done"}, 400),
        ]
    answers = _at_once(gateway, [(body, key) for body, _ in bodies])
    assert [answer.status for answer in answers] == [status for _, status in bodies]
    assert all(answer.json == {} for answer in answers if answer.status == 200)
    details = {answer.json["details"][0]["reason"] for answer in answers if answer.status != 200}
    assert details == {"NOT_FOUND", "FIELD_INVALID"}


def test_a_key_never_travels_with_the_updates_of_another(
    plane: ControlPlane, gateway: GatewayService
) -> None:
    key = plane.keys["tenant"]
    task = call(gateway, "POST", "/task", {}, key=key).json["task_id"]
    update = {"task_id": task, "status": "in_progress"}
    answers = _at_once(gateway, [(update, key if n % 2 else "ty_wrong") for n in range(CALLERS)])
    assert [answer.status for answer in answers] == [401, 200] * (CALLERS // 2)


def test_answers_that_do_not_fit_the_updates_are_an_error_of_every_request(tmp_path: Path) -> None:
    with echo_server() as echo, mirror_of(echo, tmp_path) as gateway:
        # As many as one batch has none of.
        response = pb.PushGlobalTaskUpdatesResponse(results=[Status()] * 1000)
        echo.answers = {BATCH: [response.SerializeToString()], SINGLE: [b""]}
        update = {"task_id": "t", "status": "completed"}
        answers = _at_once(gateway, [(update, "k")] * CALLERS)
        assert {answer.status for answer in answers} == {200, 500}, answers
        assert BATCH in echo.asked
