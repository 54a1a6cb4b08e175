"""ExplainService: why a task is not running."""

from __future__ import annotations

from taskyard.v1.explain_service_pb2_grpc import ExplainServiceServicer


class ExplainServicer(ExplainServiceServicer):
    """Answers UNIMPLEMENTED, as the generated servicer does, until the gates can be asked."""
