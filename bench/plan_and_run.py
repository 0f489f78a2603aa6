#!/usr/bin/env python3
"""What --plan says of every recipe's quick form, against what the form then takes.

    bench/plan_and_run.py --program build/release/paceline [--data DIR] [--only RECIPE ..] [--out FILE.json]

For each recipe: its plan, the quick form, the plan once more, which now knows a record, the quick form once more. Memory is the
plan's against the most that the process had resident, as the kernel counts it (VmHWM, looked at 50 times a second; of both runs
the larger one); time is the second plan's against the wall clock of the second run, start and report included. Around both plans
the folder is compared, name by name and byte by byte, and data sets by names, sizes and times: a plan writes nothing.
DIR: where data/unpack wrote cifar-10-batches-bin, mnist and fruits-360, and caltech256-form, which recipes/caltech256-form.py
makes of them. A recipe whose data are not there gets synthetic images, and its row says so.
With --only, rows that FILE.json has of other recipes stay; each row says when it was measured, and by which commit. Ends with 1 where a bound is missed (memory 10 %, time 25 %) or a plan
wrote something.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import record

RECIPES = Path(record.ROOT) / "recipes"
MEMORY, TIME = 0.10, 0.25
# Command, folder below DIR, and the specification with its place for that folder; none: the recipe's own data.
FORMS = {
    "caltech256": ("train", "caltech256-form", "folder:{},size=64,classes=top"),
    "cifar10-batch-sweep": ("study", "cifar-10-batches-bin", "cifar10:{}"),
    "cifar10-large-batch": ("converge", "cifar-10-batches-bin", "cifar10:{}"),
    "cifar10-resnet18-94": ("train", "cifar-10-batches-bin", "cifar10:{}"),
    "cifar10-resnet18": ("train", "cifar-10-batches-bin", "cifar10:{}"),
    "cifar10-scaling-torchvision": ("scale", "cifar-10-batches-bin", "cifar10:{}"),
    "cifar10-scaling": ("scale", "cifar-10-batches-bin", "cifar10:{}"),
    "cifar10-speedrun": ("train", "cifar-10-batches-bin", "cifar10:{}"),
    "fruits": ("converge", "fruits-360", "folder:{},size=64,crop-area=0.4"),
    "mnist-keras-cnn": ("study", "mnist", "mnist:{}"),
    "mnist": ("train", "mnist", "mnist:{}"),
    "quick": ("study", None, None),
}


def snapshot(folder):
    """Every file and folder with its time, and what is in it."""
    return {str(path.relative_to(folder)): (path.lstat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
            for path in folder.rglob("*")}


def listing(folder):
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")} if folder else {}


def high_water(process):
    """Bytes. A study starts this mark anew for each cell, and so does what the kernel tells at the end (getrusage): hence many looks."""
    try:
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text()).group(1))
    except (OSError, AttributeError):  # it has ended
        return 0


class Recipe:
    def __init__(self, program, name, data, folder):
        command, place, spec = FORMS[name]
        self.name, self.folder, self.data = name, folder, None
        self.words = [str(program), command, str(RECIPES / f"{name}.toml"), "--quick"]
        self.said = "the recipe's own, synthetic"
        if place and data and (data / place).is_dir():
            self.data, self.said = data / place, place
            self.words += ["--data", spec.format(self.data)]
        elif place:
            self.said = "synthetic: the recipe's own are not here"
            self.words += ["--data", "synthetic,train=10000,test=1000"]
        # All that a program may write to by itself is below `folder`.
        self.environment = {**os.environ, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PACELINE_CACHE": str(folder / "cache")}
        for part in ("home", "tmp"):
            (folder / part).mkdir()

    def plan(self, out):
        """What the plan says, and the names of what differs after it."""
        before, data = snapshot(self.folder), listing(self.data)
        done = subprocess.run([*self.words, "--plan", "--json", "--out", out], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.name}: --plan ended with {done.returncode}: {done.stderr}")
        after = snapshot(self.folder)
        written = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        return json.loads(done.stdout), written + (["the data set"] if listing(self.data) != data else [])

    def run(self, out):
        """Seconds and most resident bytes of the quick form."""
        log = self.folder / f"{Path(out).name}.log"
        begin = time.monotonic()
        with open(log, "w") as file:
            process = subprocess.Popen([*self.words, "--out", out], cwd=self.folder, env=self.environment, stdout=file, stderr=file)
            peak = 0
            while process.poll() is None:
                peak = max(peak, high_water(process.pid))
                time.sleep(0.02)
        seconds = time.monotonic() - begin
        if process.returncode != 0:
            sys.exit(f"{self.name}: exit {process.returncode}: {log.read_text()[-2000:]}")
        return seconds, peak

    def compare(self, once):
        first, written = self.plan("paceline-out/first")
        first_s, peak = self.run("paceline-out/first")
        second, more = self.plan("second")
        seconds, again = (None, 0) if once else self.run("second")
        known = second["time"]["seconds"]
        by = {key: value for key, value in record.header("").items() if key in ("when", "commit")}
        return {"recipe": self.name, **by, "command": self.words[1], "data": self.said, "planned_bytes": first["memory"]["bytes"],
                "plan_lines": first["memory"]["lines"], "cell": first["memory"].get("cell"), "peak_bytes": max(peak, again),
                "memory_ratio": max(peak, again) / first["memory"]["bytes"], "planned_s": known, "of_cells": second["time"].get("of_cells"),
                "first_s": first_s, "seconds": seconds,
                "time_ratio": None if None in (known, seconds) else seconds / known, "written": written + more}


def faults(row):
    if row["written"]:
        yield f"a plan wrote {', '.join(row['written'][:5])}"
    if abs(row["memory_ratio"] - 1) > MEMORY:
        yield f"memory is {row['memory_ratio']:.3f} of the plan's"
    if row["planned_s"] is None:
        yield "no time was planned, though a record was there"
    elif row["time_ratio"] is not None and abs(row["time_ratio"] - 1) > TIME:
        yield f"time is {row['time_ratio']:.3f} of the plan's"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--once", action="store_true", help="one run: memory and what plans write, no time; for a machine that others use")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    missing = {path.stem for path in RECIPES.glob("*.toml")} ^ set(FORMS)
    if missing:
        sys.exit(f"recipes and FORMS of {__file__} differ: {', '.join(sorted(missing))}")
    rows = json.loads(args.out.read_text())["rows"] if args.out and args.out.exists() else []
    rows = {row["recipe"]: row for row in rows}
    bad = False
    for name in args.only:
        with tempfile.TemporaryDirectory(prefix="paceline-plan-") as folder:
            row = Recipe(args.program.resolve(), name, args.data and args.data.resolve(), Path(folder)).compare(args.once)
        rows[name] = row
        wrong = list(faults(row))
        bad = bad or bool(wrong)
        print(f"{name:<28} memory {row['peak_bytes'] / 1e6:7.1f} of {row['planned_bytes'] / 1e6:7.1f} MB ({row['memory_ratio']:.3f}), "
              f"time {row['seconds'] or 0:6.1f} of {row['planned_s'] or 0:6.1f} s ({row['time_ratio'] or 0:.3f})  {'; '.join(wrong)}", flush=True)
        if args.out:
            record.write(args.out, {**record.header("plans against runs: quick forms of the recipes"), "bounds": {"memory": MEMORY, "time": TIME},
                                    "rows": [rows[one] for one in FORMS if one in rows]})
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
