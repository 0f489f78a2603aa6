#!/usr/bin/python3
"""What a quick study recommends on a machine that is alone, and on one that others use, beside a long measurement of the same cells.

Studies are made in turns: alone, beside a program that computes all the time ("constant"), beside one that computes for 20 s and
then sleeps for 20 s ("bursts"). Then every set-up of the studies that no other program disturbed is measured for long, alone. Of
each study: what it recommends and how sure it is, the seconds it took, what others used meanwhile, and the long measurement's
images/s of the recommended set-up over the best of all set-ups (1: nothing is faster).

With --beside KIND the studies of an earlier record are taken, and their set-ups are measured beside that program again: what was
the fastest there, and how far from it what the studies of that kind recommended.

usage: advice_under_load.py PROGRAM [--rounds 5] [--kinds alone constant bursts] [--long-seconds 4] [--long-repeats 5]
                            [--beside KIND --studies record.json] [--keep DIR] [--out record.json]
Needs nothing but Python. On two cores a round takes some six minutes, the long measurement ten.
"""
import argparse
import collections
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from record import header, write

BUSY = {"constant": "while True: pass",
        "bursts": "import time\nwhile True:\n end = time.monotonic() + 20\n while time.monotonic() < end: pass\n time.sleep(20)"}
QUICK_STUDY = ["--model", "resnet8-cifar", "--data", "synthetic,train=7680,test=2000"]


@contextlib.contextmanager
def others(kind):
    """The other program, for as long as the block lasts."""
    process = subprocess.Popen([sys.executable, "-c", BUSY[kind]]) if kind in BUSY else None
    try:
        yield
    finally:
        if process:
            process.send_signal(signal.SIGKILL)
            process.wait()


def windows(folder):
    """The records of measured windows of a study or scaling."""
    found = [json.loads(path.read_text()) for path in sorted(Path(folder, "records").glob("*.json"))]
    return [record for record in found if record["kind"] in ("sweep", "scale") and record["status"] == "complete"]


def setup(record):
    return record["workers"], record["local_batch"]


def rate(record):
    return record["window"]["samples"] / record["window"]["wall_s"]


def answers(folder):
    document = json.loads(Path(folder, "report.json").read_text())
    blocks = [block for section in document["sections"] for block in section["blocks"]]
    best = next(block for block in blocks if block["type"] == "answer" and block["id"] == "best")
    steps = [step["title"] for block in blocks if block["type"] == "next" for step in block["steps"]]
    return best, steps


def recommended(best):
    """(workers, local batch) of the command of the answer, or None where it recommends nothing."""
    words = [re.search(rf"--{option} (\d+)", best["command"] or "") for option in ("workers", "local-batch")]
    return (int(words[0].group(1)) if words[0] else 1, int(words[1].group(1))) if words[1] else None


def study(program, kind, folder):
    begin = time.monotonic()
    with others(kind):
        done = subprocess.run([program, "study", "--quick", "--out", folder], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"advice_under_load: the study ended with {done.returncode}: {done.stderr[-500:]}")
    best, steps = answers(folder)
    found = windows(folder)
    known = [record["window"]["others_cores"] for record in found if record["window"].get("others_cores") is not None]
    row = {"kind": kind, "certainty": best["certainty"], "figure": best["figure"], "sentence": best["sentence"], "value": best["value"],
           "setup": recommended(best), "seconds": round(time.monotonic() - begin, 1), "others_cores": statistics.mean(known) if known else None,
           "windows": len(found), "next": steps,
           "page_bytes": Path(folder, "report.html").stat().st_size}
    print(f"{kind}: {best['certainty']}: {best['figure']} ({row['seconds']:.0f} s, others {row['others_cores'] or 0:.2f} cores)", flush=True)
    return row, found


def long_measurement(program, setups, seconds, repeats, folder):
    """images/s of every set-up, the median of its repeats that nobody disturbed (of all where there is none)."""
    words = [program, "scale", *QUICK_STUDY, "--mode", "weak",
             "--workers", ",".join(map(str, sorted({workers for workers, _ in setups}))),
             "--batches", ",".join(map(str, sorted({batch for _, batch in setups}))),
             "--window-seconds", str(seconds), "--window-steps", "100000", "--repeats", str(repeats), "--out", folder]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"advice_under_load: {' '.join(words)}: {done.returncode}: {done.stderr[-500:]}")
    rates = collections.defaultdict(lambda: ([], []))
    for record in windows(folder):
        is_quiet = (record["window"].get("others_cores") or 0) < 0.05
        rates[setup(record)][0 if is_quiet else 1].append(rate(record))
    return {key: {"images_per_s": statistics.median(quiet or disturbed), "repeats": len(quiet or disturbed), "disturbed": not quiet}
            for key, (quiet, disturbed) in rates.items()}


def compare(rows, measured, best):
    """Adds to each study the long measurement of what it recommended."""
    for row in rows:
        own = measured.get(tuple(row["setup"])) if row["setup"] else None
        row["long_images_per_s"] = own and own["images_per_s"]
        row["of_the_best"] = own and own["images_per_s"] / best
        row["stated_over_long"] = own and row["value"] and row["value"] / own["images_per_s"]
    for kind in sorted({row["kind"] for row in rows}):
        ratios = [row["of_the_best"] for row in rows if row["kind"] == kind and row["of_the_best"]]
        print(f"{kind}: recommended over best: {', '.join(f'{ratio:.3f}' for ratio in sorted(ratios))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", choices=["alone", *BUSY], default=["alone", *BUSY])
    parser.add_argument("--long-seconds", type=float, default=4)
    parser.add_argument("--long-repeats", type=int, default=5)
    parser.add_argument("--beside", choices=list(BUSY), help="measure the set-ups of --studies beside this program")
    parser.add_argument("--studies", help="the record of the studies, for --beside")
    parser.add_argument("--keep", help="a directory for the studies; default: none is kept")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(arguments.keep or temporary)
        if arguments.beside:
            earlier = json.loads(Path(arguments.studies).read_text())
            rows = [row for row in earlier["studies"] if row["kind"] == arguments.beside]
            setups = [(cell["workers"], cell["local_batch"]) for cell in earlier["long"]]
        else:
            rows, setups = [], []
            for index in range(arguments.rounds):
                for kind in arguments.kinds:
                    row, found = study(arguments.program, kind, place / f"{kind}-{index + 1}")
                    rows.append(row)
                    setups += map(setup, found)
        with others(arguments.beside):
            measured = long_measurement(arguments.program, setups, arguments.long_seconds, arguments.long_repeats, place / "long")
    compare(rows, measured, max(figure["images_per_s"] for figure in measured.values()))
    what = (f"a long measurement beside a program of kind {arguments.beside}, and what earlier quick studies beside it recommended"
            if arguments.beside else "quick studies alone and beside other programs, and a long measurement")
    write(arguments.out, {**header(what), "studies": rows,
                          "long": [{"workers": key[0], "local_batch": key[1], **figure} for key, figure in sorted(measured.items())]})


if __name__ == "__main__":
    main()
