"""Which RPC a method and a path mean: a tree of segments for each method and verb."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from google.api.http_pb2 import HttpRule

from taskyard_gateway.contract import Rpc, rpcs
from taskyard_gateway.template import WILDCARD, Template

METHODS = ("get", "put", "post", "delete", "patch")
WHOLE_BODY = "*"


@dataclass(frozen=True)
class Route:
    """One http rule of an RPC. `body` is the field that the body fills, `*` for the whole request."""

    rpc: Rpc
    method: str
    template: Template
    body: str


@dataclass(frozen=True)
class Match:
    """A route, and the segments of the path that was asked for."""

    route: Route
    segments: Sequence[str]


@dataclass
class _Node:
    route: Route | None = None
    children: dict[str, _Node] = field(default_factory=dict)


class Routes:
    """All routes. Two rules for the same path are a mistake in the protos."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._trees: dict[tuple[str, str], _Node] = {}
        for route in routes:
            node = self._trees.setdefault((route.method, route.template.verb), _Node())
            for segment in route.template.segments:
                node = node.children.setdefault(segment, _Node())
            if node.route is not None:
                raise ValueError(f"{route.method} {route.template.text} is the path of two RPCs")
            node.route = route

    def find(self, method: str, path: str) -> Match | None:
        """The route of a path as it was sent; a verb wins over an id with a colon in it."""
        segments = path.split("/")[1:]
        last, colon, verb = segments[-1].rpartition(":")
        if colon and (tree := self._trees.get((method, verb))) is not None:
            bare = [*segments[:-1], last]
            if (route := _walk(tree, bare, 0)) is not None:
                return Match(route, bare)
        tree = self._trees.get((method, ""))
        route = None if tree is None else _walk(tree, segments, 0)
        return None if route is None else Match(route, segments)

    def methods(self, path: str) -> list[str]:
        """The methods that this path has a route for."""
        return [method for method in map(str.upper, METHODS) if self.find(method, path) is not None]


def _walk(node: _Node, segments: Sequence[str], depth: int) -> Route | None:
    if depth == len(segments):
        return node.route
    segment = segments[depth]
    if not segment:
        return None
    child = node.children.get(segment)
    if child is not None and segment != WILDCARD:
        found = _walk(child, segments, depth + 1)
        if found is not None:
            return found
    child = node.children.get(WILDCARD)
    return None if child is None else _walk(child, segments, depth + 1)


def routes() -> Iterator[Route]:
    """A route for every http rule of the protos."""
    for rpc in rpcs():
        for rule in rpc.rules():
            yield route_of(rpc, rule)


def route_of(rpc: Rpc, rule: HttpRule) -> Route:
    method = rule.WhichOneof("pattern")
    if method not in METHODS or rule.response_body:
        raise ValueError(f"{rpc.path}: a rule with {method} or response_body is not supported")
    return Route(rpc, method.upper(), Template.parse(getattr(rule, method)), rule.body)
