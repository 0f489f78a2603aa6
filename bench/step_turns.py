#!/usr/bin/python3
"""Holds the training steps of two builds against each other.

Two bench_train_step with --turns 1 stand ready and take their steps one after the other, so that whatever else the
machine does falls on both; a turn's time is the least of its steps. The figure is BEFORE's time over NOW's (above 1: now
is faster): the median of all turns, with an interval of 95 % by order statistics. The two programs are started anew
several times: where a process's memory lies moves its steps by some percent.

usage: step_turns.py BEFORE NOW [--batch 32 128] [--precision fp32 bf16] [--threads 2] [--seconds 240] [--starts 6]
                     [--out record.json]
BEFORE, NOW: bench_train_step of each build. Needs nothing but Python.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import time

from record import header, write

STEPS = {("resnet18-cifar", 32): 4, ("mnist-cnn", 128): 12}  # a turn's, so that it takes about half a second; else 1


def interval(values):
    """Order statistics that hold the median with at least 95 %; the whole range where the values are too few."""
    values, n = sorted(values), len(values)
    best = (values[0], values[-1])
    for k in range(1, n // 2 + 1):
        if 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n < 0.95:
            break
        best = (values[k - 1], values[n - k])
    return best


class Program:
    def __init__(self, path, batch, precision, threads, model="resnet18-cifar"):
        self.process = subprocess.Popen(
            [path, "--turns", "1", "--model", model, "--batch", str(batch), "--precision", precision, "--threads", str(threads),
             "--steps", str(STEPS.get((model, batch), 1))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.turn()

    def turn(self):
        """Seconds of a step."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"step_turns: {self.process.args[0]} ended with {self.process.wait()}")
        return min(json.loads(line)["steps_s"])

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def take_turns(first, second, seconds, starts):
    """`first` and `second` start a Program. The ratio is the first one's time over the second one's."""
    turns, of_starts, loads = [], [], []
    for _ in range(starts):
        one, other = first(), second()
        until, own = time.time() + seconds / starts, []
        while time.time() < until or not own:
            if len(own) % 2 == 0:
                pair = one.turn(), other.turn()
            else:
                pair = (other.turn(), one.turn())[::-1]
            own.append(pair)
        loads.append(os.getloadavg()[0])
        one.end()
        other.end()
        of_starts.append(statistics.median(a / b for a, b in own))
        turns += own
    ratios = [a / b for a, b in turns]
    low, high = interval(ratios)
    return {"ratio": statistics.median(ratios), "low": low, "high": high, "turns": len(turns),
            "ratio_of_each_start": of_starts, "load_of_each_start": loads,
            "ms": [1e3 * statistics.median(times) for times in zip(*turns)]}


def compare(arguments, batch, precision):
    before, now = (lambda path=path: Program(path, batch, precision, arguments.threads)
                   for path in (arguments.before, arguments.now))
    turns = take_turns(before, now, arguments.seconds, arguments.starts)
    before_ms, now_ms = turns.pop("ms")
    return {"batch": batch, "precision": precision, **turns, "before_ms": before_ms, "now_ms": now_ms}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("--batch", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=240, help="for each batch and precision")
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    cells = []
    for batch in arguments.batch:
        for precision in arguments.precision:
            cells.append(compare(arguments, batch, precision))
            print("batch {batch} {precision}: before / now {ratio:.4f} [{low:.4f}, {high:.4f}], {turns} turns, "
                  "{before_ms:.1f} and {now_ms:.1f} ms".format(**cells[-1]), flush=True)
    write(arguments.out, {**header("training steps of two builds"), "cells": cells})


if __name__ == "__main__":
    main()
