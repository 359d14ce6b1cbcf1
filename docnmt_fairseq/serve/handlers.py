"""From requests to answers: bodies are read, become text, and wait until it is translated."""

from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, Literal, Tuple, Type

from fastapi import Request, Response

from docnmt_fairseq import __version__
from docnmt_fairseq.corpus.files import packing_of
from docnmt_fairseq.report.documents import model_properties
from docnmt_fairseq.serve import source_text
from docnmt_fairseq.serve.answers import Object, file_objects, lines_of, sentence_object, sentence_objects
from docnmt_fairseq.serve.bodies import Room, unless_disconnected
from docnmt_fairseq.serve.events import streamed, wanted
from docnmt_fairseq.serve.limits import Refusal
from docnmt_fairseq.serve.pending import Deadline, PendingTranslation
from docnmt_fairseq.serve.schemas import TextRequest, TranslateRequest, parse
from docnmt_fairseq.serve.service import Service
from docnmt_fairseq.serve.source_text import SourceText
from docnmt_fairseq.translate.formats import FORMATS
from docnmt_fairseq.translate.formats import PLAIN as PLAIN_FORMAT
from docnmt_fairseq.translate.formats.limits import FormatLimits

PLAIN, JSON, BYTES = "text/plain", "application/json", "application/octet-stream"
Context = Literal["document", "none"]
LINES_A_SENTENCE = 4  # lines, empty ones among them, that are looked through for each sentence that may wait
UNPACKED = 4  # times its bytes that the members of an archive may have: they are XML, and pictures


class RequestHandlers:
    """Handles the requests to a service.

    Args:
        service: that answers them.
    """

    def __init__(self, service: Service):
        self.service, self.limits, self.room = service, service.limits, Room(service.limits)
        self.limits = FormatLimits(UNPACKED * service.limits.max_bytes, service.limits.max_waiting)
        self.languages: Tuple[str, str] = service.translator.codec.languages

    async def text(self, request: Request, context: Context, as_stream: bool) -> Response:
        """Answers text of a sentence a line with such text."""
        source, pending = await self._of_file(request, "", PLAIN_FORMAT, context)
        kind = wanted(request, as_stream)
        if kind:
            return streamed(kind, sentence_objects(source, pending, scores=False))
        return Response(await self._finished(request, source, pending), media_type=f"{PLAIN}; charset=utf-8")

    async def file(self, request: Request, name: str, format: str, context: Context, as_stream: bool) -> Response:
        """Answers a file with such a file. It is never shown as a page of this server."""
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            raise Refusal(415, "a form is not taken; send the file itself as the body (curl --data-binary @FILE)")
        if packing_of(name):
            raise Refusal(415, f"{name}: send it unpacked")
        source, pending = await self._of_file(request, name, format, context)
        kind = wanted(request, as_stream)
        if kind:
            return streamed(kind, file_objects(self.service, source, pending))
        content = await self._finished(request, source, pending)
        return Response(content, media_type=BYTES, headers={"Content-Disposition": "attachment"})

    async def json(self, request: Request, shape: Type[TextRequest]) -> Tuple[Any, SourceText, PendingTranslation]:
        """What a JSON request says, its text, and the translation that is pending.

        Args:
            request: with the body.
            shape: that it must have.
        """
        async with self._body(request) as (body, deadline):
            asked = parse(shape, body)
            nbest = asked.nbest if isinstance(asked, TranslateRequest) else 1
            source, pending = await self.service.ask(
                lambda: self._question(asked), asked.context == "none", nbest, deadline
            )
        return asked, source, pending

    async def _of_file(
        self, request: Request, name: str, format: str, context: Context
    ) -> Tuple[SourceText, PendingTranslation]:
        async with self._body(request) as (body, deadline):
            return await self.service.ask(lambda: self._file(body, name, format), context == "none", 1, deadline)

    @asynccontextmanager
    async def _body(self, request: Request) -> AsyncIterator[Tuple[bytes, Deadline]]:
        """The body of a request until it is prepared, and when the request must be done."""
        deadline = Deadline(self.limits.timeout)
        body = await self.room.read(request, deadline)
        try:
            yield body, deadline
        finally:
            self.room.release(body)

    def _file(self, body: bytes, name: str, format: str) -> SourceText:
        kind = source_text.kind_of(name, format)
        if kind == PLAIN_FORMAT:
            self._check_lines(body.count(b"\n"))
        return source_text.of_file(body, name, kind, self.languages, self.service.empty_lines, self.limits)

    def _question(self, asked: TextRequest) -> SourceText:
        if asked.text is not None:
            self._check_lines(asked.text.count("\n"))
            return source_text.of_running_text(asked.text, self.languages, self.limits)
        assert asked.paragraphs is not None  # one of both is there
        self._check_lines(sum(map(len, asked.paragraphs)))
        beside = asked.beside if isinstance(asked, TranslateRequest) else {}
        return source_text.of_paragraphs(asked.paragraphs, beside)

    def _check_lines(self, lines: int) -> None:
        most = LINES_A_SENTENCE * self.limits.max_waiting
        if lines > most:
            raise Refusal(413, f"{lines:,} lines, but at most {most:,} are taken at once; divide the text")

    async def _finished(self, request: Request, source: SourceText, pending: PendingTranslation) -> bytes:
        lines = await unless_disconnected(request, lines_of(source, pending))
        return await self.service.finish(lambda: source.finish(lines))

    async def answer(
        self, request: Request, asked: TranslateRequest, source: SourceText, pending: PendingTranslation
    ) -> Object:
        """The whole answer to a JSON request."""
        lines = await unless_disconnected(request, lines_of(source, pending))
        texts = [line.text for line in lines]
        answer: Object = {}
        if asked.paragraphs is not None:
            answer["paragraphs"] = source_text.in_shape(asked.paragraphs, source, texts)
        else:
            answer["text"] = (await self.service.finish(lambda: source.finish(lines))).decode("utf-8", "replace")
            answer["paragraphs"] = source.paragraphs(texts)
        if asked.scores or asked.nbest > 1:
            answer["sentences"] = [
                sentence_object(source, number, line.translations, asked.scores)
                for number, line in enumerate(lines)
                if line.translations
            ]
        return answer

    def facts(self) -> Object:
        """What clients may want to know of the model and the server."""
        translator = self.service.translator
        reason = self.service.not_inspected()
        properties = {} if reason else model_properties(translator.ensemble)
        return {
            "version": __version__,
            "source": self.languages[0],
            "target": self.languages[1],
            "properties": properties,
            "beam": translator.engine.beam,
            "formats": FORMATS.names(),
            "not_inspected": reason,
            "limits": {name: getattr(self.limits, name) for name in ("max_bytes", "max_characters", "max_inspected")},
        }


def content_type(request: Request, *taken: str) -> str:
    """The type of a request's content, the first of ``taken`` if it does not say.

    Raises:
        Refusal: it is none of them, or not in UTF-8.
    """
    given, _, parameters = request.headers.get("content-type", taken[0]).lower().partition(";")
    if given.strip() not in taken:
        raise Refusal(415, f"Content-Type {given.strip()[:60]!r}: send {' or '.join(taken)}")
    _, _, charset = parameters.partition("charset=")
    if charset.partition(";")[0].strip(' "') not in ("", "utf-8", "utf8", "us-ascii"):
        raise Refusal(415, "the text must be UTF-8")
    return given.strip()
