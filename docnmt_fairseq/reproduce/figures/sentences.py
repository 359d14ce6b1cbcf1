"""Figures ``sentences``: numbers of sentences of prepared splits."""

from typing import Dict, List

from docnmt_fairseq.files import read_json
from docnmt_fairseq.recipes.dataset_file import read_dataset_config, recipe_path
from docnmt_fairseq.recipes.recipe import Recipe
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures, recipe_options

PAIRS_PER_SECOND = 2_500  # of 8 words: Moses tokens, truecased, BPE, data-bins, on one core


@FIGURES.register("sentences")
class SentencesOfSplits(Figures):
    """Size of a split of a recipe; nothing is trained."""

    settings = ("recipe", "split")
    processor = "CPU"

    def hours(self) -> float:
        """See :class:`Figures`: for the published numbers, without downloads."""
        configs = (read_dataset_config(recipe_path(name)) for name in self._recipes())
        pairs = sum(sum(one.published.sentences.values()) for one in configs if one.published)
        return pairs / PAIRS_PER_SECOND / 3600

    def values(self) -> Dict[Cell, List[float]]:
        """See :class:`Figures`."""
        counts = {}
        for name in self._recipes():
            recipe = Recipe(
                read_dataset_config(recipe_path(name)), recipe_options(self.request, name, stop_after="prepare")
            )
            recipe.run()
            counts[name] = read_json(recipe.output / "data" / "manifest.json")["counts"]
        return {cell: [counts[cell.settings["recipe"]][cell.settings["split"]]["sentences"]] for cell in self.cells}

    def _recipes(self) -> List[str]:
        return list(dict.fromkeys(cell.settings["recipe"] for cell in self.cells))
