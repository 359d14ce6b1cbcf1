"""Serves translations: an HTTP API for programs, and a page for people.

Requests are translated together: those that come while others are under way join them. What is too much is refused,
what is accepted is finished when the server is told to stop. GET /docs describes the API.
"""

import argparse
import logging
import os

from docnmt_fairseq.cli._options import given
from docnmt_fairseq.cli._translator import add_translator_arguments, search_of, translator_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.translate_files import EMPTY_LINES

HELP = "serve translations: an HTTP API, and a page that shows what each word looked at"
QUIET = ("fairseq",)  # importing it logs what it would like to have installed
EXAMPLES = """examples:
  docnmt serve --path work/document/checkpoint_best.pt --data work
  curl --data-binary @talk.en -H 'Content-Type: text/plain' http://127.0.0.1:8000/v1/translate"""

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the address, the limits, and the translator."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    address = parser.add_argument_group("address")
    address.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="to listen at (default: 127.0.0.1, this machine alone); whoever reaches it may translate",
    )
    address.add_argument("--port", type=int, default=8000, metavar="N", help="0: any that is free (default: 8000)")

    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-waiting", type=int, metavar="N", help="sentences that wait; more are refused with 429 (default: 5000)"
    )
    limits.add_argument(
        "--max-bytes", type=int, metavar="N", help="of a request; more is refused with 413 (default: 4194304)"
    )
    limits.add_argument(
        "--max-characters", type=int, metavar="N", help="of a sentence; more is refused with 422 (default: 20000)"
    )
    limits.add_argument(
        "--max-inspected", type=int, metavar="N", help="tokens of a document that is inspected (default: 1500)"
    )
    limits.add_argument("--timeout", type=float, metavar="S", help="seconds of a request, then 504 (default: 300)")
    limits.add_argument(
        "--grace", type=float, metavar="S", help="seconds for what is under way when told to stop (default: 30)"
    )
    limits.add_argument(
        "--empty-lines",
        choices=EMPTY_LINES,
        default=EMPTY_LINES[0],
        help="what one ends in text of a sentence a line (default: document)",
    )
    groups = add_translator_arguments(parser, max_tokens=2000)
    groups.view.add_argument(
        "--context",
        choices=("document", "none"),
        help="none: every sentence by itself, whatever requests say",
    )


def run(args: argparse.Namespace) -> None:
    """Serves until a signal comes."""
    import dataclasses

    from docnmt_fairseq.serve.caches import bound_caches
    from docnmt_fairseq.serve.limits import Limits

    limits = Limits(**given(args, Limits))
    limits.check()
    search = search_of(args)
    try:
        from docnmt_fairseq.serve.server import bound_socket, serve
    except ImportError as error:
        raise InputError(f"docnmt serve needs {error.name}: pip install 'docnmt_fairseq[serve]'") from error
    from docnmt_fairseq.serve.service import Service

    bound_caches()
    listener = bound_socket(args.host, args.port)
    # All hypotheses are there anyway: requests say how many of them they want.
    translator = translator_of(args, dataclasses.replace(search, nbest=search.beam))
    host, port = listener.getsockname()[:2]
    logger.info(f"http://{f'[{host}]' if ':' in host else host}:{port}/ is ready; Ctrl-C stops")
    service = Service(translator, limits, args.empty_lines)
    serve(service, listener)
    if service.worker.alive:  # in the midst of a search: PyTorch's threads would not survive the interpreter's end
        logging.shutdown()
        os._exit(0)
