"""Measures the speed of training on images beside the peers."""

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ansatz.bench.finding import BenchOptions, Bound, Finding

if TYPE_CHECKING:
    from ansatz.bench.image_peers import Peer
    from ansatz.bench.image_task import Array, ImageTask

LENET = {"keras": Bound(at_least=1.5), "lightning": Bound(at_least=1.2)}
RESNET = {"keras": Bound(at_least=1.05), "hand loop": Bound(at_most=1.05)}
AUGMENTATION = {"without": Bound(at_most=1.15)}
CASES = ("lenet5", "augmentation", "resnet18")


def speed_images(options: BenchOptions) -> list[Finding]:
    """Measures LeNet-5 on MNIST with and without augmentation, and ResNet-18 on CIFAR-10.

    All use the same number of threads, by default that of torch, and are measured by wall time.
    """
    from ansatz.bench import image_task

    cases, found = options.pick(CASES), []
    if "lenet5" in cases or "augmentation" in cases:
        found += _lenet(image_task.digits(options.examples or image_task.DIGITS), cases, options)
    if "resnet18" in cases:
        task = image_task.photographs(options.examples or image_task.PHOTOGRAPHS)
        found.append(_resnet(task, options))
    return found


def ours(task: "ImageTask", *, augment: bool = False) -> "Callable[[Array], Array]":
    """Trains the public estimator with the task's network and otherwise the default recipe.

    The time includes reading, standardising, clipped gradients, the schedule and averaged weights.
    """
    from ansatz.bench.image_task import EVALUATED
    from ansatz.data.grids import Grids
    from ansatz.estimators import Classifier

    model = Classifier(
        network=task.network,
        network_options=task.options,
        batch_size=task.batch,
        epochs=task.epochs,
        learning_rate=task.rate,
        holdout=0.0,
        augment=augment,
        device="cpu",
    )
    model.fit(Grids.of(task.images, "first"), task.labels)

    def predict(images: "Array") -> "Array":
        chosen: Array = model.predict(Grids.of(images[:EVALUATED], "first"))
        return chosen

    return predict


def _lenet(task: "ImageTask", cases: Iterable[str], options: BenchOptions) -> list[Finding]:
    from ansatz.bench.image_peers import LENET as PEERS

    peers = PEERS if "lenet5" in cases else {}
    missing = _missing(peers)
    runs: dict[str, Callable[[], Any]] = {"ours": lambda: ours(task)}
    if "augmentation" in cases:
        runs["augmented"] = lambda: ours(task, augment=True)
    found, facts = _race(task, runs, peers, missing, options, rounds=5)
    findings = []
    if "lenet5" in cases:
        among = found.among(name for name in found.times if name != "augmented")
        findings.append(
            Finding.of(
                "lenet5", among, dict(LENET), clock="wall", missing=missing, facts=dict(facts)
            )
        )
    if "augmentation" in cases:
        times = {"augmented": found.times["augmented"], "without": found.times["ours"]}
        both = type(found)(times, threads=found.threads)
        findings.append(
            Finding.of("augmentation", both, dict(AUGMENTATION), us="augmented", clock="wall")
        )
    return findings


def _resnet(task: "ImageTask", options: BenchOptions) -> Finding:
    from ansatz.bench.image_peers import RESNET as PEERS
    from ansatz.bench.image_task import script

    missing = _missing(PEERS)
    if not script().exists():
        missing.append("hand loop")  # it is in the source tree alone
    runs = {"ours": lambda: ours(task)}
    found, facts = _race(task, runs, PEERS, missing, options, rounds=5)
    return Finding.of("resnet18", found, dict(RESNET), clock="wall", missing=missing, facts=facts)


def _race(
    task: "ImageTask",
    runs: Mapping[str, Callable[[], Any]],
    peers: "Mapping[str, tuple[str, Peer]]",
    missing: list[str],
    options: BenchOptions,
    *,
    rounds: int,
) -> tuple[Any, dict[str, Any]]:
    """Measures all contestants, with their training scores as a check."""
    import torch

    from ansatz.bench.race import race

    task.first, task.last  # noqa: B018  # computed before the clock starts
    contestants = dict(runs)
    for peer, (_, train) in peers.items():
        if peer not in missing:
            contestants[peer] = lambda train=train: train(task)  # type: ignore[misc]
    found = race(
        contestants,
        rounds=options.rounds or rounds,
        seed=options.seed,
        notify=options.notify,
        threads=options.threads or torch.get_num_threads(),
    )
    scores = {
        who: round(task.score(predict(task.images if who in runs else task.first)), 4)
        for who, predict in found.results.items()
    }
    facts = {"images": len(task.images), "steps": task.steps, "training score": scores}
    return found, facts


def _missing(peers: "Mapping[str, tuple[str, Peer]]") -> list[str]:
    return [
        peer for peer, (package, _) in peers.items() if importlib.util.find_spec(package) is None
    ]
