"""The options of models of x itself."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from ansatz.fitting.options.option import MODEL, Option, read_settings, words


class GenerativeSettings(TypedDict, total=False):
    """What kind of model of x is fitted; ``--task generate`` reads them."""

    generator: Annotated[
        str | None,
        Option(
            "With --task generate: the model of x (ansatz list generators).",
            MODEL,
            metavar="NAME",
            complete="generators",
        ),
    ]
    generator_options: Annotated[
        Mapping[str, Any] | None,
        Option(
            "An option of the generator, its value as JSON. May be repeated.",
            MODEL,
            default={},
            flags=("--generator-option",),
            metavar="KEY=VALUE",
            reads=list[str],
            parse=read_settings,
        ),
    ]
    laws: Annotated[
        str | None,
        Option(
            "With --task generate: the likelihood of columns or pixels, COL=gamma or bernoulli."
        ),
    ]


class GenerativeOptions(GenerativeSettings, total=False):
    """The options of models of x itself."""

    given: Annotated[
        str | Sequence[str],
        Option(
            "With --task generate: columns that the others are drawn given.",
            MODEL,
            default=[],
            metavar="COL,...",
            reads=str,
            parse=words,
            listed=True,
        ),
    ]
