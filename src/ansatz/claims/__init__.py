"""The textbook, executable: each theorem, identity and experiment measures itself."""

from ansatz.claims.check import Check as Check
from ansatz.claims.check import Wrong as Wrong
from ansatz.claims.claim import Claim as Claim
from ansatz.claims.claim import Erratum as Erratum
from ansatz.claims.corrections import Correction as Correction
from ansatz.claims.corrections import errata as errata
from ansatz.claims.course import Row as Row
from ansatz.claims.course import Section as Section
from ansatz.claims.course import course as course
from ansatz.claims.course import coverage as coverage
from ansatz.claims.finding import Finding as Finding
from ansatz.claims.finding import Table as Table
from ansatz.claims.outcome import Outcome as Outcome
from ansatz.claims.picture import figure as figure
from ansatz.claims.picture import render as render
from ansatz.claims.registry import get as get
from ansatz.claims.registry import names as names
from ansatz.claims.registry import run as run
from ansatz.claims.selection import areas as areas
from ansatz.claims.selection import select as select
from ansatz.claims.verification import verify as verify
