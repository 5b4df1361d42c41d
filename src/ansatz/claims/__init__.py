"""The textbook, executable: each theorem, identity and experiment measures itself."""

from ansatz.claims.check import Check as Check
from ansatz.claims.check import Wrong as Wrong
from ansatz.claims.claim import Claim as Claim
from ansatz.claims.claim import Erratum as Erratum
from ansatz.claims.finding import Finding as Finding
from ansatz.claims.finding import Table as Table
from ansatz.claims.registry import get as get
from ansatz.claims.registry import names as names
from ansatz.claims.registry import run as run
