"""ansatz generate: text from a language model."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.output import print_document, print_note
from ansatz.errors import UsageError


def generate(
    model: Annotated[
        Path, typer.Argument(help="The folder that ansatz fit --task language wrote.")
    ],
    prompt: Annotated[str, typer.Option("--prompt", help="The text to continue.")] = "",
    length: Annotated[int, typer.Option(min=1, help="Tokens at most.")] = 200,
    temperature: Annotated[
        float, typer.Option(min=0, help="0 takes the most probable token; 1 draws by the model.")
    ] = 1.0,
    top_k: Annotated[int, typer.Option(min=0, help="Tokens to draw from; 0 for all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Least total probability of these tokens.")] = 1.0,
    beams: Annotated[
        int, typer.Option(min=1, help="Continuations that a beam search follows.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Continue a text by a language model, token by token.

    Example:
        ansatz generate tinyshakespeare-model --prompt "ROMEO:"
        ansatz generate tinyshakespeare-model --prompt "ROMEO:" --temperature 0.8 --top-k 20
        ansatz generate tinyshakespeare-model --prompt "ROMEO:" --beams 4 --length 40
    """
    from ansatz.cli.opening import open_model
    from ansatz.estimators.language_model import LanguageModel, describe_unknown

    estimator = open_model(model)
    if not isinstance(estimator, LanguageModel):
        raise UsageError(f"{model} is not a language model: fit one with --task language.")
    note = describe_unknown(estimator, prompt)
    if note is not None:
        print_note(f"note: {note}")
    if beams > 1:
        text = estimator.generate(prompt, length, temperature=0.0, beams=beams)
        pieces = iter([text])
    else:
        pieces = estimator.stream(
            prompt, length, temperature=temperature, top_k=top_k, top_p=top_p, random_state=seed
        )
    if as_json:
        print_document({"prompt": prompt, "text": "".join(pieces), "seed": seed})
        return
    print(prompt, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
