"""Server reflection, v1 and v1alpha: every symbol of the contract, with the comments of its protos."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

import grpc
from google.protobuf import descriptor_pool, text_format
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_reflection.v1alpha import reflection, reflection_pb2

V1ALPHA = reflection.SERVICE_NAME
V1 = "grpc.reflection.v1.ServerReflection"

_POOL = descriptor_pool.Default()
_Response = reflection_pb2.ServerReflectionResponse


class ReflectionServicer(reflection.aio.ReflectionServicer):
    """Describes the services and resolves files, types, methods, fields and enum values."""

    def __init__(self, services: Iterable[str]) -> None:
        _add_v1()
        super().__init__((*services, V1ALPHA, V1))

    def _file_by_filename(self, request: Any, filename: str) -> _Response:
        try:
            return _describe(_POOL.FindFileByName(filename), request)
        except KeyError:
            return _not_found(f"file {filename}", request)

    def _file_containing_symbol(self, request: Any, fully_qualified_name: str) -> _Response:
        try:
            return _describe(_find_file(fully_qualified_name), request)
        except KeyError:
            return _not_found(f"symbol {fully_qualified_name}", request)


def register(servicer: ReflectionServicer, server: Any) -> None:
    """Serve both versions, whose messages are the same on the wire; `Server.add` calls it."""
    handler: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=_Response.SerializeToString,
    )
    for service in (V1ALPHA, V1):
        server.add_registered_method_handlers(service, {"ServerReflectionInfo": handler})


def _find_file(symbol: str) -> FileDescriptor:
    """Return the file that defines a symbol, or raise KeyError. The pool itself resolves no methods."""
    try:
        return _POOL.FindFileContainingSymbol(symbol)
    except KeyError:
        parent, _, member = symbol.rpartition(".")
        return _find_member(_POOL.FindFileContainingSymbol(parent), parent, member)


def _find_member(file: FileDescriptor, parent: str, member: str) -> FileDescriptor:
    name = parent.removeprefix(f"{file.package}.")
    if name in file.services_by_name:
        found = member in file.services_by_name[name].methods_by_name
    else:
        message = _POOL.FindMessageTypeByName(parent)
        found = member in message.fields_by_name or member in message.oneofs_by_name
    if not found:
        raise KeyError(f"{parent}.{member}")
    return file


def _describe(file: FileDescriptor, request: Any) -> _Response:
    """Return the file with all that it imports."""
    files: dict[str, bytes] = {}
    _collect(file, files)
    found = reflection_pb2.FileDescriptorResponse(file_descriptor_proto=list(files.values()))
    return _Response(file_descriptor_response=found, original_request=request)


def _collect(file: FileDescriptor, files: dict[str, bytes]) -> None:
    files[file.name] = _commented().get(file.name) or _serialize(file)
    for dependency in file.dependencies:
        if dependency.name not in files:
            _collect(dependency, files)


def _serialize(file: FileDescriptor) -> bytes:
    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    return proto.SerializeToString()


@cache
def _commented() -> dict[str, bytes]:
    """Return the files of the contract by name, with the comments that generated stubs leave out."""
    content = resources.files("taskyard_kit").joinpath("contract.binpb").read_bytes()
    return {file.name: file.SerializeToString() for file in FileDescriptorSet.FromString(content).file}


def _not_found(what: str, request: Any) -> _Response:
    error = reflection_pb2.ErrorResponse(
        error_code=grpc.StatusCode.NOT_FOUND.value[0],
        error_message=f"{what} does not exist; list the services, then describe one of them",
    )
    return _Response(error_response=error, original_request=request)


def _add_v1() -> None:
    """Add the file of v1, which grpcio-reflection lacks, to the pool: that of v1alpha under its own name."""
    name = "grpc/reflection/v1/reflection.proto"
    try:
        _POOL.FindFileByName(name)
    except KeyError:
        proto = FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(proto)
        renamed = text_format.Parse(str(proto).replace(".v1alpha", ".v1"), FileDescriptorProto())
        renamed.name = name
        _POOL.AddSerializedFile(renamed.SerializeToString())
