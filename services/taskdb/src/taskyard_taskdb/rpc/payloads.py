"""Payloads in the form that runners get: the encoded document, whatever form it was written in."""

from __future__ import annotations

import json

from google.protobuf import json_format

from taskyard.v1 import common_pb2


def make_raw(payload: common_pb2.Payload) -> None:
    """Turn a structured payload into its raw form, in place."""
    if payload.WhichOneof("value") == "json":
        document = json_format.MessageToDict(payload.json)
        payload.raw = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        payload.content_type = "application/json"


def raw_payload(payload: common_pb2.Payload) -> common_pb2.Payload:
    """A copy in raw form."""
    made = common_pb2.Payload()
    made.CopyFrom(payload)
    make_raw(made)
    return made
