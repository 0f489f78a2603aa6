#!/usr/bin/python3
"""How much longer a training step takes beside another busy process on one of its cores.

Our bench driver, and a peer trainer where one is named, run alternately alone and beside a process that computes for
ever, tied to one core. The figure is the ratio of the median steps, busy over quiet, within a round, its median over the
rounds and an interval from order statistics. Two threads that share two cores fairly with a third have three halves of
the time: 1.33 is what is left to reach; 2.0 is what a barrier after every equal share of work gives.

usage: company.py [--peer PEER_SCRIPT] [--driver build/release/bench/bench_train_step] [--core 1] [--batch 128]
                  [--threads 2] [--steps 3] [--rounds 3] [--precision fp32] [--out record.json]

The peer's options are those of step_vs_torch.py. Needs nothing but Python.
"""
import argparse
import contextlib
import os
import statistics
import subprocess
import sys

from record import ROOT, header, write
from step_vs_torch import median_interval, run


@contextlib.contextmanager
def busy(core):
    """A process that keeps `core` busy, for as long as the block lasts."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def compare(name, command, core, rounds):
    runs = []
    for index in range(rounds):
        if index % 2 == 0:  # who goes first changes every round
            quiet = run(command)["step_ms"]
        with busy(core):
            beside = run(command)["step_ms"]
        if index % 2 == 1:
            quiet = run(command)["step_ms"]
        runs.append({"quiet_ms": quiet, "busy_ms": beside, "ratio": beside / quiet, "load": os.getloadavg()[0]})
        print(f"{name} round {index + 1}/{rounds}: quiet {quiet:.0f} ms, busy {beside:.0f} ms, "
              f"ratio {beside / quiet:.2f}", flush=True)
    ratios = [r["ratio"] for r in runs]
    low, high, coverage = median_interval(ratios)
    print(f"{name}: a step beside a busy process takes {statistics.median(ratios):.2f} times as long "
          f"[{low:.2f}, {high:.2f}], {100 * coverage:.0f} % interval of {rounds} rounds", flush=True)
    return {"name": name, "ratio_median": statistics.median(ratios), "ratio_low": low, "ratio_high": high,
            "coverage": coverage, "rounds": runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a peer's training script")
    parser.add_argument("--driver", default=os.path.join(ROOT, "build", "release", "bench", "bench_train_step"))
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--core", type=int, default=1, help="the core that the other process keeps busy")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    args = parser.parse_args()
    common = ["--threads", str(args.threads), "--batch", str(args.batch), "--precision", args.precision,
              "--steps", str(args.steps)]
    results = [compare("paceline", [args.driver, "--warmup", "1", *common], args.core, args.rounds)]
    if args.peer:
        results.append(compare("peer", [sys.executable, args.peer, "--workers", "1", *common], args.core, args.rounds))
    write(args.out, {**header("training step of resnet18-cifar, alone and beside a process busy on one core"),
                     "core": args.core, "batch": args.batch, "threads": args.threads, "steps_per_round": args.steps,
                     "precision": args.precision, "results": results})


if __name__ == "__main__":
    main()
