"""HTTP API: routes below ``/v1`` and their requests."""

from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple, Type, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from docnmt_fairseq import __version__
from docnmt_fairseq.report.build import model_properties
from docnmt_fairseq.serve import source_text
from docnmt_fairseq.serve.limits import RequestError, before
from docnmt_fairseq.serve.responses import (
    as_file,
    as_text,
    inspection_objects,
    sentence_object,
    sentence_objects,
    stream,
    stream_type,
    translated_lines,
    unless_disconnected,
)  # fmt: skip
from docnmt_fairseq.serve.service import RequestFuture, Service
from docnmt_fairseq.serve.source_text import SourceText
from docnmt_fairseq.translate.formats import FORMATS, RUNNING, Reading
from docnmt_fairseq.translate.inputs import LINE_INPUTS

PLAIN, JSON, BYTES = "text/plain", "application/json", "application/octet-stream"
Context = Literal["document", "none"]
FORMAT_NAME = f"^({'|'.join(FORMATS.names())})?$"
ERRORS = {
    400: "invalid JSON", 413: "too large", 415: "unsupported media type", 422: "cannot be translated",
    429: "too many sentences are waiting; see Retry-After", 503: "the server is stopping", 504: "timeout",
}  # fmt: skip
RESPONSES: Dict[Any, Dict[str, Any]] = {
    status: {"description": text, "content": {JSON: {"example": {"error": "problem and remedy"}}}}
    for status, text in ERRORS.items()
}


class TextQuery(BaseModel):
    """Parameters of the address of requests with text."""

    model_config = ConfigDict(extra="forbid")

    context: Context = Field("document", description="none: translate every sentence separately")
    stream: bool = Field(False, description="return a JSON object for each sentence as soon as possible")


class FileQuery(TextQuery):
    """Parameters of the address of requests with a file."""

    name: str = Field("", max_length=255, description="name of the file, whose ending is its format")
    format: str = Field("", pattern=FORMAT_NAME, description="format of the file (default: by its name)")


class TextRequest(BaseModel):
    """One document: paragraphs of sentences, or running text."""

    model_config = ConfigDict(extra="forbid", strict=True)

    paragraphs: Optional[List[List[str]]] = Field(None, description="sentences by paragraph")
    text: Optional[str] = Field(None, description="running text; empty lines end paragraphs")
    context: Context = Field("document", description="none: translate every sentence separately")
    stream: bool = Field(False, description="return an object for each sentence as soon as possible (NDJSON or SSE)")

    @model_validator(mode="after")
    def _paragraphs_or_text(self) -> "TextRequest":
        if (self.paragraphs is None) == (self.text is None):
            raise ValueError("give either paragraphs or text")
        return self


class TranslateRequest(TextRequest):
    """Document to translate."""

    nbest: int = Field(1, ge=1, description="number of translations per sentence, at most the beam of the server")
    scores: bool = Field(False, description="return scores: mean log-probabilities, unless modified by --lenpen")
    target_prefix: Optional[List[List[str]]] = Field(
        None, description="forced beginnings of translations, one for each sentence of paragraphs; empty: none"
    )
    target_context: Optional[List[List[str]]] = Field(
        None,
        description="corrected translations, one for each sentence of paragraphs, which the model sees instead of its "
        "own when it translates later sentences; empty: its own",
    )

    @model_validator(mode="after")
    def _one_line_input_per_sentence(self) -> "TranslateRequest":
        for name, values in self.line_inputs.items():
            if self.paragraphs is None or list(map(len, values)) != list(map(len, self.paragraphs)):
                raise ValueError(f"{name}: give paragraphs, and one {name} for each sentence")
        return self

    @property
    def line_inputs(self) -> Dict[str, List[List[str]]]:
        """Line inputs by name of :data:`~docnmt_fairseq.translate.inputs.LINE_INPUTS`."""
        return {name: getattr(self, name) for name in LINE_INPUTS if getattr(self, name) is not None}


class InspectRequest(TextRequest):
    """Document to translate and inspect."""

    viewer: bool = Field(False, description="return the HTML of the viewer")


Body = TypeVar("Body", bound=TextRequest)


