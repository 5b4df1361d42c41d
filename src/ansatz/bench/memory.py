"""How much memory a fit takes to a table that is larger."""

import json
import subprocess
import sys
from pathlib import Path

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options
from ansatz.errors import ResourceError


def memory(options: Options) -> list[Finding]:
    """A 2 GB CSV through the command: the peak of resident memory, at most 1 GB.

    The script ``benchmarks/memory.py`` of the source tree generates the file and measures.

    Example:
        >>> from ansatz.bench.memory import script
        >>> script().name
        'memory.py'
    """
    path = script()
    limit = {"ours": Bar(at_most=1.0)}
    if not path.exists():
        return [Finding("memory", "GiB", missing=[f"{path.name} of the source tree"])]
    options.tell("generating 2 GB of CSV and fitting it; this takes minutes")
    command = [sys.executable, str(path), "--no-record"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout[done.stdout.find("{") :]
    if not text:
        raise ResourceError(f"{path.name} failed: {done.stderr.strip()[-300:] or done.stdout}")
    result = json.loads(text)
    return [Finding("memory", "GiB", result["peak_rss_bytes"] / 2**30, limit=limit, facts=result)]


def script() -> Path:
    """Where the script is, when the package runs from its source tree.

    Example:
        >>> from ansatz.bench.memory import script
        >>> script().parent.name
        'benchmarks'
    """
    return Path(__file__).parents[3] / "benchmarks" / "memory.py"
