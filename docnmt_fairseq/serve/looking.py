"""What the words of a translated text looked at, in the shape that the page and other clients read."""

import asyncio
from typing import Callable, TypeVar

from docnmt_fairseq.report.inspection import Inspection, inspect_translated
from docnmt_fairseq.report.page import Viewer
from docnmt_fairseq.report.views import views_of
from docnmt_fairseq.serve.pending import PendingTranslation
from docnmt_fairseq.serve.service import Service

Value = TypeVar("Value")


async def look(service: Service, pending: PendingTranslation) -> Viewer:
    """Computes a text again with its translation, and records; where the translator is, between its steps.

    Args:
        service: whose model looks.
        pending: whose text is translated.
    """
    return await _where_the_translator_is(service, lambda: _look(service, pending))


def _look(service: Service, pending: PendingTranslation) -> Viewer:
    ensemble = service.translator.ensemble
    best = pending.hypotheses
    inspection: Inspection = inspect_translated(
        ensemble, pending.text.dataset, 0, lambda batch: [best[line]["tokens"].cpu() for line in batch["id"].tolist()]
    )
    return Viewer(inspection, views_of(ensemble.model, inspection))


async def _where_the_translator_is(service: Service, function: Callable[[], Value]) -> Value:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Value] = loop.create_future()

    def tell(outcome: Callable[[], None]) -> None:
        if not future.done():  # else nobody waits any more
            outcome()

    def call() -> None:
        if future.cancelled():
            return
        try:
            value = function()
        except Exception as error:
            raised = error
            loop.call_soon_threadsafe(tell, lambda: future.set_exception(raised))
        else:
            loop.call_soon_threadsafe(tell, lambda: future.set_result(value))

    service.backlog.call(call)
    return await future
