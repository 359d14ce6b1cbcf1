"""The pages of a server: the one to translate with, the description of its API, and their files."""

import json
from html import escape
from importlib.resources import files
from typing import Any, Dict, Iterator, Tuple

from docnmt_fairseq.report.page import PANEL

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
ASSETS = {"viewer.css": "report", "viewer.js": "report", "serve.css": "serve", "serve.js": "serve"}


def asset(name: str) -> Tuple[bytes, str]:
    """A file of the pages, and its type.

    Raises:
        KeyError: there is no such file.
    """
    content = (files(f"docnmt_fairseq.{ASSETS[name]}") / "assets" / name).read_bytes()
    return content, TYPES[name.rpartition(".")[2]]


def page(title: str, body: str, scripts: Tuple[str, ...] = ()) -> str:
    """A page of the server; ``body`` is HTML."""
    head = "".join(f'<link rel="stylesheet" href="assets/{name}">' for name in ("viewer.css", "serve.css"))
    head += "".join(f'<script defer src="assets/{name}"></script>' for name in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>{head}</head><body>{body}</body></html>\n'
    )


def translating_page(source: str, target: str) -> str:
    """The page to translate with, between two languages."""
    template = (files("docnmt_fairseq.serve") / "assets" / "page.html").read_text(encoding="utf-8")
    languages = {"source": escape(source), "target": escape(target), "panel": escape(PANEL)}
    return page(f"{source} to {target}", template.format(**languages), ("viewer.js", "serve.js"))


def description_page(description: Dict[str, Any]) -> str:
    """An OpenAPI description for people; it loads nothing."""
    info = description["info"]
    routes = "".join(_route(*route) for route in _routes(description))
    return page(
        info["title"],
        f"<header><h1>{escape(info['title'])}</h1><p>{escape(info['description'])} "
        'As a machine reads it: <a href="openapi.json">openapi.json</a>.</p></header>'
        f"<main>{routes}</main>",
    )


def _routes(description: Dict[str, Any]) -> Iterator[Tuple[str, str, Dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for method, told in methods.items():
            yield method.upper(), path, told


def _route(method: str, path: str, told: Dict[str, Any]) -> str:
    parameters = "".join(_parameter(one) for one in told.get("parameters", ()))
    bodies = told.get("requestBody", {}).get("content", {})
    shapes = "".join(
        f"<h3>Body: <code>{escape(kind)}</code></h3>{_properties(content['schema'])}"
        for kind, content in bodies.items()
    )
    statuses = "".join(
        f"<li><code>{escape(status)}</code> {escape(one['description'])}</li>"
        for status, one in told["responses"].items()
    )
    query = f"<h3>Query</h3><ul>{parameters}</ul>" if parameters else ""
    return (
        f"<section><h2><code>{method} {escape(path)}</code></h2><p>{_text(told.get('description', ''))}</p>"
        f"{query}{shapes}<h3>Answers</h3><ul>{statuses}</ul></section>"
    )


def _parameter(one: Dict[str, Any]) -> str:
    default = one["schema"].get("default", "")
    return (
        f"<li><code>{escape(one['name'])}</code> (default: <code>{escape(json.dumps(default))}</code>): "
        f"{escape(one.get('description', ''))}</li>"
    )


def _properties(schema: Dict[str, Any]) -> str:
    told = "".join(
        f"<li><code>{escape(name)}</code>: {escape(one.get('description', ''))}</li>"
        for name, one in schema.get("properties", {}).items()
    )
    return f"<ul>{told}</ul>" if told else ""


def _text(description: str) -> str:
    parts = escape(description).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
