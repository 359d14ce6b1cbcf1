"""Register rules: markers of each language, ambiguity, and a custom language."""

import os
import re
from pathlib import Path

import pytest

from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.register import RegisterOptions
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from tests.support.scored import reference_set

MANUALS = Path(os.environ.get("DOCNMT_SHARED_DATA", "")) / "en-de-manuals"
ANNOTATION = Path(__file__).with_name("register_by_reading.tsv")
# Language, line, register with ambiguous markers, register by unambiguous markers.
LINES = [
    ("de", "Öffne die Datei, die du brauchst.", "du", "du"),
    ("de", "Dein Rechner startet.", "du", "du"),
    ("de", "Ich danke Dir.", "du", "du"),
    ("de", "Das gehört deinem Bruder, nicht ihr.", "du", "du"),
    ("de", "Klicken Sie hier.", "Sie", "Sie"),
    ("de", "Wir danken Ihnen für Ihre Hilfe.", "Sie", "Sie"),
    ("de", "Sie öffnen die Datei.", "Sie", None),
    ("de", "Die Datei ist groß. Ihr Name ist kurz.", "Sie", None),
    ("de", "Er fragte: „Sie auch?“", "Sie", None),
    ("de", "„Komm!“ Sie ging weg.", "Sie", None),
    ("de", "„Komm rein.“ Ihr Mann wartete.", "Sie", None),
    ("de", "Er rief: «Sie ist da!»", "Sie", None),
    ("de", "Er rief ‚Sie ist da!‘", "Sie", None),
    ("de", "‚Komm!‘ Sie ging, sagte er 'Sie ging.'", "Sie", None),
    ("de", "Moment… Sie ist weg.", "Sie", None),
    ("de", "(Lachen) Sie hat gesungen.", "Sie", None),
    ("de", "Er kam. [2] Sie ging.", "Sie", None),
    ("de", "a) Sie ist weg.", "Sie", None),
    ("de", "— Sie ist weg.", "Sie", None),
    ("de", "• Ihr Name ist kurz.", "Sie", None),
    ("de", "> * Sie ist weg.", "Sie", None),
    ("de", "Klicken (oder tippen) Sie auf „Weiter“ Ihres Bildschirms.", "Sie", "Sie"),
    ("de", "Öffnen — sofern vorhanden — Sie die Datei.", "Sie", "Sie"),
    ("de", "Drücken Sie * oder Strg+C, um Hans’ Ihnen bekannte Datei zu öffnen.", "Sie", "Sie"),
    ("de", "Ist das deins?", "du", "du"),
    ("de", "Ich kam deinetwegen.", "du", "du"),
    ("de", "Sie wissen, dass Sie warten.", "Sie", "Sie"),
    ("de", "Sie zeigt, was du brauchst.", "du", "du"),
    ("de", "Sagen Sie es so, wie du es sagst.", None, None),
    ("de", "sie und ihr, ihnen und ihre", None, None),
    ("de", "Die Ihrigen Individuen, duzen, Dirk, Deinhard", None, None),
    ("de", "Könnt ihr euch das vorstellen?", None, None),
    ("de", "", None, None),
    ("fr", "Que fais-tu ?", "tu", "tu"),
    ("fr", "Je t'aime. Je t’aime.", "tu", "tu"),
    ("fr", "Va-t'en !", "tu", "tu"),
    ("fr", "Tes amis et ta sœur pensent à toi.", "tu", "tu"),
    ("fr", "Ouvre ton fichier.", "tu", None),
    ("fr", "Ton fichier est ouvert.", "tu", None),
    ("fr", "Le ton de votre lettre", "vous", "vous"),
    ("fr", "Cliquez sur vos photos.", "vous", "vous"),
    ("fr", "Vous avez raison.", "vous", "vous"),
    ("fr", "Le rendez-vous a-t-il eu lieu ?", None, None),
    ("fr", "Le rendez‑vous, le rendez‐vous et le garde-à-vous ont-ils eu lieu ?", None, None),
    ("fr", "Mon livre et le tien", "tu", "tu"),
    ("fr", "Tiens, qu'il la tienne !", None, None),
    ("fr", "Chez-vous ou chez vous ?", "vous", "vous"),
    ("fr", "Tu sais que vous partez.", None, None),
    ("fr", "l'été, tout, votif, TU", None, None),
    ("es", "¿Tú vienes conmigo o contigo?", "tú", "tú"),
    ("es", "Abre tu archivo.", "tú", "tú"),
    ("es", "Te lo doy a ti.", "tú", "tú"),
    ("es", "Vosotros y vuestras casas", "tú", "tú"),
    ("es", "Os digo que no.", "tú", "tú"),
    ("es", "Tómate un café.", "tú", "tú"),
    ("es", "Muévete, quédatelo; está llamándote.", "tú", "tú"),
    ("es", "los n.os 3 y 4, el límite, un tomate, vete, parte, ¿quieres verte?", None, None),
    ("es", "¿Cómo está usted?", "usted", "usted"),
    ("es", "Le escribo a Ud. hoy.", "usted", "usted"),
    ("es", "Ustedes saben más.", "usted", None),
    ("es", "Les escribo a Uds. hoy.", "usted", None),
    ("es", "Les escribo a Vds. hoy.", "usted", None),
    ("es", "Quiero que usted te lo diga.", None, None),
    ("es", "Su casa, un té y un tul", None, None),
    ("ru", "Ты знаешь?", "ты", "ты"),
    ("ru", "Я с тобой и твоими друзьями.", "ты", "ты"),
    ("ru", "Это твоё дело.", "ты", "ты"),
    ("ru", "Вы знаете?", "вы", "вы"),
    ("ru", "Скажу вам о вашей работе.", "вы", "вы"),
    ("ru", "Ты сказал «вы».", None, None),
    ("ru", "Он выше, тыква, новый вывод", None, None),
]
# All forms of grammars; each is unambiguous by itself within a sentence.
FORMS = {
    ("de", "du"): "du dich dir dein deine deinem deinen deiner deines deins deinetwegen deinetwillen deinesgleichen",
    ("de", "Sie"): "Sie Ihnen Ihr Ihre Ihrem Ihren Ihrer Ihres Ihretwegen Ihretwillen",
    ("fr", "tu"): "tu te toi ton ta tes tien t'aime t’aime",
    ("fr", "vous"): "vous votre vos vôtre vôtres",
    ("es", "tú"): "tú te ti contigo tu tus tuyo tuya tuyos tuyas vosotros vosotras os vuestro vuestra vuestros "
    "vuestras",
    ("es", "usted"): "usted ustedes Ud. Uds. Vd. Vds.",
    ("ru", "ты"): "ты тебя тебе тобой тобою твой твоего твоему твоим твоём твоем твоя твоей твоею твою твоё твое твои "
    "твоих твоими",
    ("ru", "вы"): "вы вас вам вами ваш вашего вашему вашим вашем ваша вашей вашею вашу ваше ваши ваших вашими",
}


