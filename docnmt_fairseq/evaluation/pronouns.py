"""Pronouns by language: those of the third person, which a document's other sentences decide.

Forms that are more often something else are left out: articles (French le, la, les, Spanish la, lo, los, las), and
German sein, the verb.
"""

from typing import Dict, FrozenSet, Tuple

GERMAN = ("er", "sie", "es", "ihn", "ihm", "ihr", "ihnen")
SEINE = ("seine", "seinem", "seinen", "seiner", "seines")
IHRE = ("ihre", "ihrem", "ihren", "ihrer", "ihres")
RUSSIAN = ("он", "она", "оно", "они", "его", "её", "ее", "ему", "ей", "им", "их", "ими", "ею")
AFTER_PREPOSITIONS = ("него", "неё", "нее", "нему", "ней", "ним", "них", "ними", "нею", "нём", "нем")

PRONOUNS: Dict[str, Tuple[str, ...]] = {
    "de": (*GERMAN, *SEINE, *IHRE),
    "en": ("he", "she", "it", "they", "him", "her", "them", "his", "hers", "its", "their", "theirs"),
    "es": ("él", "ella", "ello", "ellos", "ellas", "le", "les", "su", "sus", "suyo", "suya", "suyos", "suyas"),
    "fr": ("il", "elle", "ils", "elles", "lui", "leur", "leurs", "eux", "son", "sa", "ses"),
    "ru": (*RUSSIAN, *AFTER_PREPOSITIONS),
}
# Forms that are the second person where they have a capital that no sentence gives them: Sie, Ihnen, Ihr, Ihre.
POLITE: Dict[str, FrozenSet[str]] = {"de": frozenset(("sie", "ihnen", "ihr", *IHRE))}
