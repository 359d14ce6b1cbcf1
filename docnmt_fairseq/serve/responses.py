"""Responses: objects of sentences, at once or as a stream, and errors."""

import asyncio
import json
import logging
from base64 import b64encode
from typing import Any, AsyncIterator, Callable, Coroutine, Dict, List, Mapping, Optional, Sequence, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse

from docnmt_fairseq.serve.limits import RequestError
from docnmt_fairseq.serve.service import RequestFuture, Service
from docnmt_fairseq.serve.source_text import SourceText
from docnmt_fairseq.translate.lines import TranslatedLine, Translation, translated_line

NDJSON, SSE = "application/x-ndjson", "text/event-stream"
KEEP_ALIVE = 15.0  # seconds without an object after which a stream sends a sign of life, so that proxies keep it open
COMMENTS = {SSE: b": keep-alive\n\n", NDJSON: b" "}  # a space before the next object is part of its line of JSON

Object = Dict[str, Any]
Value = TypeVar("Value")

logger = logging.getLogger(__name__)


async def translated_lines(source: SourceText, future: RequestFuture) -> List[TranslatedLine]:
    """Returns all lines when they are translated."""
    return _all_lines(source, {line: translations async for line, translations in future.sentences()})


def _all_lines(source: SourceText, found: Mapping[int, Sequence[Translation]]) -> List[TranslatedLine]:
    return [translated_line(line, list(found.get(number, ()))) for number, line in enumerate(source.lines)]


def sentence_object(source: SourceText, line: int, translations: Sequence[Translation], scores: bool) -> Object:
    """Returns place, text and translations of a sentence."""
    place = source.places[line]
    assert place is not None  # the line is a sentence
    best = translations[0]
    found: Object = {
        **place._asdict(),
        "source": source.lines[line],
        **_translation_object(best, "translation", scores),
    }
    if len(translations) > 1:
        found["translations"] = [_translation_object(one, "text", scores) for one in translations]
    return found


def _translation_object(translation: Translation, name: str, scores: bool) -> Object:
    return {name: translation.text, **({"score": round(translation.score, 6)} if scores else {})}


def as_text(content: bytes) -> Object:
    """Returns the field of a translated text."""
    return {"text": content.decode()}


def as_file(content: bytes) -> Object:
    """Returns the field of a translated file."""
    return {"file": b64encode(content).decode()}


async def sentence_objects(
    service: Service,
    source: SourceText,
    future: RequestFuture,
    scores: bool = False,
    whole: Optional[Callable[[bytes], Object]] = None,
) -> AsyncIterator[Object]:
    """Yields each sentence, then their number and, if ``whole`` returns a field of it, the whole translation."""
    found = {}
    async for line, translations in future.sentences():
        found[line] = translations
        yield sentence_object(source, line, translations, scores)
    last: Object = {"done": True, "sentences": len(found)}
    if whole is not None:
        last.update(whole(await service.run_in_thread(lambda: source.finish(_all_lines(source, found)))))
    yield last


async def inspection_objects(
    service: Service, source: SourceText, future: RequestFuture, html: bool, whole: Optional[Callable[[bytes], Object]]
) -> AsyncIterator[Object]:
    """Yields each sentence, then the attention of the text, or the reason why it is missing."""
    problem = service.inspection_problem(future.text)
    async for found in sentence_objects(service, source, future, whole=whole):
        if "done" in found and problem:
            found["not_inspected"] = problem
        elif "done" in found:
            viewer = await service.inspect(source, future)
            tokens = [
                {"paragraph": one.paragraph, "source": one.source, "translation": one.translation}
                for one in viewer.inspection.sentences
            ]
            found["inspection"] = {"tokens": tokens, "notes": viewer.notes, **viewer.to_json()}
            if html:
                found["viewer"] = viewer.to_html()
        yield found


def stream_type(request: Request, requested: bool) -> Optional[str]:
    """Returns the media type of the stream that a request wants by its Accept header or an option, or None."""
    accepted = request.headers.get("accept", "")
    if SSE in accepted:
        return SSE
    return NDJSON if requested or NDJSON in accepted else None


def stream(media_type: str, objects: AsyncIterator[Object]) -> StreamingResponse:
    """Returns objects as lines of JSON or server-sent events; an error is the last object."""
    begin, end = (b"data: ", b"\n\n") if media_type == SSE else (b"", b"\n")

    def encoded(value: Object) -> bytes:
        return begin + json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + end

    async def content() -> AsyncIterator[bytes]:
        following = asyncio.ensure_future(anext(objects))
        try:
            while True:
                finished, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE)
                if finished:
                    value = following.result()
                    following = asyncio.ensure_future(anext(objects))
                    yield encoded(value)
                else:
                    yield COMMENTS[media_type]
        except StopAsyncIteration:
            return
        except RequestError as error:
            yield encoded({"error": error.message, "status": error.status})
        except Exception:
            logger.exception("a stream failed")
            yield encoded({"error": "the server failed; see its log", "status": 500})
        finally:
            following.cancel()

    return StreamingResponse(content(), media_type=media_type, headers={"Cache-Control": "no-store"})


async def unless_disconnected(request: Request, work: Coroutine[None, None, Value]) -> Value:
    """Returns the result of work, which is cancelled when the client disconnects.

    Raises:
        ClientDisconnect: the client disconnected.
    """
    working = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({working, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        disconnected.cancel()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
