"""Claims about speed, memory and quality, measured beside what a user would pick instead."""

from ansatz.bench.bar import Bar as Bar
from ansatz.bench.finding import Finding as Finding
from ansatz.bench.options import Options as Options
