"""Former places of modules: the very same modules, with a warning where they are imported."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import docnmt_fairseq
from docnmt_fairseq.aliases import EMPTY, MODULES, NAMES, PREFIX, new_place


@pytest.fixture(autouse=True)
def unknown():
    """Makes every import of a former place a first one."""
    yield
    for module in [*MODULES, *NAMES, *EMPTY]:
        sys.modules.pop(PREFIX + module, None)


@pytest.mark.parametrize("module", MODULES)
def test_a_former_module_is_the_one_of_today(module):
    with pytest.warns(DeprecationWarning, match=f"{module} is now {PREFIX}{MODULES[module]}"):
        found = importlib.import_module(PREFIX + module)
    assert found is importlib.import_module(PREFIX + MODULES[module])
    assert found.__spec__.name == found.__name__ == PREFIX + MODULES[module]


def test_what_is_in_a_former_package():
    assert new_place("modules.context_aware_layers.residual") == "ca_layers.residual"
    assert new_place("modules.context_aware_layers.layer") == "ca_layers.feed_forward"
    assert new_place("modules.none") is None and new_place("translate.files") is None
    with pytest.warns(DeprecationWarning):
        former = importlib.import_module(f"{PREFIX}modules.context_aware_layers.residual")
    assert former is importlib.import_module(f"{PREFIX}ca_layers.residual")
    for name in ("modules.none", "modules.context_aware_layers.none"):
        with pytest.raises(ModuleNotFoundError, match="none"):
            importlib.import_module(PREFIX + name)


def test_statements_as_users_have_them():
    with pytest.warns(DeprecationWarning) as warned:
        import docnmt_fairseq.layout
        from docnmt_fairseq.evaluation.loading import Loaded, TextCodec
        from docnmt_fairseq.modules.recording import record
        from docnmt_fairseq.search.loading import DocumentView

        from docnmt_fairseq.search import translator
    assert {warning.filename for warning in warned} == {__file__}
    from docnmt_fairseq import checkpoints
    from docnmt_fairseq.batch.layout import DocumentLayout
    from docnmt_fairseq.corpus import text_codec
    from docnmt_fairseq.layers import recording
    from docnmt_fairseq.translate import task
    from docnmt_fairseq.translate.translator import DocumentTranslator

    assert docnmt_fairseq.layout.DocumentLayout is DocumentLayout and record is recording.record
    assert translator.DocumentTranslator is DocumentTranslator and DocumentView is task.DocumentView
    assert Loaded is checkpoints.Ensemble and TextCodec is text_codec.TextCodec


def test_former_places_are_free():
    """A file there would never be found."""
    package = Path(docnmt_fairseq.__file__).parent
    places = [package / module.replace(".", "/") for module in [*MODULES, *NAMES, *EMPTY]]
    assert [place for place in places if place.with_suffix(".py").exists() or (place / "__init__.py").exists()] == []


def test_the_package_itself_imports_nothing_heavy():
    script = "import sys, docnmt_fairseq; print(sorted({'torch', 'fairseq', 'numpy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
