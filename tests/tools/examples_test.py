#!/usr/bin/env python3
"""Runs the examples of docs/tools.md on a real run, where the packages that they want are there.

    examples_test.py --program build/release/paceline
"""

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs/tools.md"
TRAIN = ["train", "--model", "mnist-cnn", "--data", "synthetic,train=64,test=16", "--local-batch", "16", "--epochs", "2", "--threads", "1",
         "--no-pin", "--out", "out"]


def run(words, folder):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"FAILED: {words}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    program = parser.parse_args().program.resolve()
    examples = re.findall(r"^```(python|r)\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    ran = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([program, *TRAIN], folder)
        run([program, "report", "out", "--records-csv", "runs.csv"], folder)
        for number, (language, text) in enumerate(examples, 1):
            (folder / "example").write_text(text)
            if language == "r":
                missing = [] if shutil.which("Rscript") else ["R"]
            else:
                wanted = re.findall(r"^import (\w+)", text, re.M)
                missing = [package for package in wanted if importlib.util.find_spec(package) is None]
                compile(text, f"example {number}", "exec")
            if missing or "wandb" in text:  # which would ask for an account
                print(f"example {number} not run: {', '.join(missing) or 'it wants an account'}")
                continue
            said = run(["Rscript" if language == "r" else sys.executable, "example"], folder)
            if not said.strip():
                sys.exit(f"FAILED: example {number} says nothing")
            ran.append(number)
    if len(ran) < 2:
        sys.exit(f"FAILED: only the examples {ran} of {len(examples)} ran; two need nothing but Python")
    print(f"examples {ran} of {len(examples)} ran")


if __name__ == "__main__":
    main()
