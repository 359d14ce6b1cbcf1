"""The objects that requests are answered with."""

from base64 import b64encode
from typing import Any, AsyncIterator, Dict, List, Mapping, Sequence

from docnmt_fairseq.report.page import Viewer
from docnmt_fairseq.serve.looking import look
from docnmt_fairseq.serve.pending import PendingTranslation
from docnmt_fairseq.serve.service import Service
from docnmt_fairseq.serve.source_text import SourceText
from docnmt_fairseq.translate.lines import TranslatedLine, Translation, translated_line

Object = Dict[str, Any]


async def lines_of(source: SourceText, pending: PendingTranslation) -> List[TranslatedLine]:
    """What becomes of every line, when all are there."""
    return _all_lines(source, {line: translations async for line, translations in pending.sentences()})


def _all_lines(source: SourceText, found: Mapping[int, Sequence[Translation]]) -> List[TranslatedLine]:
    return [translated_line(line, list(found.get(number, ()))) for number, line in enumerate(source.lines)]


def sentence_object(source: SourceText, line: int, translations: Sequence[Translation], scores: bool) -> Object:
    """A sentence: where it is, from 0, its text, and its translations as far as they are wanted."""
    place = source.places[line]
    assert place is not None  # it is a sentence
    found: Object = {
        "document": place.document,
        "paragraph": place.paragraph,
        "sentence": place.sentence,
        "source": source.lines[line],
        "translation": translations[0].text,
    }
    if scores:
        found["score"] = round(translations[0].score, 6)
    if len(translations) > 1:
        found["translations"] = [_scored(one, scores) for one in translations]
    return found


def _scored(translation: Translation, scores: bool) -> Object:
    return {"text": translation.text, **({"score": round(translation.score, 6)} if scores else {})}


async def sentence_objects(source: SourceText, pending: PendingTranslation, scores: bool) -> AsyncIterator[Object]:
    """Yields every sentence as soon as it and all before it are there, and at the end how many they were."""
    count = 0
    async for line, translations in pending.sentences():
        count += 1
        yield sentence_object(source, line, translations, scores)
    yield {"done": True, "sentences": count}


async def file_objects(service: Service, source: SourceText, pending: PendingTranslation) -> AsyncIterator[Object]:
    """Yields every sentence as it is there, and at the end the translated file, in base64."""
    found = {}
    async for line, translations in pending.sentences():
        found[line] = translations
        yield sentence_object(source, line, translations, scores=False)
    content = await service.finish(lambda: source.finish(_all_lines(source, found)))
    yield {"done": True, "sentences": len(found), "file": b64encode(content).decode()}


async def inspected_objects(
    service: Service, source: SourceText, pending: PendingTranslation, viewer: bool
) -> AsyncIterator[Object]:
    """Yields every sentence as it is there, then what was found by looking into the text, or why nothing was."""
    reason = service.not_inspected(pending.text)
    async for one in sentence_objects(source, pending, scores=False):
        if "done" in one:
            found = {"not_inspected": reason} if reason else inspection_object(await look(service, pending), viewer)
            yield {**one, **found}
        else:
            yield one


async def listed(objects: AsyncIterator[Object]) -> List[Object]:
    """All of the objects."""
    return [one async for one in objects]


def inspection_object(found: Viewer, viewer: bool) -> Object:
    """What the words looked at; ``viewer``: with the HTML that shows it."""
    sentences = [
        {"paragraph": one.paragraph, "source": one.source, "translation": one.translation}
        for one in found.inspection.sentences
    ]
    inspection = {"tokens": sentences, "notes": found.notes, **found.to_json()}
    return {"inspection": inspection, **({"viewer": found.to_html()} if viewer else {})}
