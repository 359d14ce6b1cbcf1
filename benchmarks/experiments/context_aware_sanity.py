"""Sanity tasks of context-aware layers printed in [Z] sec. 4.5.1: XOR and a smooth surface; and CA-RES as a ResNet.

python -m benchmarks.experiments.context_aware_sanity [--seeds 10] [--results DIR]
"""

import argparse
import statistics
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import torch
from torch import Tensor, nn

from benchmarks.lib.measuring import run_benchmark
from benchmarks.lib.reporting import new_figure, table
from docnmt_fairseq.ca_layers.feed_forward import ContextAwareLayer, ContextAwareResidual, ResidualBlock
from docnmt_fairseq.layers.capture import ContextFreeIndicator, capture

TITLE = "Context-aware layers: the sanity tasks of [Z] sec. 4.5.1"
STEPS, RATE, WIDTH = 1000, 0.1, 5
OPTIMISERS = {"Adagrad": torch.optim.Adagrad, "Adam": torch.optim.Adam}
PUBLISHED = {"CA-NN, one layer": 0.0063, "CA-NN, two layers": 0.0029}
SURFACE = 81  # points a side
TRAINED = round(0.01 * SURFACE**2)
GRID, SOLVED = 61, 0.01


def dense(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.Tanh())


def gated(inputs: int, outputs: int) -> nn.Module:
    return ContextAwareLayer(dense(inputs, outputs), inputs, outputs)


XOR_MODELS: Dict[str, Callable[[], nn.Module]] = {
    "CA-NN": lambda: gated(2, 1),
    "NN, 1 hidden": lambda: nn.Sequential(dense(2, 1), nn.Linear(1, 1)),
    "NN, 2 hidden": lambda: nn.Sequential(dense(2, 2), nn.Linear(2, 1)),
    "NN, 4 hidden": lambda: nn.Sequential(dense(2, 4), nn.Linear(4, 1)),
}
SURFACE_MODELS: Dict[str, Callable[[], nn.Module]] = {
    "CA-NN, one layer": lambda: nn.Sequential(gated(2, WIDTH), nn.Linear(WIDTH, 1)),
    "CA-NN, two layers": lambda: nn.Sequential(gated(2, WIDTH), gated(WIDTH, WIDTH), nn.Linear(WIDTH, 1)),
    "NN, one layer": lambda: nn.Sequential(dense(2, WIDTH), nn.Linear(WIDTH, 1)),
    "NN, two layers": lambda: nn.Sequential(dense(2, WIDTH), dense(WIDTH, WIDTH), nn.Linear(WIDTH, 1)),
}


def square(least: float, most: float, points: int) -> Tensor:
    """Returns the points of a grid, [points², 2], the first coordinate changing slowly."""
    side = torch.linspace(least, most, points)
    return torch.cartesian_prod(side, side)


def fit(make: Callable[[], nn.Module], x: Tensor, y: Tensor, optimiser: str, seed: int, steps: int) -> nn.Module:
    """Returns the model after training on all points at once with the squared error."""
    torch.manual_seed(seed)
    model = make()
    updates = OPTIMISERS[optimiser](model.parameters(), lr=RATE)
    for _ in range(steps):
        updates.zero_grad()
        (model(x).squeeze(1) - y).square().mean().backward()
        updates.step()
    return model.eval().requires_grad_(False)


def xor() -> Tuple[Tensor, Tensor]:
    return torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]), torch.tensor([1.0, 1.0, 0.0, 0.0])


def surface(seed: int) -> Tuple[Tensor, Tensor, Tensor]:
    """Returns all points [6561, 2], their heights, and which are for training, [6561]."""
    x = square(-2, 2, SURFACE)
    chosen = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:TRAINED]
    return x, x[:, 0] * (-x.square().sum(1)).exp(), torch.zeros(len(x), dtype=torch.bool).index_fill(0, chosen, True)


def parameters(make: Callable[[], nn.Module]) -> int:
    return sum(parameter.numel() for parameter in make().parameters())


def run_xor(seeds: int, steps: int) -> List[dict]:
    x, y = xor()
    rows = []
    for name, make in XOR_MODELS.items():
        for optimiser in OPTIMISERS:
            models = [fit(make, x, y, optimiser, seed, steps) for seed in range(seeds)]
            errors = [float((model(x).squeeze(1) - y).square().mean()) for model in models]
            row = {"model": name, "parameters": parameters(make), "optimiser": optimiser, "errors": errors}
            rows.append({**row, "solved": sum(error < SOLVED for error in errors)})
    return rows


def run_surface(seeds: int, steps: int) -> List[dict]:
    rows = []
    for name, make in SURFACE_MODELS.items():
        for optimiser in OPTIMISERS:
            absolute, squared = [], []
            for seed in range(seeds):
                x, y, trained = surface(seed)
                model = fit(make, x[trained], y[trained], optimiser, seed, steps)
                wrong = (model(x).squeeze(1) - y)[~trained]
                absolute.append(float(wrong.abs().mean()))
                squared.append(float(wrong.square().mean()))
            row = {"model": name, "parameters": parameters(make), "optimiser": optimiser}
            rows.append({**row, "absolute": absolute, "squared": squared})
    return rows


class Sum(nn.Module):
    """v_2(c, w_1) = c + w_1."""

    def forward(self, c: Tensor, w: Tensor) -> Tensor:
        """Returns [..., d]."""
        return c + w


class Residual(nn.Module):
    """x + F(x)."""

    def __init__(self, function: nn.Module):
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """Returns [..., d]."""
        return x + self.function(x)


