#!/usr/bin/env python3
"""What checkpoints cost a training: runs with and without them in turns.

    bench/checkpoint_price.py build/release/paceline [--pairs 8] [--steps 60] [--every 5] [--slow FAILING_CALL.so] [-- options of train]

A training with a checkpoint every `--every` seconds against one that writes none but its last. So many at once make the cost
large enough to be seen; per checkpoint it is the difference over their number, and at one a minute that over 60 s. --slow
loads tests/ranks' file layer, in which a disk takes 20 MB/s.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def train(args, folder, name, checkpoints, environment):
    out = folder / name
    words = [args.program, "train", "--model", "resnet18-cifar", "--data", "synthetic,train=12800,test=64", "--evaluate-every", "0",
             "--steps", args.steps, "--local-batch", "32", "--checkpoint-every",
             f"{args.every}s" if checkpoints else "100000epochs", "--out", out, *args.options]
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, env=environment)
    record = json.loads((out / "record.json").read_text())
    seconds = sum(epoch["seconds"] for epoch in record["epochs"])
    written = sum('"checkpoint"' in line for line in (out / "events.jsonl").read_text().splitlines())
    size = max(file.stat().st_size for file in out.glob("checkpoint-*.safetensors"))
    return seconds, written, size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=float, default=5)
    parser.add_argument("--slow", type=Path)
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    environment = dict(os.environ)
    if args.slow:
        environment |= {"LD_PRELOAD": str(args.slow.resolve()), "FAIL_PATH": "checkpoint-price", "SLOW_MB_PER_S": "20"}
    prices, without = [], []
    with tempfile.TemporaryDirectory(prefix="checkpoint-price") as name:
        folder = Path(name)
        for pair in range(args.pairs):
            found = {}
            for checkpoints in random.Random(pair).sample([False, True], 2):
                found[checkpoints] = train(args, folder, f"{pair}-{checkpoints}", checkpoints, environment)
            (plain, last, size), (disturbed, all_of_them, _) = found[False], found[True]
            more = max(1, all_of_them - last)
            prices.append((disturbed - plain) / more)
            without.append(plain)
            print(f"pair {pair}: {plain:.2f} s without, {disturbed:.2f} s with {more} checkpoints of {size / 1e6:.1f} MB: "
                  f"{1e3 * prices[-1]:.0f} ms each", flush=True)
    low, middle, high = min(prices), statistics.median(prices), max(prices)
    print(f"a checkpoint: {1e3 * middle:.0f} ms [{1e3 * low:.0f}, {1e3 * high:.0f}], least and most of {len(prices)} pairs; at one a minute "
          f"{100 * middle / 60:.2f} % [{100 * low / 60:.2f}, {100 * high / 60:.2f}] of the training")
    return 0


if __name__ == "__main__":
    sys.exit(main())
