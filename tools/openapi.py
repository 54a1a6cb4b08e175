"""Writes the gateway's OpenAPI document and its reference page from the protos; `--check` compares them."""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from openapi_page import page
from openapi_schemas import STATUS, Schemas
from reference import ENUM, FIELD, MESSAGE, METHOD, SERVICE, VALUE, comments_of, own_files

from taskyard.errors import Code
from taskyard_gateway.answers import HTTP_STATUS, JSON
from taskyard_gateway.contract import Rpc, is_map, is_repeated
from taskyard_gateway.routes import WHOLE_BODY, Route, routes
from taskyard_gateway.streams import EVENT_STREAM, NDJSON
from taskyard_gateway.template import WILDCARD

FOLDER = Path("services/gateway/src/taskyard_gateway/assets")
OWN = ("taskyard/v1/", "taskyard/compat/v1/")
NESTED = 3

ABOUT = """Every RPC of Taskyard that has an HTTP rule, by JSON as protobuf defines it.

**Keys** go into `Authorization: Bearer ty_…`, as with gRPC; the gateway has no rights of its own.

**Errors** are `google.rpc.Status`: `code` is the canonical code, `details` carry an ErrorInfo with the
reason, and what else helps. `Retry-After` is the delay of RetryInfo.

**Streams** are Server-Sent Events; `id:` is the resume token, so `Last-Event-ID` goes on exactly after the
event that came last. `event: end` says that everything was sent, `event: status` carries an error. With
`Accept: application/x-ndjson` each message is a line, and an error is a last line `{"error": …}`.

**Without a rule**: every unary RPC is also served by the Connect protocol, `POST /{package.Service}/{Method}`
with the request as JSON or as `application/proto`.
"""
# What can happen to any request, and why.
ALWAYS = {
    400: "The request is malformed or breaks a rule; BadRequest names the field.",
    401: "There is no key, or it is not in force.",
    403: "The key may not call this.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    429: "A quota or rate is used up; Retry-After says when to come back.",
    431: "The headers are too large.",
    503: "The service is overloaded, draining or cannot be reached; Retry-After says when to come back.",
    504: "The call took too long; the outcome of a write is unknown.",
}
CAUSES = {
    404: "It does not exist, or belongs to another tenant.",
    409: "It exists already, or has changed meanwhile.",
}
_SINGULAR = re.compile(r"s$")


def comments(files: Iterable[FileDescriptorProto]) -> dict[str, str]:
    """The comment of every message, field, enum, value, service and method by its full name."""
    found: dict[str, str] = {}
    for file in files:
        comment = comments_of(file)
        for number, service in enumerate(file.service):
            name = f"{file.package}.{service.name}"
            found[name] = comment(SERVICE, number)
            for place, method in enumerate(service.method):
                found[f"{name}.{method.name}"] = comment(SERVICE, number, METHOD, place)
        for number, enum in enumerate(file.enum_type):
            found[f"{file.package}.{enum.name}"] = comment(ENUM, number)
            for place, value in enumerate(enum.value):
                found[f"{file.package}.{enum.name}.{value.name}"] = comment(ENUM, number, VALUE, place)
        for number, message in enumerate(file.message_type):
            found |= dict(message_comments(message, file.package, comment, (MESSAGE, number)))
    return found


def message_comments(
    message: DescriptorProto, scope: str, comment: Any, path: tuple[int, ...]
) -> Iterator[tuple[str, str]]:
    name = f"{scope}.{message.name}"
    yield name, comment(*path)
    for place, field in enumerate(message.field):
        yield f"{name}.{field.name}", comment(*path, FIELD, place)
    for place, inner in enumerate(message.nested_type):
        yield from message_comments(inner, name, comment, (*path, 3, place))


