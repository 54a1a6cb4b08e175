"""The tree of errors, and each of them over google.rpc.Status and back."""

from __future__ import annotations

import ast
import dataclasses
import pickle
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2 as details
from google.rpc.status_pb2 import Status

from taskyard import errors
from taskyard.errors import BY_REASON, Code, FieldViolation, TaskyardError
from taskyard.status import (
    DETAILS_KEY,
    GRPC_CODE,
    PUSHBACK_KEY,
    from_rpc_error,
    from_status,
    to_status,
    trailing_metadata,
)
from taskyard.v1 import errors_pb2


def sample(cls: type[TaskyardError]) -> TaskyardError:
    """An error of this class with a distinct value in every field."""
    data: dict[str, Any] = {}
    for number, field in enumerate(dataclasses.fields(cls), start=7):
        if field.name == "violations":
            data[field.name] = (
                FieldViolation("task.spec.priority", "must be at most 9, not 99", "int32.lte"),
            )
        elif field.name not in ("message", "retry_after", "extra"):
            data[field.name] = number if field.type == "int" else f"{field.name}-value"
    return cls(**data, retry_after=timedelta(milliseconds=1500))


def over_the_wire(error: TaskyardError) -> TaskyardError:
    """The error as a client sees it that got the bytes of its status."""
    return from_status(Status.FromString(to_status(error).SerializeToString()))


every_reason = pytest.mark.parametrize("cls", BY_REASON.values(), ids=lambda cls: cls.reason)


@every_reason
def test_errors_round_trip_over_the_wire(cls: type[TaskyardError]) -> None:
    sent = sample(cls)
    got = over_the_wire(sent)
    assert type(got) is cls
    assert (got.code, got.reason, got.message) == (sent.code, sent.reason, sent.message)
    assert (got.data, got.retry_after) == (sent.data, sent.retry_after)
    assert not got.extra


@every_reason
def test_error_message_includes_every_field(cls: type[TaskyardError]) -> None:
    error = sample(cls)
    hidden = {"rule", "size", "limit"} if isinstance(error, errors.InvalidArgument) else set()
    named = [f.name for f in dataclasses.fields(cls) if f"{{{f.name}}}" in cls.sentence]
    assert named or isinstance(error, errors.InvalidArgument | errors.ServerDraining)
    for name in set(named) - hidden:
        assert str(getattr(error, name)) in error.message


@every_reason
def test_the_status_carries_the_standard_details_of_its_code(cls: type[TaskyardError]) -> None:
    expected: Any = {
        Code.INVALID_ARGUMENT: details.BadRequest,
        Code.NOT_FOUND: details.ResourceInfo,
        Code.ALREADY_EXISTS: details.ResourceInfo,
        Code.RESOURCE_EXHAUSTED: details.QuotaFailure,
        Code.FAILED_PRECONDITION: details.PreconditionFailure,
    }.get(cls.code)
    found = {any_.TypeName() for any_ in to_status(sample(cls)).details}
    wanted = {"google.rpc.ErrorInfo", "google.rpc.RetryInfo"}
    assert found == wanted | ({expected.DESCRIPTOR.full_name} if expected else set())


@every_reason
def test_errors_survive_pickling(cls: type[TaskyardError]) -> None:
    sent = sample(cls)
    got = pickle.loads(pickle.dumps(sent))
    assert (type(got), got.data, str(got)) == (cls, sent.data, str(sent))


def test_every_reason_of_the_contract_has_a_class_and_every_class_a_reason() -> None:
    names = set(errors_pb2.ErrorReason.DESCRIPTOR.values_by_name) - {"ERROR_REASON_UNSPECIFIED"}
    assert set(BY_REASON) == {name.removeprefix("ERROR_REASON_") for name in names}


def test_the_tree_at_the_top_of_the_module_is_the_tree() -> None:
    drawn = re.findall(r"^\s*(?:│\s*)?(?:[├└]── )?([A-Z][A-Za-z]+)\b(?=\s{2,}|$)", errors.__doc__ or "", re.M)
    declared: list[str] = []

    def walk(cls: type[TaskyardError]) -> None:
        declared.append(cls.__name__)
        for sub in cls.__subclasses__():
            walk(sub)

    walk(TaskyardError)
    assert sorted(drawn) == sorted(declared)


def test_codes_are_those_of_grpc() -> None:
    assert {code.name: code.value for code in Code} == {c.name: c.value[0] for c in grpc.StatusCode}
    assert set(GRPC_CODE) == set(Code)


