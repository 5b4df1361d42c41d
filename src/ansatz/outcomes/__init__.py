"""The second axis, beside the likelihood: what is predicted."""

from ansatz.outcomes.registry import CENSORED as CENSORED
from ansatz.outcomes.registry import DEFAULT as DEFAULT
from ansatz.outcomes.registry import by_data as by_data
from ansatz.outcomes.registry import by_contents as by_contents
from ansatz.outcomes.registry import by_file as by_file
from ansatz.outcomes.registry import by_option as by_option
from ansatz.outcomes.registry import claims as claims
from ansatz.outcomes.registry import create as create
from ansatz.outcomes.registry import names as names
from ansatz.outcomes.registry import on_structure as on_structure
from ansatz.outcomes.registry import register as register
from ansatz.outcomes.registry import registry as registry
from ansatz.outcomes.registry import without_target as without_target
