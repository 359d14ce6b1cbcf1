"""Figures ``sentences``: how many sentences the splits of recipes have, as prepared."""

from typing import Dict, List

from docnmt_fairseq.recipes.dataset_file import read_dataset_config, recipe_path
from docnmt_fairseq.recipes.result_files import read_json
from docnmt_fairseq.recipes.run import Recipe
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures

PAIRS_A_SECOND = 2_500  # of 8 words: tokenised by Moses, truecased, BPE and data-bins, on one core of a CPU


@FIGURES.register("sentences")
class SentencesOfSplits(Figures):
    """A cell is a split of a recipe. Nothing is trained."""

    settings = ("recipe", "split")
    processor = "CPU"

    def hours(self) -> float:
        """See :class:`Figures`: of as many sentences as were published; downloads come on top."""
        configs = (read_dataset_config(recipe_path(name)) for name in self._recipes())
        pairs = sum(sum(one.published.sentences.values()) for one in configs if one.published)
        return pairs / PAIRS_A_SECOND / 3600

    def values(self) -> Dict[Cell, List[float]]:
        """See :class:`Figures`."""
        counts = {}
        for name in self._recipes():
            options = self.request.of_recipe(self.request.output / name, until="prepare")
            recipe = Recipe(read_dataset_config(recipe_path(name)), options)
            recipe.run()
            counts[name] = read_json(recipe.output / "data" / "manifest.json")["counts"]
        return {cell: [counts[cell.settings["recipe"]][cell.settings["split"]]["sentences"]] for cell in self.cells}

    def _recipes(self) -> List[str]:
        return list(dict.fromkeys(cell.settings["recipe"] for cell in self.cells))
