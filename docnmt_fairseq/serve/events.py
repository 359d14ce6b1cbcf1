"""Answers of JSON, at once or bit by bit: a line for each object (NDJSON), or events that a browser knows (SSE)."""

import json
import logging
from typing import Any, AsyncIterator, Callable, Dict, Optional

from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse

from docnmt_fairseq.serve.limits import Refusal

NDJSON, SSE = "application/x-ndjson", "text/event-stream"

logger = logging.getLogger(__name__)


def as_json(value: Any) -> bytes:
    """JSON in UTF-8, in one line; code units that are no characters become �."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


class Answer(JSONResponse):
    """One object, at once."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return as_json(content)


def wanted(request: Request, asked: bool) -> Optional[str]:
    """The kind of stream that a request wants; None: the answer at once.

    Args:
        request: whose Accept header is read.
        asked: whether it wants a stream otherwise.
    """
    accepted = request.headers.get("accept", "")
    if SSE in accepted:
        return SSE
    return NDJSON if asked or NDJSON in accepted else None


def streamed(kind: str, objects: AsyncIterator[Dict[str, Any]]) -> StreamingResponse:
    """An answer of some objects; what goes wrong on the way is the last one.

    Args:
        kind: ``NDJSON`` or ``SSE``.
        objects: as they come.
    """
    shown: Callable[[bytes], bytes] = (lambda line: b"data: " + line + b"\n\n") if kind == SSE else _line

    async def lines() -> AsyncIterator[bytes]:
        try:
            async for one in objects:
                yield shown(as_json(one))
        except Refusal as refusal:
            yield shown(as_json({"error": refusal.message, "status": refusal.status}))
        except Exception:
            logger.exception("a stream failed")
            yield shown(as_json({"error": "the server failed; its log says how", "status": 500}))

    return StreamingResponse(lines(), media_type=kind, headers={"Cache-Control": "no-store"})


def _line(line: bytes) -> bytes:
    return line + b"\n"
