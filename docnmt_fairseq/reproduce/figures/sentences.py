"""Figures ``sentences``: how many sentences the splits of recipes have, as prepared."""

from typing import Dict, List

from docnmt_fairseq.recipes.dataset import read_dataset_config, recipe_path
from docnmt_fairseq.recipes.result_files import read_json
from docnmt_fairseq.recipes.run import Recipe
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures


@FIGURES.register("sentences")
class SentencesOfSplits(Figures):
    """A cell is a split of a recipe. Nothing is trained."""

    settings = ("recipe", "split")

    def values(self) -> Dict[Cell, List[float]]:
        """See :class:`Figures`."""
        counts = {}
        for name in dict.fromkeys(cell.settings["recipe"] for cell in self.cells):
            options = self.request.of_recipe(self.request.output / name, until="prepare")
            recipe = Recipe(read_dataset_config(recipe_path(name)), options)
            recipe.run()
            counts[name] = read_json(recipe.output / "data" / "manifest.json")["counts"]
        return {cell: [counts[cell.settings["recipe"]][cell.settings["split"]]["sentences"]] for cell in self.cells}
