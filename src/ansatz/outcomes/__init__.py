"""The second axis, beside the likelihood: what is predicted."""

from ansatz.outcomes.registry import CENSORED as CENSORED
from ansatz.outcomes.registry import DEFAULT as DEFAULT
from ansatz.outcomes.registry import claims as claims
from ansatz.outcomes.registry import create as create
from ansatz.outcomes.registry import names as names
from ansatz.outcomes.registry import register as register
from ansatz.outcomes.registry import registry as registry
