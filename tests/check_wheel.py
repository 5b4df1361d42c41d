"""Builds wheel and sdist, installs the wheel in a clean environment and uses it as a user would."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = "Scripts" if os.name == "nt" else "bin"


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command and gives its standard output; a failure ends the check with its output."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Exits with 1 and the reason if anything is missing from what we would publish."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        run(sys.executable, "-m", "build", "--outdir", work / "dist", ROOT, cwd=work)
        (wheel,) = (work / "dist").glob("*.whl")
        (sdist,) = (work / "dist").glob("*.tar.gz")
        venv.create(work / "env", with_pip=True)
        python = work / "env" / BIN / "python"
        constraints = ROOT / "constraints.txt"
        install = [python, "-m", "pip", "install", "-q", "-c", constraints]
        run(*install, "torch", cwd=work)
        run(*install, wheel, cwd=work)
        ansatz = work / "env" / BIN / "ansatz"
        version = run(ansatz, "--version", cwd=work)
        run(ansatz, "fit", "diabetes", "--target", "progression", "--out", "model", "-q", cwd=work)
        predicted = run(ansatz, "predict", "model", "diabetes", "--interval", "0.9", cwd=work)
        lines = predicted.splitlines()
        if len(lines) != 443 or not lines[0].endswith("prediction,lower,upper"):
            sys.exit(f"ansatz predict wrote {len(lines)} lines, the first being {lines[:1]}")
        run(python, "-m", "pip", "check", cwd=work)
        print(f"{wheel.name}, {sdist.name}: installed and used, {version.strip()}")
        shutil.rmtree(work / "env")


if __name__ == "__main__":
    main()
