"""The first axis: what does x look like?"""

from ansatz.structures.registry import create as create
from ansatz.structures.registry import names as names
from ansatz.structures.registry import register as register
from ansatz.structures.registry import registry as registry
