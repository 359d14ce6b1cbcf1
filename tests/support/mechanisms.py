"""Construction of mechanisms from options."""

from dataclasses import fields

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig

LAYER = {field.name for field in fields(LayerConfig)}


def build_mechanism(mechanism, **values):
    """Returns a mechanism, by name or class, of a layer and with options; what an option's class lacks is left out."""
    cls = CONTEXT_MECHANISMS[mechanism] if isinstance(mechanism, str) else mechanism
    own = {field.name for field in fields(cls.Options)}
    layer = LayerConfig(**{name: value for name, value in values.items() if name in LAYER})
    return cls(layer, cls.Options(**{name: value for name, value in values.items() if name in own}))
