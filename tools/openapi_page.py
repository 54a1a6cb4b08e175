"""The reference page of the gateway: the OpenAPI document as one HTML file that fetches and runs nothing."""

import re
from collections.abc import Iterator
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem 1.5rem 6rem; }
code, pre, .path { font-family: ui-monospace, monospace; font-size: .9em; }
nav ul { columns: 22rem; list-style: none; padding: 0; }
a { color: inherit; }
h2 { border-bottom: 1px solid var(--line); margin-top: 3rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
.method { display: inline-block; font-weight: 700; min-width: 4.5rem; }
table { border-collapse: collapse; margin: .5rem 0; width: 100%; }
td, th { border-top: 1px solid var(--line); padding: .3rem .6rem .3rem 0; text-align: left; }
td { vertical-align: top; }
p { white-space: pre-line; }
pre { background: var(--soft); border-radius: .4rem; overflow: auto; padding: .6rem; }
"""
_METHODS = ("get", "post", "put", "patch", "delete")


def page(document: dict[str, Any]) -> str:
    """The whole page."""
    info = document["info"]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(info['title'])} over HTTP</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(info['title'])} over HTTP</h1>",
        *(
            f"<p>{_text(' '.join(paragraph.split()))}</p>"
            for paragraph in info["description"].strip().split("\n\n")
        ),
        '<p>The same as a document for tools: <a href="/openapi.json">/openapi.json</a>.</p>',
        *_contents(document),
        *(line for tag in document["tags"] for line in _service(document, tag)),
        "<h2>Messages</h2>",
        *(
            line
            for name, schema in document["components"]["schemas"].items()
            for line in _schema(name, schema)
        ),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _operations(document: dict[str, Any], tag: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item and tag in item[method]["tags"]:
                yield path, method.upper(), item[method]


def _contents(document: dict[str, Any]) -> Iterator[str]:
    yield "<nav><ul>"
    for tag in document["tags"]:
        yield f'<li><a href="#{tag["name"]}">{tag["name"]}</a></li>'
    yield "</ul></nav>"


def _service(document: dict[str, Any], tag: dict[str, Any]) -> Iterator[str]:
    yield f'<h2 id="{tag["name"]}">{tag["name"]}</h2><p>{_text(tag["description"])}</p>'
    for path, method, operation in _operations(document, tag["name"]):
        yield f'<details id="{operation["operationId"]}"><summary><span class="method">{method}</span>'
        yield f'<span class="path">{escape(path)}</span> — {_text(operation["summary"])}</summary>'
        yield f"<p>{_text(operation['description'])}</p>"
        if operation["parameters"]:
            yield "<table><tr><th>parameter</th><th>in</th><th>type</th><th></th></tr>"
            for each in operation["parameters"]:
                cells = (f"<code>{escape(each['name'])}</code>", each["in"], _kind(each["schema"]))
                yield _row(*cells, _text(each.get("description", "")))
            yield "</table>"
        if "requestBody" in operation:
            body = operation["requestBody"]["content"]["application/json"]["schema"]
            yield f"<p>Body: {_kind(body)}</p>"
            yield from _members(body)
        yield "<table><tr><th>status</th><th>answer</th><th></th></tr>"
        for status, answer in operation["responses"].items():
            kinds = ", ".join(
                _kind(content["schema"]) if media == "application/json" else escape(media)
                for media, content in answer["content"].items()
            )
            yield _row(status, kinds, _text(answer["description"]))
        yield "</table></details>"


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f'<details id="schema-{escape(name)}"><summary><code>{escape(name)}</code></summary>'
    yield f"<p>{_text(schema.get('description', ''))}</p>"
    yield from _members(schema)
    yield "</details>"


def _members(schema: dict[str, Any]) -> Iterator[str]:
    if not schema.get("properties"):
        return
    needed = schema.get("required", [])
    yield "<table><tr><th>member</th><th>type</th><th></th></tr>"
    for name, member in schema["properties"].items():
        text = ("Required. " if name in needed else "") + member.get("description", "")
        yield _row(f"<code>{escape(name)}</code>", _kind(member), _text(text))
    yield "</table>"


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#schema-{escape(name)}"><code>{escape(name)}</code></a>'
    if schema.get("type") == "array":
        return "list of " + _kind(schema.get("items", {}))
    if "additionalProperties" in schema:
        return "map to " + _kind(schema["additionalProperties"])
    if "enum" in schema:
        return "one of " + " ".join(
            f"<code>{escape(str(value) or '(empty)')}</code>" for value in schema["enum"]
        )
    return escape(str(schema.get("format") or schema.get("type", "any value")))


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _text(text: str) -> str:
    """Text with its code and its emphasis as HTML."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", marked)
