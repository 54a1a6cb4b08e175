"""Tests of the functions in the test process, without a runner."""

from worker import app

from taskyard_runner.functions.testing import run


def test_greet() -> None:
    assert run(app, "greet", {"name": "Ada"}).result == "Hello, Ada!"


def test_invalid_payload_fails_permanently() -> None:
    failure = run(app, "greet", {"nmae": "Ada"}).failure
    assert failure is not None and failure.permanent
    assert failure.message == "InvalidPayload: payload.nmae is unknown; the function takes name, greeting"


def test_busy_bank_is_retried() -> None:
    order = {"id": "o-1", "amount": 9.5}
    first = run(app, "charge", order)
    assert first.failure is not None and first.failure.retry_after == 0.2
    assert run(app, "charge", order, attempt=2).result["receipt"] == "o-1/2"


def test_hashing_resumes_from_its_checkpoint() -> None:
    whole = run(app, "hash", {"text": "x", "rounds": 500})
    assert [progress.percent for progress in whole.progress] == [50, 100]
    stopped = run(app, "hash", {"text": "x", "rounds": 500}, stop="pause")
    assert stopped.stopped and stopped.checkpoints[-1]["done"] == 1
    resumed = run(app, "hash", {"text": "x", "rounds": 500}, checkpoint=stopped.checkpoints[-1])
    assert resumed.result == whole.result


def test_chorus_waits_for_every_greeting() -> None:
    outcome = run(app, "chorus", {"names": ["Ada", "Grace"]})
    assert outcome.result == "Hello, Ada! Hello, Grace!"
    assert (len(outcome.children), outcome.waits) == (2, 1)


def test_chorus_fails_with_the_greeting_that_failed() -> None:
    outcome = run(app, "chorus", {"names": ["Ada", "Grace"]}, child_results={"Grace": ValueError("hoarse")})
    assert outcome.failure is not None and outcome.failure.code == "CHILD_FAILED"
    assert "ValueError: hoarse" in outcome.failure.message and outcome.failure.permanent


def test_campaign_greets_each_name_once() -> None:
    outcome = run(app, "campaign", {"names": ["Ada", "Grace"]})
    assert outcome.result == 2
    assert [child["execution"] for child in outcome.children] == [{"function": {"function": "greet"}}] * 2
