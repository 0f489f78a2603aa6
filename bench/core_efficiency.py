#!/usr/bin/python3
"""How much of its rate a one-core worker keeps when a second one computes beside it: no gradients travel.

In each round our bench driver runs alone on one core and then as two processes on two cores; and so does a loop of
multiply-adds in registers (bench_registers), which is what the machine itself keeps. Efficiency is the mean rate of the
two over the rate alone; the figures are medians over the rounds with an interval from order statistics. `paceline scale`
has the efficiency of real workers; this says how much of what they lose is the machine's.

usage: core_efficiency.py [--bench build/release/bench] [--batch 32 128] [--precision fp32] [--rounds 5] [--steps 3]
                          [--cores 0 1] [--out record.json]

Needs nothing but Python.
"""
import argparse
import os
import statistics
import subprocess
import sys

from record import ROOT, header, write
from step_vs_torch import last_json_line, median_interval


def run_on(cores, command):
    """The command once on each core at a time; their JSON lines."""
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                preexec_fn=lambda core=core: os.sched_setaffinity(0, {core})) for core in cores]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit(f"core_efficiency: {' '.join(command)} failed")
    return [last_json_line(output) for output in outputs]


def efficiency(command, cores, rate, turn):
    """One round: alone and in company; which goes first changes with the turn, and the core that is alone too."""
    alone_on = cores[turn // 2 % 2: turn // 2 % 2 + 1]
    pair = run_on(cores, command) if turn % 2 else None
    alone = run_on(alone_on, command)[0]
    pair = pair or run_on(cores, command)
    rates = [rate(result) for result in pair]
    return {"alone": rate(alone), "pair": rates, "efficiency": statistics.mean(rates) / rate(alone)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default=os.path.join(ROOT, "build", "release", "bench"))
    parser.add_argument("--batch", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--cores", nargs=2, type=int, default=[0, 1])
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    args = parser.parse_args()
    driver = os.path.join(args.bench, "bench_train_step")
    rivals = {"registers only": ([os.path.join(args.bench, "bench_registers"), "2"], lambda r: r["gflop_per_s"])}
    for batch in args.batch:
        steps = max(1, args.steps * 128 // batch)
        rivals[f"resnet18-cifar, batch {batch}"] = (
            [driver, "--batch", str(batch), "--threads", "1", "--steps", str(steps), "--warmup", "1",
             "--precision", args.precision], lambda r: r["images_per_s"])
    rounds = {name: [] for name in rivals}
    for turn in range(args.rounds):
        for name, (command, rate) in rivals.items():
            rounds[name].append(efficiency(command, args.cores, rate, turn))
            print(f"round {turn + 1}/{args.rounds}, {name}: {rounds[name][-1]['efficiency']:.3f}", flush=True)
    results = []
    for name, found in rounds.items():
        values = [r["efficiency"] for r in found]
        low, high, coverage = median_interval(values)
        print(f"{name}: efficiency {statistics.median(values):.3f} [{low:.3f}, {high:.3f}], "
              f"{coverage:.0%} interval of {len(values)} rounds")
        results.append({"name": name, "efficiency_median": statistics.median(values), "low": low, "high": high,
                        "coverage": coverage, "rounds": found})
    write(args.out, {**header("one-core workers alone and in pairs, no gradients exchanged; the rate kept"),
                     "precision": args.precision, "results": results})


if __name__ == "__main__":
    main()
