"""Options of ``--set`` that nobody takes."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from inspect import Parameter

from ansatz.errors import UsageError

SUPPLIED = ("inputs", "outputs", "generator")  # arguments of a network that a fit gives itself


def refuse_unknown(
    names: Iterable[str], takes: Mapping[str, Parameter], network: str, known: Collection[str]
) -> None:
    """Rejects options that nobody takes, with the nearest name and the list of all.

    Args:
        names: of options that are left for the network.
        takes: the parameters of the network's factory.
        network: its name.
        known: the options of the fit.
    """
    if any(each.kind is each.VAR_KEYWORD for each in takes.values()):
        return
    own = [name for name in takes if name not in SUPPLIED]
    others = sorted(set(known) - set(own))
    for name in names:
        if name in own:
            continue
        near = difflib.get_close_matches(name, [*own, *known], n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise UsageError(
            f"--set {name}: not an option of the fit or of network '{network}'.{hint} Of the "
            f"network: {', '.join(own) or 'none'}; of the fit: {', '.join(others)}. To see what "
            f"they mean: ansatz show {network} --options"
        )
