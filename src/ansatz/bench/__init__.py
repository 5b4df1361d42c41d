"""Claims about speed, memory and quality, measured beside what a user would pick instead."""

from ansatz.bench.bar import Bar as Bar
from ansatz.bench.finding import Finding as Finding
from ansatz.bench.options import Options as Options
from ansatz.bench.race import Race as Race
from ansatz.bench.race import race as race
from ansatz.bench.suites import SUITES as SUITES
