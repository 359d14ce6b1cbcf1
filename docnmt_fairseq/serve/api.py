"""What is asked of the server by HTTP, and answered: the routes below ``/v1``."""

from typing import Any, Dict, Optional, Type

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel

from docnmt_fairseq.serve.answers import inspected_objects, listed, sentence_objects
from docnmt_fairseq.serve.bodies import unless_disconnected
from docnmt_fairseq.serve.events import Answer, streamed, wanted
from docnmt_fairseq.serve.handlers import BYTES, JSON, PLAIN, Context, RequestHandlers, content_type
from docnmt_fairseq.serve.limits import Refusal
from docnmt_fairseq.serve.schemas import InspectRequest, TranslateRequest
from docnmt_fairseq.serve.service import Service

ERRORS = {
    400: "no JSON", 413: "too large", 415: "another type of content", 422: "cannot be translated",
    429: "too much waits already; Retry-After says when to try again", 503: "the server is stopping",
    504: "not translated in time",
}  # fmt: skip
RESPONSES: Dict[Any, Dict[str, Any]] = {
    status: {"description": told, "content": {JSON: {"example": {"error": "one sentence that says what is wrong"}}}}
    for status, told in ERRORS.items()
}


def body_of(**contents: Optional[Type[BaseModel]]) -> Dict[str, Any]:
    """The description of a request's body: what each type of content holds, None: anything."""
    types = {"plain": PLAIN, "json": JSON, "file": BYTES}
    shapes = {
        types[name]: {"schema": {"type": "string"} if shape is None else shape.model_json_schema()}
        for name, shape in contents.items()
    }
    return {"requestBody": {"required": True, "content": shapes}}


async def known_parameters(request: Request) -> None:
    """Refuses a request with a parameter in its address that its route does not have, which would do nothing."""
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        there = f"there are {', '.join(known)}" if known else "there are none"
        raise Refusal(422, f"?{unknown[0]}=: no such parameter, {there}")


def router(service: Service) -> APIRouter:
    """The routes of a service."""
    routes = APIRouter(responses=RESPONSES, dependencies=[Depends(known_parameters)])
    handlers = RequestHandlers(service)

    @routes.post(
        "/v1/translate", summary="Translate text", openapi_extra=body_of(plain=None, json=TranslateRequest),
        response_class=Response,
    )  # fmt: skip
    async def translate(
        request: Request,
        context: Context = Query("document", description="of text/plain; none: every sentence by itself"),
        stream: bool = Query(False, description="of text/plain: an object of JSON for each sentence"),
    ) -> Response:
        """Text as docnmt translate takes it (text/plain), or JSON.

        Text/plain is a sentence a line, an empty line ends a document, `<p>` a paragraph; the answer has the same
        lines. With `stream`, or by `Accept: application/x-ndjson` or `text/event-stream`, an object comes for each
        sentence as soon as it and all before it are translated; the last is `{"done": true}`, or `{"error": …}`.
        """
        if content_type(request, PLAIN, JSON) == PLAIN:
            return await handlers.text(request, context, stream)
        if request.query_params:
            raise Refusal(422, f"?{next(iter(request.query_params))}=: of text/plain; of JSON it is a field")
        asked, source, pending = await handlers.json(request, TranslateRequest)
        kind = wanted(request, asked.stream)
        if kind:
            return streamed(kind, sentence_objects(source, pending, asked.scores))
        return Answer(await handlers.answer(request, asked, source, pending))

    @routes.post("/v1/files", summary="Translate a file", openapi_extra=body_of(file=None), response_class=Response)
    async def files(
        request: Request,
        name: str = Query("", max_length=255, description="of the file; its ending tells the format"),
        format: str = Query("", description="of the file, where its name does not tell"),
        context: Context = Query("document", description="none: every sentence by itself"),
        stream: bool = Query(False, description="an object of JSON for each sentence, and one with the file"),
    ) -> Response:
        """A file of any format that docnmt translate knows; the answer is such a file.

        With `stream`, or by `Accept: application/x-ndjson` or `text/event-stream`, an object comes per sentence, as
        of `/v1/translate`; the last is `{"done": true, "file": …}` with the file in base64, or `{"error": …}`.
        """
        return await handlers.file(request, name, format, context, stream)

    @routes.post(
        "/v1/inspect", summary="Translate, and tell what every word looked at",
        openapi_extra=body_of(json=InspectRequest), response_class=Response,
    )  # fmt: skip
    async def inspect(request: Request) -> Response:
        """Tokens of all sentences, and by mechanism the sentences and words that each token looked at."""
        content_type(request, JSON)
        asked, source, pending = await handlers.json(request, InspectRequest)
        kind, reason = wanted(request, asked.stream), service.not_inspected(pending.text)
        if reason and not kind:
            pending.drop()
            raise Refusal(422, reason)
        objects = inspected_objects(service, source, pending, asked.viewer)
        if kind:
            return streamed(kind, objects)
        *sentences, found = await unless_disconnected(request, listed(objects))
        return Answer({**found, "sentences": sentences})

    @routes.get("/v1/model", summary="The model and the limits", response_class=Response)
    async def model() -> Response:
        """Languages, architecture, limits."""
        return Answer(handlers.facts())

    return routes
