#!/usr/bin/env python3
"""What every command leaves on a terminal of 80, 100 and 140 columns: no line wider, and at most 25 lines at its end.

    tests/cli/widths_test.py PROGRAM

The end of a command is what stands behind the last line of its progress. Listings that somebody asks for by name (a manual, all options,
formulas, a machine, tables of a data set) may be longer. A word that is wider than the terminal, such as a path, stays whole. Ends with 1
and a sentence for what is wrong.
"""

import os
import re
import sys
import tempfile
import unicodedata
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from progress_test import ESCAPE, on_terminal  # noqa: E402

SMALL = ["--model", "resnet8-cifar", "--data", "synthetic,train=64,test=32"]
SHORT = ["--window-steps", "2", "--window-seconds", "0.1", "--measure-again", "0"]
LINES = 25

# (command, whether it is a listing); each runs in the directory that the ones before it filled. Without those that print a file for
# another program (man, completion) and serve, which does not end.
COMMANDS = [
    (["--help"], True),
    (["version"], False),
    (["doctor"], True),
    (["train", "-h"], False),
    (["train", "--help"], True),
    (["train", *SMALL, "--local-batch", "16", "--epochs", "2", "--plan"], False),
    (["scale", *SMALL, "--workers", "1,2", "--batches", "8,16", "--plan"], False),
    (["study", *SMALL, "--quick", "--plan"], False),
    (["train", *SMALL, "--local-batch", "16", "--epochs", "2", "--out", "train"], False),
    (["train", *SMALL, "--local-batch", "16", "--steps", "3", "--out", "steps"], False),
    (["sweep", *SMALL, *SHORT, "--batches", "4,8,16", "--out", "sweep"], False),
    (["scale", *SMALL, *SHORT, "--workers", "1,2", "--batches", "8,16", "--out", "scale"], False),
    (["converge", *SMALL, "--workers", "1", "--baseline-batch", "8", "--large-batch", "32", "--epochs", "1", "--out", "converge"], False),
    (["search", *SMALL, "--lr", "0.1,0.01", "--local-batch", "8,16", "--epochs", "1", "--out", "search"], False),
    (["evaluate", "train", "--out", "evaluate"], False),
    (["classify", "train", "photos/train/cat", "--top", "10"], True),
    (["classify", "train", "photos", "--out", "classes.csv"], False),
    (["comm", "--workers", "2", "--sizes", "1K:1M", "--repeats", "2", "--out", "comm"], False),
    (["report", "sweep"], False),
    (["report", "scale"], False),
    (["report", "train"], False),
    (["report", "search"], False),
    (["report", "evaluate"], False),
    (["report", "."], False),
    (["report", "scale", "--tables"], True),
    (["compare", "sweep", "scale"], False),
    (["explain", "scale"], True),
    (["runs", "list"], False),
    (["runs", "show", "scale"], False),
    (["verify", "train"], False),
    (["data", "info", "synthetic,train=64,test=32"], True),
    (["data", "verify", "synthetic,train=64,test=32"], False),
    (["init", "photos"], False),
    (["import", "metrics.csv", "--out", "imported.csv"], False),
    (["launch", "-n", "2", "--by", "here", "--", "train", *SMALL, "--local-batch", "8", "--steps", "3", "--out", "launched"], False),
    (["runs", "rm", "launched", "--yes"], False),
    (["check", "table.csv"], False),
    (["sbatch", "--nodes", "1", "--workers-per-node", "2", "--cores", "1", "--", "train", *SMALL], False),
]
TABLE = "GPUs,batch per GPU,time per epoch (s),speedup\n1,128,90.0,1.00\n2,128,47.3,1.90\n4,128,25.1,3.98\n"


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line if not unicodedata.combining(letter))


def faults_of(text, columns, is_listing):
    """Sentences on what a person would see wrongly."""
    lines = [line.split("\r")[-1] for line in ESCAPE.sub("", text.replace("\x1b[K", "\r")).replace("\r\n", "\n").split("\n")]
    for line in lines:
        words = line.split()
        if columns_of(line) > columns and max(map(columns_of, words)) + len(line) - len(line.lstrip()) <= columns:
            yield f"a line of {columns_of(line)} columns: {line}"
    progress = [i for i, line in enumerate(lines) if re.match(r"(epoch +\d|  [-~✓✗] |[-~✓✗] | *\S+ +[━─✓✗])", line)]
    rest = lines[progress[-1] + 1:] if progress else lines
    if not is_listing and len([line for line in rest if line]) > LINES:
        yield f"{len(rest)} lines at its end: " + " / ".join(rest)[:1500]


def main(program):
    faults = []
    for columns in (80, 100, 140) if "PACELINE_LONG" in os.environ else (100,):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "table.csv").write_text(TABLE)
            (Path(folder) / "metrics.csv").write_text("epoch,train_loss,val_acc\n" + "".join(f"{i},{2 / i:.3f},{40 + i}\n" for i in range(1, 9)))
            for at in range(24):  # two classes of photographs
                path = Path(folder, "photos", "train" if at < 16 else "test", "cat" if at % 2 else "dog", f"{at}.ppm")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"P6 32 32 255\n" + bytes((at * 7 + i) % 256 for i in range(32 * 32 * 3)))
            for words, is_listing in COMMANDS:
                code = 0
                text = on_terminal([program, *words], columns, folder, code)
                faults += [f"{columns} columns, {' '.join(words)}: {fault}" for fault in faults_of(text, columns, is_listing)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