class Document:
    """The OpenAPI document while it is put together."""

    def __init__(self, text: dict[str, str]) -> None:
        self._comments = text
        self._schemas = Schemas(text)

    def build(self) -> dict[str, Any]:
        paths: dict[str, Any] = {}
        for route in routes():
            path, parameters = openapi_path(route)
            paths.setdefault(path, {})[route.method.lower()] = self._operation(route, parameters)
        tags = sorted({route.rpc.descriptor.containing_service.full_name for route in routes()})
        return {
            "openapi": "3.1.0",
            "info": {
                "title": "Taskyard",
                "version": "v1",
                "description": ABOUT,
                "license": {"name": "Apache-2.0"},
            },
            "security": [{"key": []}],
            "tags": [
                {"name": tag.rpartition(".")[2], "description": self._comments.get(tag, "")} for tag in tags
            ],
            "paths": dict(sorted(paths.items())),
            "components": {
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
                "schemas": {"Status": STATUS, **self._schemas.components()},
            },
        }

    def _operation(self, route: Route, in_path: list[dict[str, Any]]) -> dict[str, Any]:
        rpc = route.rpc
        service = rpc.descriptor.containing_service
        text = self._comments.get(f"{service.full_name}.{rpc.descriptor.name}", "")
        operation: dict[str, Any] = {
            "operationId": f"{service.name}_{rpc.descriptor.name}",
            "tags": [service.name],
            "summary": text.partition(".  ")[0].partition(".\n")[0].replace("\n", " ").rstrip("."),
            "description": text,
            "parameters": [*in_path, *self._query(route)],
            "responses": self._responses(rpc, text),
        }
        if route.body:
            operation["requestBody"] = self._body(route)
        return operation

    def _query(self, route: Route) -> list[dict[str, Any]]:
        found = (
            [] if route.body == WHOLE_BODY else list(self._parameters(route, route.rpc.descriptor.input_type))
        )
        if route.rpc.resumable:
            text = "The id of the last event that was received; the stream goes on after it."
            found.append(
                {"name": "Last-Event-ID", "in": "header", "description": text, "schema": {"type": "string"}}
            )
        return found

    def _parameters(
        self, route: Route, message: Any, above: tuple[Any, ...] = ()
    ) -> Iterator[dict[str, Any]]:
        bound = {variable.field for variable in route.template.variables}
        for field in message.fields:
            path = (*above, field)
            dotted = ".".join(part.name for part in path)
            if dotted in bound or (not above and field.name == route.body) or is_map(field):
                continue
            schema = self._schemas.parameter(field)
            if schema is None:
                if not is_repeated(field) and len(path) < NESTED:
                    yield from self._parameters(route, field.message_type, path)
                continue
            name = ".".join(part.name if route.rpc.flat else part.json_name for part in path)
            text = self._comments.get(field.full_name, "")
            yield {"name": name, "in": "query", "description": text, "schema": schema}

    def _body(self, route: Route) -> dict[str, Any]:
        message: Any = route.rpc.descriptor.input_type
        if route.body == WHOLE_BODY:
            bound = {variable.field for variable in route.template.variables}
            schema = self._schemas.request(message, bound, flat=route.rpc.flat)
        else:
            schema = self._schemas.of(message.fields_by_name[route.body])
        return {"content": {JSON: {"schema": schema}}, "required": True}

    def _responses(self, rpc: Rpc, text: str) -> dict[str, Any]:
        schema = self._schemas.reference(rpc.descriptor.output_type)
        content: dict[str, Any] = {JSON: {"schema": schema}}
        if rpc.streams:
            content = {EVENT_STREAM: {"schema": {"type": "string"}}, NDJSON: {"schema": {"type": "string"}}}
        named = {
            HTTP_STATUS[Code[code]] for code in re.findall(r"\b[A-Z_]+\b", text) if code in Code.__members__
        }
        causes = ALWAYS | {
            status: CAUSES[status] for status in sorted(named | {404, 409}) if status in CAUSES
        }
        error = {JSON: {"schema": {"$ref": "#/components/schemas/Status"}}}
        answers = {"200": {"description": "The answer.", "content": content}}
        for status, cause in sorted(causes.items()):
            answers[str(status)] = {"description": cause, "content": error}
        return answers


def openapi_path(route: Route) -> tuple[str, list[dict[str, Any]]]:
    """The path with a parameter for each `*`, named for the collection before it."""
    segments: list[str] = []
    parameters: list[dict[str, Any]] = []
    fields = {variable.start: variable for variable in route.template.variables}
    for number, segment in enumerate(route.template.segments):
        if segment != WILDCARD:
            segments.append(segment)
            continue
        variable = fields.get(number)
        single = variable is not None and variable.end - variable.start == 1
        name = variable.field if single and variable is not None else _SINGULAR.sub("", segments[-1])
        segments.append("{" + name + "}")
        schema = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9._-]+$"}
        parameters.append({"name": name, "in": "path", "required": True, "schema": schema})
    verb = f":{route.template.verb}" if route.template.verb else ""
    return "/" + "/".join(segments) + verb, parameters


def render(root: Path) -> dict[Path, str]:
    """Both files by their paths."""
    document = Document(comments(own_files(root, OWN))).build()
    return {
        FOLDER / "openapi.json": json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        FOLDER / "docs.html": page(document),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file is stale")
    arguments = parser.parse_args()
    made = render(arguments.root)
    stale = [path for path, text in made.items() if _current(arguments.root / path) != text]
    for path in stale:
        if arguments.check:
            print(f"{path} is not what the protos make it")
        else:
            (arguments.root / path).write_text(made[path])
    return 1 if stale and arguments.check else 0


def _current(path: Path) -> str:
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
