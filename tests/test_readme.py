"""The README quotes the benchmark records and nothing else."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_its_numbers_are_those_of_the_records():
    command = [sys.executable, ROOT / "benchmarks" / "readme.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