def parse(kind: Type[Body], body: bytes) -> Body:
    """Returns the request in a JSON body."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        location = "".join(f"{part}." for part in first["loc"])[:-1]
        message = first["msg"].removeprefix("Value error, ")
        status = 400 if first["type"] == "json_invalid" else 422
        raise RequestError(status, f"{location}: {message}" if location else message) from None


def media_type(request: Request, *accepted: str) -> str:
    """Returns the media type of a body; the first accepted one by default."""
    found = request.headers.get("content-type", accepted[0]).lower().partition(";")[0].strip()
    if found not in accepted:
        raise RequestError(415, f"Content-Type {found[:60]!r}: send {' or '.join(accepted)}")
    return found


def body_of(schemas: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    """Returns the OpenAPI description of a body that a route reads itself, from its schema by media type."""
    content = {media_type: {"schema": schema} for media_type, schema in schemas.items()}
    return {"requestBody": {"required": True, "content": content}}


def router(service: Service) -> APIRouter:
    """Returns the routes of a service."""
    routes = APIRouter(responses=RESPONSES, default_response_class=Response)
    languages = service.translator.codec.languages
    reading = Reading(lambda: languages, service.empty_lines, limits=service.format_limits)

    async def read(request: Request) -> Tuple[bytes, float]:
        deadline = service.deadline()
        async with before(deadline, status=408):
            return await request.body(), deadline

    async def submit_file(
        request: Request, context: Context, name: str = "", format_name: str = ""
    ) -> Tuple[SourceText, RequestFuture]:
        body, deadline = await read(request)
        return await service.submit(
            lambda: source_text.from_file(body, name, format_name, reading), context == "none", 1, deadline
        )

    async def submit_json(request: Request, kind: Type[Body]) -> Tuple[Body, SourceText, RequestFuture]:
        body, deadline = await read(request)
        asked = parse(kind, body)

        def text() -> SourceText:
            if asked.paragraphs is None:
                return source_text.from_file((asked.text or "").encode(), "", RUNNING, reading)
            return source_text.from_paragraphs(asked.paragraphs, getattr(asked, "line_inputs", {}))

        nbest = getattr(asked, "nbest", 1)
        return asked, *await service.submit(text, asked.context == "none", nbest, deadline)

    async def finished_file(request: Request, source: SourceText, future: RequestFuture) -> bytes:
        lines = await unless_disconnected(request, translated_lines(source, future))
        return await service.run_in_thread(lambda: source.finish(lines))

    translate_body = body_of({PLAIN: {"type": "string"}, JSON: TranslateRequest.model_json_schema()})

    @routes.post("/v1/translate", summary="Translate text", openapi_extra=translate_body)
    async def translate(request: Request, query: Annotated[TextQuery, Query()]) -> Response:
        """Translates plain text or a JSON object.

        Plain text has one sentence per line; empty lines end documents, `<p>` ends a paragraph; the answer has the
        same lines. Streams return an object per sentence, then `{"done": true}`, with the whole `text` if the request
        has `text`, or `{"error": …}`; also with `Accept: application/x-ndjson` or `text/event-stream`.
        """
        if media_type(request, PLAIN, JSON) == PLAIN:
            source, future = await submit_file(request, query.context)
            streaming = stream_type(request, query.stream)
            if streaming:
                return stream(streaming, sentence_objects(service, source, future))
            return Response(await finished_file(request, source, future), media_type=PLAIN)
        asked, source, future = await submit_json(request, TranslateRequest)
        streaming, whole = stream_type(request, asked.stream), None if asked.text is None else as_text
        if streaming:
            return stream(streaming, sentence_objects(service, source, future, asked.scores, whole))
        lines = await unless_disconnected(request, translated_lines(source, future))
        texts = [line.text for line in lines]
        answer: Dict[str, Any] = {}
        if asked.paragraphs is not None:
            answer["paragraphs"] = source_text.to_shape(asked.paragraphs, source, texts)
        else:
            answer["text"] = (await service.run_in_thread(lambda: source.finish(lines))).decode()
            answer["paragraphs"] = source.paragraphs(texts)
        if asked.scores or asked.nbest > 1:
            answer["sentences"] = [
                sentence_object(source, number, line.translations, asked.scores)
                for number, line in enumerate(lines)
                if line.translations
            ]
        return JSONResponse(answer)

    @routes.post("/v1/files", summary="Translate a file", openapi_extra=body_of({BYTES: {"type": "string"}}))
    async def files(request: Request, query: Annotated[FileQuery, Query()]) -> Response:
        """Translates a file of any format of docnmt translate.

        The last object of a stream is `{"done": true, "file": …}` with the file in base64.
        """
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            raise RequestError(415, "forms are not supported; send the file as the body (curl --data-binary @FILE)")
        source, future = await submit_file(request, query.context, query.name, query.format)
        streaming = stream_type(request, query.stream)
        if streaming:
            return stream(streaming, sentence_objects(service, source, future, whole=as_file))
        content = await finished_file(request, source, future)
        return Response(content, media_type=BYTES, headers={"Content-Disposition": "attachment"})  # never a page

    @routes.post(
        "/v1/inspect",
        summary="Translate and inspect",
        openapi_extra=body_of({JSON: InspectRequest.model_json_schema()}),
    )
    async def inspect(request: Request) -> Response:
        """Returns tokens of all sentences and, by mechanism, the sentences and words that each token attends to."""
        media_type(request, JSON)
        asked, source, future = await submit_json(request, InspectRequest)
        streaming, problem = stream_type(request, asked.stream), service.inspection_problem(future.text)
        if problem and not streaming:
            future.cancel()
            raise RequestError(422, problem)
        whole = None if asked.text is None else as_text
        objects = inspection_objects(service, source, future, asked.viewer, whole)
        if streaming:
            return stream(streaming, objects)

        async def all_objects() -> List[Dict[str, Any]]:
            return [found async for found in objects]

        *sentences, last = await unless_disconnected(request, all_objects())
        return JSONResponse({**last, "sentences": sentences})

    @routes.get("/v1/model", summary="Model and limits")
    async def model() -> Response:
        """Returns languages, properties of the model, and limits."""
        problem = service.inspection_problem()
        names = ("max_bytes", "max_characters", "max_inspected")
        return JSONResponse(
            {
                "version": __version__,
                "source": languages[0],
                "target": languages[1],
                "properties": {} if problem else model_properties(service.translator.ensemble),
                "beam": service.translator.engine.beam,
                "formats": FORMATS.names(),
                "not_inspected": problem,
                "limits": {name: getattr(service.limits, name) for name in names},
            }
        )

    return routes