@pytest.mark.parametrize("language, register", FORMS)
def test_all_forms(language, register):
    rule = RULES[language]()
    for form in FORMS[language, register].split():
        assert rule.register_of(f"xx {form} xx") == register, form
        assert rule.register_of(f"xx{form}xx") is None, form
        if language != "de":
            assert rule.register_of(f"xx {form.capitalize()} xx") == register, form


@pytest.mark.parametrize("language", RULES.names())
def test_register_of_sentences(language):
    rule = RULES[language]()
    for _, line, register, unambiguous in (one for one in LINES if one[0] == language):
        assert rule.register_of(line) == register, line
        assert rule.register_of(line, unambiguous_only=True) == unambiguous, line


@pytest.mark.skipif(not MANUALS.exists(), reason="no en-de-manuals in DOCNMT_SHARED_DATA")
def test_agreement_with_manual_annotation():
    """Rows of the annotation: line from 0, and du, Sie, ihr (neither register) or none (Sie is "she", Ihr "its")."""
    rule, lines = RULES["de"](), (MANUALS / "test.de").read_text(encoding="utf-8").split("\n")
    rows = (line.split("\t") for line in ANNOTATION.read_text(encoding="utf-8").splitlines())
    annotated = {int(line): register if register in rule.markers else None for line, register in rows}
    for unambiguous_only, least in ((True, 97), (False, 95)):
        found = {line: rule.register_of(lines[line], unambiguous_only=unambiguous_only) for line in annotated}
        assert sum(found[line] == register for line, register in annotated.items()) >= least


def test_custom_language(monkeypatch):
    class Toy(RegisterRule):
        markers = {"thou": re.compile("thou"), "ye": re.compile("ye")}

    monkeypatch.setattr(RULES, "_classes", dict(RULES._classes))
    RULES.register("enm")(Toy)
    kind = METRICS["register"]
    metric = kind(reference_set([["thou", "ye", "none"]]), kind.Options(register_language="enm"))
    assert metric.labels == ["thou", "ye", None]
    with pytest.raises(ValueError, match="--register-language xx"):
        RegisterOptions("xx")
