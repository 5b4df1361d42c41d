"""Lists the suites of benchmarks by name, and runs them."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import NamedTuple

from ansatz.bench.finding import BenchOptions, Finding
from ansatz.errors import UsageError


class Suite(NamedTuple):
    """A group of cases."""

    module: str  # where it is, imported when it runs
    function: str  # ``BenchOptions -> list of Finding``
    summary: str  # one line
    is_quick: bool = True  # whether it runs when no suite is named

    def run(self, options: BenchOptions) -> list[Finding]:
        """Runs the suite."""
        function: Callable[[BenchOptions], list[Finding]] = getattr(
            import_module(f"ansatz.bench.{self.module}"), self.function
        )
        return function(options)


SUITES = {
    "speed-large": Suite("speed", "speed_large", "784-256-128-10, 20,000 rows, batches of 128"),
    "speed-tiny": Suite("speed", "speed_tiny", "20-64-64-1, 1,000 rows, batches of 32"),
    "start": Suite("speed", "start", "ansatz --help beside an empty application"),
    "ensemble": Suite("speed", "ensemble", "ten members together and in turn"),
    "memory": Suite("speed", "memory", "a 2 GB CSV in 1 GB of memory", False),
    "coverage": Suite(
        "coverage", "coverage", "90 % intervals and calibration slopes of simulated rows", False
    ),
    "quality-uci": Suite("tables", "quality_uci", "five UCI tables, 20 published splits", False),
    "quality-survival": Suite("tables", "quality_survival", "METABRIC and GBSG, five seeds", False),
    "quality-tables": Suite(
        "tables", "quality_tables", "larger tables beside boosted trees", False
    ),
    "speed-images": Suite(
        "images", "speed_images", "LeNet-5 on MNIST, ResNet-18 on CIFAR-10", False
    ),
    "speed-sequences": Suite(
        "sequences", "speed_sequences", "minGRU, long sequences, variants of the LSTM", False
    ),
    "speed-graphs": Suite(
        "graphs", "speed_graphs", "graph networks on citations and on 4 M edges, beside PyG", False
    ),
    "speed-forecast": Suite("forecasts", "speed_forecast", "300 steps of window and mingru", False),
    "quality-forecast": Suite(
        "forecasts", "quality_forecast", "ETTh1, influenza, bicycles, three seeds", False
    ),
    "quality-images": Suite(
        "image_quality", "quality_images", "MNIST, Fashion-MNIST, CIFAR-10, three seeds", False
    ),
    "quality-text": Suite(
        "text_quality", "quality_text", "film reviews from scratch and from given weights", False
    ),
    "quality-language": Suite(
        "language", "quality_language", "tiny Shakespeare, three seeds", False
    ),
    "quality-tags": Suite("tag_quality", "quality_tags", "UPOS of ud-ewt, three seeds", False),
    "quality-translation": Suite(
        "translation", "quality_translation", "Multi30k: BLEU in 6 and in 60 minutes", False
    ),
    "quality-generative": Suite(
        "generative_quality", "quality_generative", "densities, synthetic tables, imputation", False
    ),
    "speed-molecules": Suite(
        "molecules", "speed_molecules", "pairs of 20,000 atoms beside ASE and matscipy", False
    ),
    "quality-molecules": Suite(
        "molecules", "quality_molecules", "forces of liquid water, three seeds", False
    ),
    "quality-segmentation": Suite(
        "image_quality", "quality_segmentation", "membranes of ISBI 2012, three seeds", False
    ),
}


def choose(names: Iterable[str]) -> list[str]:
    """Selects suites; without a name, those that take minutes and need no data."""
    chosen = list(names)
    for name in chosen:
        if name not in SUITES and name != "all":
            raise UsageError(f"no suite is called '{name}'. Known: {', '.join(SUITES)}, all.")
    if "all" in chosen:
        return list(SUITES)
    return chosen or [name for name, suite in SUITES.items() if suite.is_quick]


def run(names: Iterable[str], options: BenchOptions) -> Iterator[tuple[str, list[Finding]]]:
    """Runs suites one after the other and yields their findings."""
    for name in names:
        options.notify(name)
        yield name, SUITES[name].run(options)
