"""The same functions in a test, in its own process and without a runner."""

from worker import app

from taskyard_runner.functions.testing import run


def test_greet() -> None:
    assert run(app, "greet", {"name": "Ada"}).result == "Hello, Ada!"


def test_a_payload_that_does_not_fit_fails_for_good() -> None:
    failure = run(app, "greet", {"nmae": "Ada"}).failure
    assert failure is not None and failure.permanent
    assert failure.message == "InvalidPayload: payload.nmae is unknown; the function takes name, greeting"


def test_busy_bank_is_retried() -> None:
    order = {"id": "o-1", "amount": 9.5}
    first = run(app, "charge", order)
    assert first.failure is not None and first.failure.retry_after == 0.2
    assert run(app, "charge", order, attempt=2).result["receipt"] == "o-1/2"


def test_hashing_goes_on_where_it_was_stopped() -> None:
    whole = run(app, "hash", {"text": "x", "rounds": 500})
    assert [told.percent for told in whole.progress] == [50, 100]
    stopped = run(app, "hash", {"text": "x", "rounds": 500}, stop="pause")
    assert stopped.stopped and stopped.checkpoints[-1]["done"] == 1
    again = run(app, "hash", {"text": "x", "rounds": 500}, checkpoint=stopped.checkpoints[-1])
    assert again.result == whole.result


def test_campaign_greets_each_name_once() -> None:
    told = run(app, "campaign", {"names": ["Ada", "Grace"]})
    assert told.result == 2
    assert [child["execution"] for child in told.children] == [{"function": {"function": "greet"}}] * 2
