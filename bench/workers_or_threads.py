#!/usr/bin/python3
"""Two workers of one core each, or one worker of two cores: the same global batch both ways, in turns.

Each round trains a few steps with either; the figure is the time of a step of the one worker over that of the two (above 1:
two workers win), its median over the rounds and an interval from order statistics. Where the time of the two goes is
said beside it, and what part of a step either waits for data.

usage: workers_or_threads.py [--program build/release/paceline] [--model resnet18-cifar] [--data synthetic]
                             [--batch 128] [--precision fp32] [--steps 6] [--rounds 5] [--out record.json]

Needs nothing but Python.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

from step_vs_torch import commit, median_interval, processor

WAYS = {"1 worker of 2 cores": ["--workers", "1", "--threads", "2"],
        "2 workers of 1 core": ["--workers", "2", "--threads", "1"]}


def train(args, way):
    with tempfile.TemporaryDirectory() as directory:
        command = [args.program, "train", "--model", args.model, "--data", args.data, "--global-batch", str(args.batch),
                   "--precision", args.precision, "--steps", str(args.steps + 1), "--evaluate-every", "0", "--json",
                   "--out", os.path.join(directory, "out")] + WAYS[way]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"workers_or_threads: {' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    record = json.loads(done.stdout)
    ranks = record["ranks"]
    steps = [max(rank["step_s"][i] for rank in ranks) for i in range(1, len(ranks[0]["step_s"]))]  # the first warms up
    share = {phase: statistics.mean(rank["phases_s"][phase] / rank["wall_s"] for rank in ranks)
             for phase in ranks[0]["phases_s"]}
    return {"step_ms": 1e3 * statistics.median(steps), "share_of_wall": share}


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(root, "build", "release", "paceline"))
    parser.add_argument("--model", default="resnet18-cifar")
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    args = parser.parse_args()
    rounds = []
    for turn in range(args.rounds):
        order = list(WAYS) if turn % 2 == 0 else list(WAYS)[::-1]  # who goes first changes every round
        found = {way: train(args, way) for way in order}
        one, two = (found[way]["step_ms"] for way in WAYS)
        rounds.append({**found, "ratio": one / two})
        print(f"round {turn + 1}/{args.rounds}: one worker {one:.0f} ms, two workers {two:.0f} ms, "
              f"ratio {one / two:.3f}", flush=True)
    ratios = [r["ratio"] for r in rounds]
    low, high, coverage = median_interval(ratios)
    print(f"one worker / two workers: {statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}], "
          f"{coverage:.0%} interval of {len(ratios)} rounds")
    for way in WAYS:
        shares = {phase: statistics.median(r[way]["share_of_wall"][phase] for r in rounds)
                  for phase in rounds[0][way]["share_of_wall"]}
        print(f"{way}: " + ", ".join(f"{phase} {100 * share:.1f} %" for phase, share in shares.items()))
    if args.out:
        record = {"what": f"training steps of {args.model}, global batch {args.batch}, by one worker of two cores and two of "
                          "one", "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                  "commit": commit(root), "processor": processor(), "cores": os.cpu_count(), "data": args.data,
                  "precision": args.precision, "ratio_median": statistics.median(ratios), "ratio_low": low,
                  "ratio_high": high, "coverage": coverage, "rounds": rounds}
        with open(args.out, "w") as file:
            json.dump(record, file, indent=1)
        print("record:", args.out)


if __name__ == "__main__":
    main()