def test_domain_code_may_import_the_module_because_it_needs_the_standard_library_only() -> None:
    tree = ast.parse(Path(errors.__file__).read_text())
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert {str(name).split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_unknown_reason_maps_to_its_code_and_keeps_its_data() -> None:
    status = Status(code=Code.FAILED_PRECONDITION, message="the moon is full")
    status.details.add().Pack(
        details.ErrorInfo(reason="MOON_FULL", domain=errors.DOMAIN, metadata={"phase_angle": "180"})
    )
    got = from_status(status)
    assert type(got) is errors.FailedPrecondition
    assert (got.reason, got.message, got.extra) == ("MOON_FULL", "the moon is full", {"phase_angle": "180"})
    again = over_the_wire(got)
    assert (again.reason, again.extra) == ("MOON_FULL", {"phase_angle": "180"})


def test_a_reason_of_another_domain_is_not_taken_for_ours() -> None:
    status = Status(code=Code.NOT_FOUND, message="x")
    status.details.add().Pack(details.ErrorInfo(reason="STALE_GENERATION", domain="example.com"))
    assert type(from_status(status)) is errors.NotFound


def test_the_text_of_a_message_decides_nothing() -> None:
    status = to_status(errors.StaleGeneration("t", 1, 2))
    status.message = "task t not found"
    assert type(from_status(status)) is errors.StaleGeneration


# UNIMPLEMENTED without details is a server that does not serve the contract.
_KEPT = [c for c in grpc.StatusCode if c not in (grpc.StatusCode.OK, grpc.StatusCode.UNIMPLEMENTED)]


@pytest.mark.parametrize("code", _KEPT)
def test_grpc_error_without_details_keeps_its_code(code: grpc.StatusCode) -> None:
    nothing = grpc.aio.Metadata()
    error = from_rpc_error(grpc.aio.AioRpcError(code, nothing, nothing, details="broken"))
    assert (error.code, error.reason, str(error)) == (code.value[0], "", "broken")


@pytest.mark.parametrize(
    ("code", "text", "kind", "message"),
    [
        (
            grpc.StatusCode.UNIMPLEMENTED,
            "Method not found!",
            errors.VersionUnsupported,
            "the server does not serve taskyard.v1",
        ),
        (
            grpc.StatusCode.UNAVAILABLE,
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to"
            " remote host: Connection refused",
            errors.ServerUnreachable,
            "no server answers at 127.0.0.1:1 (Failed to connect to remote host: Connection refused)",
        ),
        (
            grpc.StatusCode.UNAVAILABLE,
            "failed to connect to all addresses; last error: UNKNOWN: ipv6:%5B::1%5D:1: Ssl handshake failed:"
            " CERTIFICATE_VERIFY_FAILED",
            errors.CertificateUntrusted,
            "the certificate of [::1]:1 is not accepted (Ssl handshake failed: CERTIFICATE_VERIFY_FAILED)",
        ),
    ],
)
def test_error_of_the_connection_has_a_type_and_a_remedy(
    code: grpc.StatusCode, text: str, kind: type[errors.TaskyardError], message: str
) -> None:
    nothing = grpc.aio.Metadata()
    error = from_rpc_error(grpc.aio.AioRpcError(code, nothing, nothing, details=text))
    assert type(error) is kind and str(error).startswith(message)
    assert error.retryable == (kind is errors.ServerUnreachable)


def test_damaged_details_leave_code_and_message() -> None:
    trailers = grpc.aio.Metadata((DETAILS_KEY, b"\xff\xff\xff"))
    error = from_rpc_error(
        grpc.aio.AioRpcError(grpc.StatusCode.ABORTED, grpc.aio.Metadata(), trailers, details="broken")
    )
    assert type(error) is errors.Aborted and str(error) == "broken"


def test_only_repeatable_calls_are_retryable() -> None:
    assert errors.StorageUnavailable().retryable
    assert errors.RateLimited("tenants/a", "10", retry_after=timedelta(seconds=1)).retryable
    assert not errors.RateLimited("tenants/a", "10").retryable
    assert not errors.StaleGeneration("t", 1, 2).retryable


def test_pushback_trailer_carries_the_retry_delay() -> None:
    error = errors.ServerDraining(retry_after=timedelta(seconds=2))
    assert (PUSHBACK_KEY, "2000") in trailing_metadata(error)
    assert error.message.endswith("; retry in 2 s")


def test_a_status_fits_into_the_trailers_that_clients_accept() -> None:
    many = tuple(FieldViolation("f" * 5000, "d" * 5000) for _ in range(1000))
    assert to_status(errors.FieldInvalid(many)).ByteSize() < 6000
    assert to_status(errors.PhaseConflict("s" * 5000, "p" * 5000, "n" * 5000)).ByteSize() < 6000


def test_sizes_name_the_limit() -> None:
    error = errors.TooLarge.sized("task.spec.payload", 11, 10)
    assert str(error) == "task.spec.payload: 11 bytes are more than the limit of 10; make it smaller"
    assert over_the_wire(error).data["limit"] == 10
