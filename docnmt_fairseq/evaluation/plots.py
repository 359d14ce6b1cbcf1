"""Plots of results as PNG."""

from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

import numpy as np

# Okabe and Ito's palette for colour-blind readers; markers distinguish systems in greyscale.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"


def plot_accuracy_by_distance(
    systems: Mapping[str, Dict[str, Any]], path: Path, ceilings: Optional[Mapping[str, float]] = None
) -> None:
    """Plots accuracy against distance: one panel per kind, one line per system, error bars for 95 % intervals.

    Args:
        systems: accuracy by name of the system (``phenomena`` of ``docnmt score --synth``), at least one.
        path: PNG file.
        ceilings: best accuracy without context by kind, drawn as a dashed line.
    """
    from matplotlib.figure import Figure  # not pyplot, whose global state selects a window system
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    kinds = sorted({kind for accuracy in systems.values() for kind in accuracy["by_kind"]})
    figure = Figure(figsize=(1.2 + 3.6 * len(kinds), 4.2), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    entries: Dict[str, Any] = {}
    for kind, panel in zip(kinds, panels):
        entries.update(_draw_panel(panel, kind, systems))
        if ceilings and kind in ceilings:
            line = panel.axhline(ceilings[kind], color="#555555", linestyle="--", linewidth=1.2)
            entries["ceiling without context"] = line
        panel.set(title=kind, xlabel="distance to the antecedent (sentences)", ylim=(0, 1.03))
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.yaxis.set_major_formatter(PercentFormatter(1.0))
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("accuracy")
    # matplotlib interprets $ in names as a formula, and a leading _ as "not in the legend".
    numbered = map(str, range(len(entries)))
    legend = figure.legend(entries.values(), numbered, loc="outside lower center", ncols=min(4, len(entries)))
    for text, name in zip(legend.get_texts(), entries):
        text.set(text=name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), parse_math=False)
    figure.suptitle("Context-dependent words: accuracy by distance, with 95 % intervals")
    figure.savefig(path)


def _draw_panel(panel: Any, kind: str, systems: Mapping[str, Dict[str, Any]]) -> Dict[str, Any]:
    """Draws one kind and returns the legend entry of each system."""
    drawn = {}
    for number, (name, accuracy) in enumerate(systems.items()):
        figures = accuracy["by_kind_and_distance"].get(kind, {})
        shares = [figure["accuracy"] for figure in figures.values()]
        # Rounding may put an end of the interval on the wrong side of the share.
        below = [max(0.0, figure["accuracy"] - figure["interval"][0]) for figure in figures.values()]
        above = [max(0.0, figure["interval"][1] - figure["accuracy"]) for figure in figures.values()]
        # Shifted, so that the error bars of systems do not overlap.
        places = [int(distance) + 0.12 * (number - (len(systems) - 1) / 2) for distance in figures]
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        drawn[name] = panel.errorbar(
            places, shares, yerr=[below, above], markersize=4, linewidth=1.4, elinewidth=0.8, **style
        )
    return drawn


def plot_source_weights(
    names: Sequence[str], sentences: Sequence[Sequence[str]], weights: Sequence[np.ndarray], path: Path
) -> None:
    """Plots attention to sources as figure 2 of Libovický and Helcl (2017): a panel per sentence, a row per source.

    Args:
        names: the K sources.
        sentences: words of each translation, at least one.
        weights: [words, K] of each translation, from 0 to 1.
        path: PNG file.
    """
    from matplotlib.figure import Figure

    longest = max(map(len, sentences))
    letters = max(len(word) for words in sentences for word in words)
    height = 0.45 + 0.32 * len(names) + 0.07 * letters  # of a panel with its rotated words, in inches
    figure = Figure(figsize=(3.0 + 0.42 * longest, 0.3 + height * len(sentences)), dpi=150, layout="constrained")
    panels = figure.subplots(len(sentences), 1, squeeze=False)[:, 0]
    for words, shares, panel in zip(sentences, weights, panels):
        picture = panel.imshow(shares.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        panel.set_xlim(-0.5, longest - 0.5)  # equal word widths in all panels
        panel.set_xticks(range(len(words)), words, rotation=45, ha="left", rotation_mode="anchor", parse_math=False)
        panel.set_yticks(range(len(names)), names, parse_math=False)
        panel.set_xticks([place + 0.5 for place in range(len(words) - 1)], minor=True)
        panel.set_yticks([place + 0.5 for place in range(len(names) - 1)], minor=True)
        panel.grid(which="minor", color="white", linewidth=1.5)
        panel.tick_params(which="both", top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
        panel.spines[:].set_visible(False)
    figure.colorbar(picture, ax=panels, label="share of the attention", fraction=0.02, aspect=30, pad=0.01)
    figure.savefig(path, format="png")
