#!/usr/bin/python3
"""Holds a training whose output is read against one whose output nobody reads.

Pairs in turn: one training writes to a file, the other into a full pipe, and the order changes with each pair. The figure
is the training's time where nobody reads over the other's: median of the pairs, with the interval that holds it. A pair beside
which other programs took more than 0.1 cores is printed and made again, at most twice as many as wanted. Both must end with 0
and with the same checkpoint.

usage: unread_output.py PROGRAM [--seconds 60] [--pairs 5] [--out record.json]
Needs nothing but Python.
"""
import argparse
import fcntl
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from record import header, write
from step_turns import interval

OPTIONS = ["--model", "mnist-cnn", "--data", "synthetic,train=2048,test=256", "--local-batch", "32", "--workers", "2",
           "--threads", "1", "--seed", "1", "--precision", "fp32", "--evaluate-every", "0"]


def train(program, epochs, out, is_read):
    """Seconds of a training, the cores that other programs took, and its last checkpoint's bytes."""
    words = [program, "train", *OPTIONS, "--epochs", str(epochs), "--out", str(out)]
    if is_read:
        with open(os.devnull, "w") as sink:
            code = subprocess.run(words, stdout=sink, stderr=sink).returncode
    else:
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        job = subprocess.Popen(words, stdout=writer, stderr=writer)
        os.close(writer)
        code = job.wait()
        os.close(reader)
    if code:
        raise SystemExit(f"unread_output: {' '.join(words)} ended with {code}")
    record = json.loads((out / "record.json").read_text())
    return record["ranks"][0]["wall_s"], record["window"]["others_cores"], sorted(out.glob("checkpoint-*.safetensors"))[-1].read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=float, default=60, help="about how long each training takes")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    program = str(args.program.resolve())
    pairs, disturbed = [], []
    with tempfile.TemporaryDirectory(prefix="paceline-unread-") as folder:
        folder = Path(folder)
        few, many = (train(program, epochs, folder / f"trial-{epochs}", True)[0] for epochs in (4, 24))
        epochs = max(1, round(args.seconds / ((many - few) / 20)))
        for turn in range(3 * args.pairs):
            if len(pairs) == args.pairs:
                break
            found = {}
            for is_read in (True, False) if turn % 2 == 0 else (False, True):
                found[is_read] = train(program, epochs, folder / f"{turn}-{is_read}", is_read)
            if found[True][2] != found[False][2]:
                raise SystemExit("unread_output: the checkpoints have different bytes")
            others = max(cores for _, cores, _ in found.values())
            (pairs if others <= 0.1 else disturbed).append((found[False][0], found[True][0]))
            print(f"pair {turn + 1}: not read {found[False][0]:.2f} s, read {found[True][0]:.2f} s, others {others:.2f} cores", flush=True)
    if not pairs:
        raise SystemExit("unread_output: other programs worked beside every pair; make the machine quiet")
    ratios = [unread / read for unread, read in pairs]
    low, high = interval(ratios)
    print(f"{epochs} epochs; not read over read: {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}]")
    if args.out:
        write(args.out, {**header("unread-output"), "options": OPTIONS, "epochs": epochs, "pairs_s": pairs, "disturbed_pairs_s": disturbed,
                         "ratio": statistics.median(ratios), "low": low, "high": high})


if __name__ == "__main__":
    main()
