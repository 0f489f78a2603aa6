#!/usr/bin/python3
"""Times a training step beside a peer trainer, in one run.

The peer script and our bench driver run alternately, so that whatever else the machine does falls on both.
The figure is the ratio of their median steps within a round (above 1: we are faster), its median over the
rounds, and an interval from order statistics of the rounds.

usage: step_vs_torch.py PEER_SCRIPT [--driver build/release/bench/bench_train_step] [--precision fp32 bf16]
                        [--model resnet18-cifar] [--size 32] [--batch 128] [--threads 2] [--steps 3] [--rounds 5]
                        [--out record.json]

The peer must take --workers --threads --batch --precision --steps and print a JSON line with step_ms; it trains
resnet18-cifar. With --model or --size it must take these too, as torch_peer.py does.
Both get the same environment; warm-up steps (two each) are not timed. Needs nothing but Python.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

from record import ROOT, header, write


def last_json_line(text):
    for line in reversed(text.strip().splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise ValueError("no JSON line in the output: " + text[-300:])


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"step_vs_torch: {' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    return last_json_line(done.stdout)


def median_interval(values, confidence=0.95):
    """The widest-coverage order statistics around the median: (low, high, coverage).

    With n values the interval [k-th smallest, k-th largest] covers the true median with probability
    1 - 2 * P(Binomial(n, 1/2) < k). The largest k that reaches the confidence is taken; if none does,
    the extremes are, and their coverage is said.
    """
    values, n = sorted(values), len(values)
    best = None
    for k in range(1, n // 2 + 1):
        coverage = 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n
        if best is None or coverage >= confidence:
            best = (values[k - 1], values[n - k], coverage)
    return best if best else (values[0], values[-1], 0.0)


def compare(args, precision):
    peer = [sys.executable, args.peer, "--workers", "1", "--threads", str(args.threads), "--batch", str(args.batch),
            "--precision", precision, "--steps", str(args.steps)]
    ours = [args.driver, "--threads", str(args.threads), "--batch", str(args.batch), "--precision", precision,
            "--steps", str(args.steps), "--warmup", "2"]
    if args.model or args.size:
        which = ["--model", args.model or "resnet18-cifar"] + (["--size", str(args.size)] if args.size else [])
        peer, ours = peer + which, ours + which
    rounds = []
    for index in range(args.rounds):
        # Who goes first changes every round: a load that grows or fades favours nobody.
        if index % 2 == 0:
            theirs, mine = run(peer), run(ours)
        else:
            mine, theirs = run(ours), run(peer)
        rounds.append({"peer": theirs, "ours": mine, "ratio": theirs["step_ms"] / mine["step_ms"],
                       "load": os.getloadavg()[0]})
        print(f"{precision} round {index + 1}/{args.rounds}: peer {theirs['step_ms']:.0f} ms, "
              f"ours {mine['step_ms']:.0f} ms, ratio {rounds[-1]['ratio']:.2f} (load {rounds[-1]['load']:.1f})",
              flush=True)
    ratios = [r["ratio"] for r in rounds]
    low, high, coverage = median_interval(ratios)
    result = {"precision": precision, "ratio_median": statistics.median(ratios), "ratio_low": low, "ratio_high": high,
              "coverage": coverage, "peer_images_per_s": args.batch / statistics.median(
                  r["peer"]["step_ms"] for r in rounds) * 1e3,
              "our_images_per_s": args.batch / statistics.median(r["ours"]["step_ms"] for r in rounds) * 1e3,
              "commands": [" ".join(words).replace(ROOT + os.sep, "") for words in (peer, ours)], "rounds": rounds}
    print(f"{precision}: peer / ours = {result['ratio_median']:.2f} [{low:.2f}, {high:.2f}] "
          f"({coverage:.0%} interval of the median, {len(rounds)} rounds); "
          f"{result['peer_images_per_s']:.1f} against our {result['our_images_per_s']:.1f} images/s")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", help="the peer's training script")
    parser.add_argument("--driver", default=os.path.join(ROOT, "build", "release", "bench", "bench_train_step"))
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--model", help="of the zoo; default: resnet18-cifar, which every peer trains")
    parser.add_argument("--size", type=int, help="height and width of the images; default: the model's usual one")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    args = parser.parse_args()
    for path in (args.peer, args.driver):
        if not os.path.exists(path):
            sys.exit(f"step_vs_torch: {path} must exist; build the driver with -DPACELINE_BENCH=ON, or name it")
    record = {**header(f"training step of {args.model or 'resnet18-cifar'}: forward, loss, backward, update"),
              "size": args.size, "batch": args.batch, "threads": args.threads, "steps_per_round": args.steps,
              "results": [compare(args, precision) for precision in args.precision]}
    write(args.out, record)


if __name__ == "__main__":
    main()
