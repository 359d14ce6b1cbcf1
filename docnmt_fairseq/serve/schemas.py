"""What JSON requests hold, as the OpenAPI description tells it."""

from typing import Dict, List, Literal, Optional, Type, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from docnmt_fairseq.serve.limits import Refusal
from docnmt_fairseq.translate.line_inputs import LINE_INPUTS

Shape = TypeVar("Shape", bound="TextRequest")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextRequest(BaseModel):
    """One document: paragraphs of sentences, or running text."""

    model_config = ConfigDict(extra="forbid", strict=True)

    paragraphs: Optional[List[List[str]]] = Field(None, description="sentences by paragraph")
    text: Optional[str] = Field(None, description="running text, divided into sentences; empty lines end paragraphs")
    context: Literal["document", "none"] = Field("document", description="none: every sentence by itself")
    stream: bool = Field(False, description="an object for each sentence as it is there: NDJSON, or by Accept SSE")

    @model_validator(mode="after")
    def _one_of_both(self: Shape) -> Shape:
        if (self.paragraphs is None) == (self.text is None):
            raise ValueError("give either paragraphs or text")
        return self


class TranslateRequest(TextRequest):
    """A document to translate."""

    nbest: int = Field(1, ge=1, description="translations of every sentence, at most the server's beam")
    scores: bool = Field(False, description="also the scores: mean log-probabilities, unless the server says otherwise")
    target_prefix: Optional[List[List[str]]] = Field(
        None, description="what the translations of paragraphs begin with, one for each sentence; empty: anything"
    )
    target_context: Optional[List[List[str]]] = Field(
        None,
        description="better translations of sentences of paragraphs, one for each: those after them are translated as "
        "if the model had written these; empty: its own",
    )

    @model_validator(mode="after")
    def _one_for_each(self) -> "TranslateRequest":
        for name, told in self.beside.items():
            if self.paragraphs is None:
                raise ValueError(f"{name}: give paragraphs, not text")
            if list(map(len, told)) != list(map(len, self.paragraphs)):
                raise ValueError(f"{name}: give one for each sentence of paragraphs")
        return self

    @property
    def beside(self) -> Dict[str, List[List[str]]]:
        """What is told of sentences, by :data:`~docnmt_fairseq.translate.line_inputs.LINE_INPUTS`."""
        return {name: getattr(self, name) for name in LINE_INPUTS if getattr(self, name) is not None}


class InspectRequest(TextRequest):
    """A document to translate, and to tell what every word looked at."""

    viewer: bool = Field(False, description="also the HTML of the viewer")


def parse(shape: Type[Shape], body: bytes) -> Shape:
    """The request that a body is.

    Raises:
        Refusal: it is no JSON, or says something else.
    """
    try:
        return shape.model_validate_json(body.removeprefix(BYTE_ORDER_MARK))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        status = 400 if first["type"] == "json_invalid" else 422
        raise Refusal(status, f"{where}: {message}" if where else message) from None
