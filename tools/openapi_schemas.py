"""JSON Schemas of the messages as protobuf's JSON has them, with the bounds of their validation rules."""

from collections.abc import Collection
from typing import Any

from google.api import field_behavior_pb2
from google.protobuf.descriptor import FieldDescriptor

from buf.validate import validate_pb2
from taskyard_gateway.contract import COMPAT, is_map, is_repeated

STATUS: dict[str, Any] = {
    "type": "object",
    "description": "google.rpc.Status",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "integer", "description": "Canonical code, as gRPC has it."},
        "message": {"type": "string", "description": "What is wrong, and what to do, in English."},
        "details": {
            "type": "array",
            "description": "ErrorInfo with the reason first, then BadRequest, RetryInfo and the like.",
            "items": {"type": "object", "required": ["@type"], "properties": {"@type": {"type": "string"}}},
        },
    },
}
_LARGE = {"type": "string", "pattern": "^-?[0-9]{1,20}$"}
_F = FieldDescriptor
_SCALARS: dict[int, dict[str, Any]] = {
    _F.TYPE_DOUBLE: {"type": "number"},
    _F.TYPE_FLOAT: {"type": "number"},
    _F.TYPE_INT32: {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1},
    _F.TYPE_SINT32: {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1},
    _F.TYPE_UINT32: {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
    _F.TYPE_INT64: {**_LARGE, "format": "int64"},
    _F.TYPE_SINT64: {**_LARGE, "format": "int64"},
    _F.TYPE_SFIXED64: {**_LARGE, "format": "int64"},
    _F.TYPE_FIXED64: {**_LARGE, "format": "uint64"},
    _F.TYPE_UINT64: {**_LARGE, "format": "uint64"},
    _F.TYPE_BOOL: {"type": "boolean"},
    _F.TYPE_STRING: {"type": "string"},
    _F.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
}
_DURATION = {"type": "string", "pattern": r"^-?[0-9]{1,12}(\.[0-9]{1,9})?s$", "examples": ["30s", "1.5s"]}
_WELL_KNOWN: dict[str, dict[str, Any]] = {
    "Timestamp": {"type": "string", "format": "date-time"},
    "Duration": _DURATION,
    "FieldMask": {"type": "string", "description": "Field names in camelCase, separated by commas."},
    "Struct": {"type": "object"},
    "Value": {"description": "Any JSON value."},
    "ListValue": {"type": "array"},
    "Any": {"type": "object", "properties": {"@type": {"type": "string"}}},
    "BoolValue": {"type": "boolean"},
    "Int32Value": {"type": "integer"},
    "StringValue": {"type": "string"},
}
_PARAMETERS = frozenset({"Timestamp", "Duration", "FieldMask", "BoolValue", "Int32Value", "StringValue"})


class Schemas:
    """Schemas that refer to each other; those that were referred to are the document's components."""

    def __init__(self, text: dict[str, str]) -> None:
        self._comments = text
        self._made: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}

    def components(self) -> dict[str, Any]:
        return dict(sorted(self._made.items()))

    def reference(self, message: Any) -> dict[str, Any]:
        """A message: by reference, or what JSON has in its place."""
        if message.file.package == "google.protobuf":
            return dict(_WELL_KNOWN[message.name])
        if message.full_name == "google.rpc.Status":
            return {"$ref": "#/components/schemas/Status"}
        name = self._name(message)
        if name not in self._made:
            self._made[name] = {}
            self._made[name] = self.request(message, (), flat=message.file.package == COMPAT)
        return {"$ref": f"#/components/schemas/{name}"}

    def request(self, message: Any, without: Collection[str], *, flat: bool) -> dict[str, Any]:
        """A message in place, without the fields that the path fills."""
        schema: dict[str, Any] = {"type": "object"}
        if text := self._comments.get(message.full_name, ""):
            schema["description"] = text
        members = [field for field in message.fields if field.name not in without]
        if needed := [
            _json_name(field, flat) for field in members if _behaves(field, field_behavior_pb2.REQUIRED)
        ]:
            schema["required"] = needed
        schema["properties"] = {_json_name(field, flat): self._member(field) for field in members}
        return schema

    def of(self, field: Any) -> dict[str, Any]:
        """One field, whatever it is."""
        if is_map(field):
            return {
                "type": "object",
                "additionalProperties": self._single(field.message_type.fields_by_name["value"]),
            }
        schema = self._single(field)
        return {"type": "array", "items": schema} | _list_bounds(field) if is_repeated(field) else schema

    def parameter(self, field: Any) -> dict[str, Any] | None:
        """A field as a query parameter; None if it is a message that has no such form."""
        message = field.message_type
        if message is not None and not (
            message.file.package == "google.protobuf" and message.name in _PARAMETERS
        ):
            return None
        return self.of(field)

    def _member(self, field: Any) -> dict[str, Any]:
        schema = self.of(field)
        if text := self._comments.get(field.full_name, ""):
            schema["description"] = text
        if _behaves(field, field_behavior_pb2.OUTPUT_ONLY):
            schema["readOnly"] = True
        return schema

    def _single(self, field: Any) -> dict[str, Any]:
        if field.message_type is not None:
            return self.reference(field.message_type)
        if field.enum_type is not None:
            return {"type": "string", "enum": [value.name for value in field.enum_type.values]}
        return _SCALARS[field.type] | ({} if is_repeated(field) else _bounds(field))

    def _name(self, message: Any) -> str:
        name = message.full_name.removeprefix(f"{message.file.package}.")
        assert self._names.setdefault(name, message.full_name) == message.full_name, (
            f"two messages are named {name}"
        )
        return str(name)


def _json_name(field: Any, flat: bool) -> str:
    return str(field.name if flat else field.json_name)


def _behaves(field: Any, behavior: int) -> bool:
    return behavior in field.GetOptions().Extensions[field_behavior_pb2.field_behavior]


def _rules(field: Any) -> Any:
    return field.GetOptions().Extensions[validate_pb2.field]


def _bounds(field: Any) -> dict[str, Any]:
    rules = _rules(field)
    kind = rules.WhichOneof("type")
    if kind == "string":
        return _text_bounds(rules)
    if kind in ("int32", "uint32", "sint32", "double", "float"):
        return _number_bounds(getattr(rules, kind))
    return {}


def _text_bounds(rules: Any) -> dict[str, Any]:
    text, found = rules.string, dict[str, Any]()
    if text.HasField("min_len"):
        found["minLength"] = text.min_len
    if text.HasField("max_len"):
        found["maxLength"] = text.max_len
    if text.HasField("pattern"):
        empty = rules.ignore == validate_pb2.IGNORE_IF_ZERO_VALUE
        found["pattern"] = f"^$|{text.pattern}" if empty else text.pattern
    if getattr(text, "in"):
        found["enum"] = list(getattr(text, "in"))
    return found


def _number_bounds(rules: Any) -> dict[str, Any]:
    names = {"gte": "minimum", "lte": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
    return {names[name]: getattr(rules, name) for name in names if rules.HasField(name)}


def _list_bounds(field: Any) -> dict[str, Any]:
    rules = _rules(field).repeated
    found: dict[str, Any] = {}
    if rules.HasField("min_items"):
        found["minItems"] = rules.min_items
    if rules.HasField("max_items"):
        found["maxItems"] = rules.max_items
    if rules.unique:
        found["uniqueItems"] = True
    return found
