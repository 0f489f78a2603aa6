#!/usr/bin/python3
"""Two cores three ways: one worker of two cores, two workers of one core each, two processes of one core each (mpirun).

Each round trains a few steps of the same global batch with all of them. The figures are times of a step over that of two
workers in one process (above 1: the two workers win), their medians over the rounds and intervals from order statistics.
Where the time goes is said beside it, and what part of a step waits for data.

usage: two_cores.py [--program build/release/paceline] [--model resnet18-cifar] [--data synthetic] [--batch 128]
                    [--precision fp32] [--steps 6] [--rounds 5] [--seconds 150] [--ways "2 processes of 1 core"]
                    [--out record.json]

Needs nothing but Python, and mpirun for the processes; without it they are left out, and that is said.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from record import ROOT, header, write
from step_vs_torch import median_interval

TWO_WORKERS = "2 workers of 1 core"
MPIRUN = ["mpirun", "--quiet", "--bind-to", "none", "-np", "2"] + (["--allow-run-as-root"] if os.getuid() == 0 else [])
WAYS = {"1 worker of 2 cores": ([], ["--workers", "1", "--threads", "2"]),
        TWO_WORKERS: ([], ["--workers", "2", "--threads", "1"]),
        "2 processes of 1 core": (MPIRUN, ["--threads", "1"])}


def train(args, way):
    with tempfile.TemporaryDirectory() as directory:
        launcher, options = WAYS[way]
        command = launcher + [args.program, "train", "--model", args.model, "--data", args.data, "--global-batch", str(args.batch),
                   "--precision", args.precision, "--steps", str(args.steps + 1), "--evaluate-every", "0", "--json",
                   "--out", os.path.join(directory, "out")] + options
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"two_cores: {' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    record = json.loads(done.stdout)
    ranks = record["ranks"]
    steps = [max(rank["step_s"][i] for rank in ranks) for i in range(1, len(ranks[0]["step_s"]))]  # the first warms up
    share = {phase: statistics.mean(rank["phases_s"][phase] / rank["wall_s"] for rank in ranks)
             for phase in ranks[0]["phases_s"]}
    return {"step_ms": 1e3 * statistics.median(steps), "share_of_wall": share}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "paceline"))
    parser.add_argument("--model", default="resnet18-cifar")
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no round begins later")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="two workers are always among them")
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    args = parser.parse_args()
    ways = [way for way in WAYS if way in args.ways or way == TWO_WORKERS]
    if "2 processes of 1 core" in ways and not shutil.which("mpirun"):
        ways.remove("2 processes of 1 core")
        print("mpirun is not there: no processes")
    rounds = []
    begin = time.monotonic()
    for turn in range(args.rounds):
        if rounds and time.monotonic() - begin > args.seconds:
            break
        found = {way: train(args, way) for way in ways[turn % len(ways):] + ways[:turn % len(ways)]}  # another goes first
        rounds.append(found)
        print(f"round {turn + 1}/{args.rounds}: " + ", ".join(f"{way} {found[way]['step_ms']:.0f} ms" for way in ways),
              flush=True)
    ratios = {}
    for way in ways:
        shares = {phase: statistics.median(r[way]["share_of_wall"][phase] for r in rounds)
                  for phase in rounds[0][way]["share_of_wall"]}
        print(f"{way}: " + ", ".join(f"{phase} {100 * share:.1f} %" for phase, share in shares.items()))
        if way == TWO_WORKERS:
            continue
        values = [r[way]["step_ms"] / r[TWO_WORKERS]["step_ms"] for r in rounds]
        low, high, coverage = median_interval(values)
        ratios[way] = {"median": statistics.median(values), "low": low, "high": high, "coverage": coverage}
        print(f"{way} / {TWO_WORKERS}: {statistics.median(values):.3f} [{low:.3f}, {high:.3f}], "
              f"{coverage:.0%} interval of {len(values)} rounds")
    write(args.out, {**header(f"training steps of {args.model}, global batch {args.batch}, two cores three ways"),
                     "data": args.data, "precision": args.precision, "ratios_to_two_workers": ratios, "rounds": rounds})


if __name__ == "__main__":
    main()
