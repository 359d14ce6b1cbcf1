"""Translation may see documents whole that training cut: which models do, and what is done again when that changes."""

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import results, run_probes
from docnmt_fairseq.recipes.dataset_file import read_dataset_config
from docnmt_fairseq.translate.view import DocumentView
from tests.support.recipes import MANUALS, changed, recipe, untrained

VIEW = "view: {max_document_sentences: 0}"
MODELS = ("sentence", "concatenation-2to2", "conditional")


@pytest.fixture
def seen(monkeypatch):
    """Returns the views that models are shown documents in: (model, text, what, view)."""
    untrained(monkeypatch)
    found = []

    def told(module, name, what):
        usual = getattr(module, name)

        def noted(data, *arguments):
            *others, view = arguments
            found.append(what(others, view))
            return usual(data, *others)

        monkeypatch.setattr(module, name, noted)

    told(results, "translate", lambda others, view: (others[1].name, others[0], "true", view))
    told(run_probes, "translate", lambda others, view: (others[1].parent.name, others[0].stem, others[3], view))
    told(run_probes, "measure_cxmi", lambda others, view: (others[2].parent.name, others[0].stem, "cxmi", view))
    return found


def test_models_that_see_documents_see_them_in_that_view_and_none_is_none(tmp_path, seen):
    recipe(read_dataset_config(MANUALS), tmp_path / "out", MODELS).run()
    whole, trained = DocumentView(max_document_sentences=0), DocumentView()
    for name, of_model in (("sentence-1", trained), ("concatenation-2to2-1", trained), ("conditional-1", whole)):
        views = {(split, what): view for model, split, what, view in seen if model == name}
        asked = ("true",) if name == "sentence-1" else ("true", "shuffled", "none", "cxmi")
        assert sorted(views) == sorted((split, what) for split in ("test", "test1") for what in asked)
        assert all(view == (trained if what == "none" else of_model) for (_, what), view in views.items())


def test_another_view_is_translated_anew_by_the_models_that_were_trained(tmp_path, seen):
    recipe(read_dataset_config(MANUALS), tmp_path / "out", MODELS).run()
    seen.clear()
    recipe(changed(tmp_path, (VIEW, "view: {max_document_sentences: 2, context_overlap: 1}")), tmp_path / "out").run()
    wanted = DocumentView(max_document_sentences=2, context_overlap=1)
    asked = [
        ("conditional-1", split, what, wanted) for split in ("test", "test1") for what in ("cxmi", "shuffled", "true")
    ]
    assert sorted(seen, key=str) == sorted(asked, key=str)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("view: whole", "expected keys and values, got 'whole'"),
        ("view: {sentences: 0}", "unknown sentences; there are context, context_overlap"),
        ("view: {context: none}", "context: not here; ask for it by probes: contexts"),
        ("view: {max_document_sentences: -1}", "max_document_sentences: -1 is not a number from 0 on"),
        ("view: {context_overlap: true}", "context_overlap: True is not a number from 0 on"),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path, view, message):
    with pytest.raises(InputError, match=f"changed.yaml: view: {message}"):
        changed(tmp_path, (VIEW, view))
