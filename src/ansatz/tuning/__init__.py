"""The search for a better recipe, evaluated by rows that it never sees."""

from ansatz.fitting.space import Space as Space
from ansatz.tuning.journal import Trial as Trial
from ansatz.tuning.search_result import Tuning as Tuning
from ansatz.tuning.space import parse_space as parse_space
from ansatz.tuning.tune import tune as tune
