"""Serves translations over HTTP: an API for programs and a page for browsers.

Concurrent requests are translated together. Requests over the limits are refused; accepted ones are finished when the
server is stopped. GET /openapi.json describes the API.
"""

import argparse
import logging
import os
from dataclasses import replace

from docnmt_fairseq.cli._options import add_fields, add_translator_arguments, given, search_of, translator_of
from docnmt_fairseq.errors import needs_extra
from docnmt_fairseq.serve.limits import Limits
from docnmt_fairseq.translate.lines import EMPTY_LINES

HELP = "serve translations over HTTP: an API, and a page that shows the attention of each word"
QUIET = ("fairseq",)
EXAMPLES = """examples:
  docnmt serve --path work/document/checkpoint_best.pt --data work
  curl --data-binary @talk.en -H 'Content-Type: text/plain' http://127.0.0.1:8000/v1/translate"""

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds address, limits and translator."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    address = parser.add_argument_group("address")
    address.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on; there is no authentication (default: 127.0.0.1, this machine only)",
    )
    address.add_argument("--port", type=int, default=8000, metavar="N", help="port; 0: any free port (default: 8000)")
    address.add_argument(
        "--allow-origin",
        nargs="+",
        default=[],
        metavar="ORIGIN",
        help="origins of web pages that may use the API from browsers (CORS), such as https://app.example; '*': all",
    )

    limits = parser.add_argument_group("limits")
    add_fields(limits, Limits, unset=True)
    limits.add_argument(
        "--empty-lines",
        choices=EMPTY_LINES,
        default=EMPTY_LINES[0],
        help="what empty lines end in text with one sentence per line (default: document)",
    )
    _, view = add_translator_arguments(parser, max_tokens=2000)
    view.add_argument(
        "--context",
        choices=("document", "none"),
        help="none: translate every sentence separately, whatever requests say",
    )


def run(args: argparse.Namespace) -> None:
    """Serves until a signal."""
    limits, search = Limits(**given(args, Limits)), search_of(args)
    origins = list(map(str.lower, args.allow_origin))  # as browsers send them
    with needs_extra("serve", "docnmt serve"):
        from docnmt_fairseq.serve.server import limit_caches, listen, serve
    from docnmt_fairseq.serve.service import Service

    limit_caches()
    listener = listen(args.host, args.port)
    translator = translator_of(args, replace(search, nbest=search.beam))  # requests choose nbest
    host, port = listener.getsockname()[:2]
    logger.info(f"http://{f'[{host}]' if ':' in host else host}:{port}/ is ready; press Ctrl-C to stop")
    service = Service(translator, limits, args.empty_lines)
    serve(service, listener, origins)
    if service.thread.alive:  # PyTorch in a running thread crashes when the interpreter ends
        logging.shutdown()
        os._exit(0)
