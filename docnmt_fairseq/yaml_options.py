"""Options of task, model, ... in the YAML of ``fairseq-hydra-train``: one that is wrong is named, and where it stands.

hydra knows the options of fairseq's own groups, and says itself what is wrong with them; those of what registers itself
are compared only when the training has begun.
"""

from difflib import get_close_matches
from typing import Any

from docnmt_fairseq.errors import InputError, first_line


def patch_fairseq() -> None:
    """Lets fairseq say so, in this process, where it completes a group of options."""
    from fairseq.dataclass import utils
    from omegaconf import OmegaConf
    from omegaconf.errors import ConfigKeyError, ValidationError

    merge = utils.merge_with_parent

    def merge_named(defaults: Any, group: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return merge(defaults, group, *args, **kwargs)
        except ConfigKeyError as error:
            *within, name = str(error.full_key).split(".")  # such as encoder.embed_dim
            known = OmegaConf.structured(defaults)
            for group_name in within:
                known = known[group_name]
            likely = get_close_matches(name, known, n=1)
            meant = f"; is it {'.'.join([*within, likely[0]])}?" if likely else ""
            place = f"{group._key()}.{error.full_key}"
            raise InputError(f"{place}: {group.get('_name')} has no such option{meant}") from error
        except ValidationError as error:
            place = f"{group._key()}.{error.full_key}".rstrip(".")
            raise InputError(f"{place}: {first_line(error)}") from error

    utils.merge_with_parent = merge_named
