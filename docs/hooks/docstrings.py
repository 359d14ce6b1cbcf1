"""How docstrings come into the site: what they name by Sphinx's roles becomes code."""

from griffe import Extension, Object
from option_tables import as_markdown


class RolesAsCode(Extension):
    """Replaces ``:class:`x``` and the like, everywhere, by the name that it shows."""

    def on_instance(self, *, obj: Object, **kwargs: object) -> None:
        """Called by griffe for every object that it finds."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