def residual_difference(steps: int) -> float:
    """Returns how far two networks of two blocks are apart after training: CA-RES (2, 1, –, 1), and x + F(x)."""
    block = ResidualBlock.parse("2,1,-,1")
    x, y, trained = surface(0)

    def make(wrap: Callable[[nn.Module], nn.Module]) -> Callable[[], nn.Module]:
        return lambda: nn.Sequential(*[wrap(dense(2, 2)) for _ in range(2)], nn.Linear(2, 1))

    ours, theirs = (
        fit(make(wrap), x[trained], y[trained], "Adam", 0, steps)(x)
        for wrap in (lambda f: ContextAwareResidual(block, [f, Sum()], [2, 2, 2]), Residual)
    )
    return float((ours - theirs).abs().max())


def draw_surfaces(path: Path, steps: int) -> None:
    """Draws surfaces and χ of one training each, with Adam ([Z] figs. 15 and 16)."""
    x, y = xor()
    extended = square(-0.5, 1.5, GRID)
    of_xor: List[Tuple[str, Tensor, Tuple[float, float]]] = []
    for name in ("CA-NN", "NN, 2 hidden"):
        of_xor += pictures_of(name, fit(XOR_MODELS[name], x, y, "Adam", 0, steps), extended, (-0.5, 1.5))
    places, heights, trained = surface(0)
    of_surface = [("x·exp(−x² − y²)", heights.view(SURFACE, SURFACE), (-0.45, 0.45))]
    for name in PUBLISHED:
        model = fit(SURFACE_MODELS[name], places[trained], heights[trained], "Adam", 0, steps)
        of_surface += pictures_of(name, model, places, (-0.45, 0.45))
    figure, panels = new_figure(2, len(of_surface), (15, 7))
    for row, found, (least, most) in zip(panels, (of_xor, of_surface), ((-0.5, 1.5), (-2.0, 2.0))):
        for panel in row[len(found) :]:
            panel.set_visible(False)
        for panel, (title, values, (low, high)) in zip(row, found):
            extent = (least, most, least, most)
            image = panel.imshow(values.t(), origin="lower", extent=extent, vmin=low, vmax=high, cmap="viridis")
            panel.set(title=title, xlabel="x", ylabel="y")
            figure.colorbar(image, ax=panel, location="bottom", shrink=0.8)
    panels[0][0].scatter(*x.t(), c=["white" if value else "black" for value in y], edgecolors="red")
    panels[1][0].scatter(*places[trained].t(), s=4, c="red")
    figure.suptitle("Above XOR (white 1, black 0), below the smooth surface (red: points of the training)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def pictures_of(
    name: str, model: nn.Module, x: Tensor, limits: Tuple[float, float]
) -> List[Tuple[str, Tensor, Tuple[float, float]]]:
    """Returns the height over a grid, and χ of every layer that has one."""
    with capture(ContextFreeIndicator) as recording:
        heights = model(x)
    side = round(len(x) ** 0.5)
    found = [(name, heights.view(side, side), limits)]
    for number, (_, evidence) in enumerate(recording.entries, 1):
        found.append((f"{name}:\nχ of layer {number}", evidence.chi.view(side, side), (0.0, 1.0)))
    return found


def spread(values: List[float]) -> str:
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{statistics.mean(values):.4f}; {median:.4f} ({low:.4f}-{high:.4f})"


OPEN = (
    "The text gives steps, rate, width (5) and number of layers. It does not specify the optimiser (Adagrad "
    "elsewhere), the batch (here all points), the map from a vector of 5 to a height (here a linear layer), v (here "
    "tanh of a linear map, as in its XOR), initial values, the number of runs, the training points, and whether the "
    "“average prediction error” is absolute or squared: both are given."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a training (default: as in the text)")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="also draw the surfaces (PNG)")


def measure(args: argparse.Namespace) -> dict:
    """Returns the runs of both tasks, and the difference of CA-RES from a residual network."""
    if args.picture:
        draw_surfaces(args.picture, args.steps)
    runs = {"xor": run_xor(args.seeds, args.steps), "surface": run_surface(args.seeds, args.steps)}
    return {**runs, "residual": residual_difference(args.steps)}


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""

    def kind(row: dict) -> list[str]:
        return [row["model"], str(row["parameters"]), row["optimiser"]]

    of_xor = [[*kind(row), f"{row['solved']} of {len(row['errors'])}"] for row in figures["xor"]]
    of_surface = [
        [*kind(row), spread(row["absolute"]), spread(row["squared"]), str(PUBLISHED.get(row["model"], ""))]
        for row in figures["surface"]
    ]
    errors = [f"{name} error: mean; median (quartiles)" for name in ("absolute", "squared")]
    return [
        f"{args.steps:,} steps, learning rate {RATE}, squared error, {args.seeds} seeds. {OPEN}",
        f"## XOR\n\nSolved: squared error below {SOLVED}. CA-NN is one layer of one output.",
        table(["model", "parameters", "optimiser", "solved"], of_xor),
        f"## x·exp(−x² − y²): {TRAINED} of {SURFACE**2:,} points trained on, error on the others",
        table(["model", "parameters", "optimiser", *errors, "published"], of_surface),
        "## CA-RES as a residual network",
        "Two blocks (2, 1, –, 1) with v_2(c, w_1) = c + w_1, and two of x + F(x), trained from the same seed: largest "
        f"difference of an output {figures['residual']:g}.",
    ]


if __name__ == "__main__":
    run_benchmark("benchmarks.experiments.context_aware_sanity")
