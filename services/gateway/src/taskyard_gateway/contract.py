"""The RPCs that the gateway offers, read from the descriptors of the protos."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from google.api import annotations_pb2
from google.api.http_pb2 import HttpRule
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from taskyard.compat.v1 import global_task_service_pb2
from taskyard.v1 import (
    admin_service_pb2,
    api_key_service_pb2,
    entity_service_pb2,
    explain_service_pb2,
    group_service_pb2,
    limit_service_pb2,
    runner_service_pb2,
    schedule_service_pb2,
    task_service_pb2,
    task_type_service_pb2,
    tenant_service_pb2,
    work_service_pb2,
)

TASKDB, SCHEDULER = "taskdb", "scheduler"
COMPAT = "taskyard.compat.v1"
RESUME_TOKEN = "resume_token"

# The public services, by where they are served. What only services say to each other is not offered.
_SERVED: dict[str, tuple[ModuleType, ...]] = {
    TASKDB: (
        task_service_pb2,
        task_type_service_pb2,
        schedule_service_pb2,
        group_service_pb2,
        limit_service_pb2,
        entity_service_pb2,
        tenant_service_pb2,
        api_key_service_pb2,
        runner_service_pb2,
        admin_service_pb2,
        global_task_service_pb2,
    ),
    SCHEDULER: (explain_service_pb2, work_service_pb2),
}


@dataclass(frozen=True)
class Rpc:
    """One RPC: its descriptor, and which server answers it."""

    descriptor: MethodDescriptor
    upstream: str

    @cached_property
    def path(self) -> str:
        """The path of gRPC and Connect, `/package.Service/Method`."""
        return f"/{self.descriptor.containing_service.full_name}/{self.descriptor.name}"

    @cached_property
    def request(self) -> type[Message]:
        return message_factory.GetMessageClass(self.descriptor.input_type)

    @cached_property
    def response(self) -> type[Message]:
        return message_factory.GetMessageClass(self.descriptor.output_type)

    @property
    def streams(self) -> bool:
        """Whether it answers with a stream."""
        return self.descriptor.server_streaming

    @cached_property
    def resumable(self) -> bool:
        """Whether a stream can be resumed by the token that each response carries."""
        both = (self.descriptor.input_type, self.descriptor.output_type)
        return self.streams and all(RESUME_TOKEN in side.fields_by_name for side in both)

    @cached_property
    def flat(self) -> bool:
        """Whether its JSON has the proto's own field names, and all of them."""
        return self.path.startswith(f"/{COMPAT}.")

    def rules(self) -> Iterator[HttpRule]:
        """Its http rule with the additional ones."""
        options: Any = self.descriptor.GetOptions()
        if options.HasExtension(annotations_pb2.http):
            rule: HttpRule = options.Extensions[annotations_pb2.http]
            yield rule
            yield from rule.additional_bindings


def rpcs() -> Iterator[Rpc]:
    """Every RPC that the gateway offers; those whose requests are streams have no place in HTTP."""
    for upstream, modules in _SERVED.items():
        for module in modules:
            for service in module.DESCRIPTOR.services_by_name.values():
                for method in service.methods:
                    if not method.client_streaming:
                        yield Rpc(method, upstream)


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether the field is a list."""
    return field.is_repeated and not is_map(field)


def is_map(field: FieldDescriptor) -> bool:
    """Whether the field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry
