#!/usr/bin/python3
"""What an option of a recipe costs: the time of a step with it over the time without, on synthetic data.

Both take turns, a window of some steps each, of which the lower quartile counts; the figure is the median of the rounds' ratios, with its smallest and largest.

usage: option_prices.py PROGRAM [--model resnet8-cifar] [--batch 128] [--rounds 7] [--steps 20] [--out record.json] [NAME..]
Needs nothing but Python.
"""
import argparse
import json
import statistics
import subprocess
import tempfile

from record import header, write

OPTIONS = {"clip-norm": ["--clip-norm", "1"], "ema": ["--ema", "0.999"], "trivial-augment": ["--trivial-augment"],
           "random-erasing": ["--random-erasing", "0.25"], "lamb": ["--optimizer", "lamb"], "noise-scale": ["--noise-scale", "1"],
           "mixup": ["--mixup", "0.2"], "cutmix": ["--cutmix", "1"]}
BESIDE = {"lamb": ["--optimizer", "adamw"],  # the rule with the same state, and not sgd
          "noise-scale": ["--noise-scale", "off"]}
# It exists in trainings of several workers alone. In every step, not in every 10th: a tenth of the price could not be seen.
IN_TRAININGS = {"noise-scale"}
WARM_UP = 5


def step_ms(arguments, options, is_training):
    length = ["--steps", str(arguments.steps + WARM_UP), "--evaluate-every", "0", "--no-checkpoints", "--workers", str(arguments.threads)] if is_training else [
        "--window-steps", str(arguments.steps), "--warmup-steps", str(WARM_UP)]
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([arguments.program, "train", "--data", "synthetic,train=4096,test=128", "--model", arguments.model, "--local-batch",
                               str(arguments.batch), *length, "--threads", "1" if is_training else str(arguments.threads), "--json", "--out", out, *options], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"option_prices.py: {done.stderr.strip()}")
    steps = sorted(json.loads(done.stdout)["ranks"][0]["step_s"][WARM_UP if is_training else 0:])
    return 1000 * steps[len(steps) // 4]  # the lower quartile: other programs only add


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--model", default="resnet8-cifar")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.names or OPTIONS:
        pairs = []
        for i in range(arguments.rounds):
            order = [("with", OPTIONS[name]), ("without", BESIDE.get(name, []))]
            times = {which: step_ms(arguments, options, name in IN_TRAININGS) for which, options in (order if i % 2 else order[::-1])}
            pairs.append(times)
        ratios = [pair["with"] / pair["without"] for pair in pairs]
        rows.append({"option": name, "model": arguments.model, "batch": arguments.batch, "ratio": statistics.median(ratios), "least": min(ratios),
                     "most": max(ratios), "without_ms": statistics.median(pair["without"] for pair in pairs), "rounds": pairs})
        print(f"{name:16} {arguments.model} {arguments.batch}: {rows[-1]['ratio']:.3f} [{rows[-1]['least']:.3f}, {rows[-1]['most']:.3f}] of "
              f"{rows[-1]['without_ms']:.2f} ms", flush=True)
    write(arguments.out, {**header("time of a step with an option over the time without it"), "rows": rows})


if __name__ == "__main__":
    main()
