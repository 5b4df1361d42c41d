"""Theorems, identities and experiments of deep learning that measure themselves."""

from ansatz.claims.claim import Claim as Claim
from ansatz.claims.claim import Erratum as Erratum
from ansatz.claims.finding import Check as Check
from ansatz.claims.finding import Finding as Finding
from ansatz.claims.finding import Table as Table
from ansatz.claims.finding import Wrong as Wrong
from ansatz.claims.outcome import Outcome as Outcome
from ansatz.claims.picture import figure as figure
from ansatz.claims.registry import get as get
from ansatz.claims.registry import names as names
from ansatz.claims.registry import run as run
from ansatz.claims.verification import verify as verify
