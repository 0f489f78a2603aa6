#!/usr/bin/python3
"""Holds a model's training steps in bf16 against those in fp32, on one machine and with one program.

As step_turns.py: one bench_train_step of each precision stands ready, and they take their steps in turns. The figure is
bf16's time over fp32's (below 1: bf16 is faster), the median of all turns with an interval of 95 %. The figure of
resnet18-cifar at batch 128 is what a row of src/engine/cpu/processor_kind.cc holds for a kind of processor.

usage: precision_turns.py BENCH_TRAIN_STEP [--cells resnet18-cifar:128 resnet18-cifar:32 mnist-cnn:128] [--threads 2]
                          [--seconds 240] [--starts 6] [--out record.json]
Needs nothing but Python.
"""
import argparse

from record import header, write
from step_turns import Program, take_turns


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cells", nargs="+", default=["resnet18-cifar:128", "resnet18-cifar:32", "mnist-cnn:128"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=240, help="for each cell")
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    cells = []
    for cell in arguments.cells:
        model, batch = cell.split(":")
        programs = [lambda precision=precision: Program(arguments.program, int(batch), precision, arguments.threads, model)
                    for precision in ("bf16", "fp32")]
        turns = take_turns(*programs, arguments.seconds, arguments.starts)
        bf16_ms, fp32_ms = turns.pop("ms")
        cells.append({"model": model, "batch": int(batch), **turns, "bf16_ms": bf16_ms, "fp32_ms": fp32_ms})
        print("{model}, batch {batch}: bf16 / fp32 {ratio:.4f} [{low:.4f}, {high:.4f}], {turns} turns, {bf16_ms:.1f} and "
              "{fp32_ms:.1f} ms".format(**cells[-1]), flush=True)
    write(arguments.out, {**header("training steps in bf16 and in fp32"), "threads": arguments.threads, "cells": cells})


if __name__ == "__main__":
    main()
