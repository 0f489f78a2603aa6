#!/usr/bin/python3
"""Times the loader of image folders beside torchvision's ImageFolder and PyTorch's DataLoader, in one run.

Both read the same folder with the same work an image: decode, random-resized-crop, flip, normalise, into batches.
They run alternately, so that whatever else the machine does falls on both. The figure is images a second of
processor time (of all threads and processes), which is images/s a core: ours over theirs within a round, the median
over the rounds.

usage: loader_vs_torchvision.py DIR [--size 64] [--crop-area 0.08] [--batch 128] [--images 5120] [--rounds 6]
                                [--driver build/release/bench/bench_loader] [--out record.json]

DIR holds train/ or Training/ with a folder a class. Needs Debian's python3-torchvision. The peer runs in the process
itself (num_workers=0, one thread): workers of its own would only add the cost of sending batches between processes.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from record import ROOT, header, write
from step_vs_torch import last_json_line, median_interval


def peer(args):
    """The other side, in a process of its own: prints what bench_loader prints."""
    import torch
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    train = next(os.path.join(args.dir, name) for name in ("train", "Training")
                 if os.path.isdir(os.path.join(args.dir, name)))
    form = transforms.Compose([
        transforms.RandomResizedCrop(args.size, scale=(args.crop_area, 1)), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(train, form), batch_size=args.batch, shuffle=True,
                                         drop_last=True, num_workers=0)

    def batches():
        while True:
            yield from loader
    wanted, endless = max(1, args.images // args.batch), batches()
    next(endless)  # as the other side: not timed
    begin, cpu = time.monotonic(), time.process_time()
    for _ in range(wanted):
        next(endless)
    print(json.dumps({"images": wanted * args.batch, "wall_s": time.monotonic() - begin,
                      "cpu_s": time.process_time() - cpu}))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"loader_vs_torchvision: {' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    result = last_json_line(done.stdout)
    result["images_per_cpu_s"] = result["images"] / result["cpu_s"]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--crop-area", type=float, default=0.08)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--images", type=int, default=5120)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--driver", default=os.path.join(ROOT, "build", "release", "bench", "bench_loader"))
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args)
    theirs = [sys.executable, os.path.abspath(__file__), args.dir, "--peer", "--size", str(args.size), "--crop-area",
              str(args.crop_area), "--batch", str(args.batch), "--images", str(args.images)]
    ours = [args.driver, f"folder:{args.dir},size={args.size},crop-area={args.crop_area}", str(args.batch), "1",
            str(args.images)]
    rounds = []
    for index in range(args.rounds):
        # Who goes first changes every round: a load that grows or fades favours nobody.
        if index % 2 == 0:
            their, our = run(theirs), run(ours)
        else:
            our, their = run(ours), run(theirs)
        ratio = our["images_per_cpu_s"] / their["images_per_cpu_s"]
        rounds.append({"peer": their, "ours": our, "ratio": ratio, "load": os.getloadavg()[0]})
        print(f"round {index + 1}/{args.rounds}: torchvision {their['images_per_cpu_s']:.0f}, ours "
              f"{our['images_per_cpu_s']:.0f} images/s a core, ratio {ratio:.2f} (load {rounds[-1]['load']:.1f})",
              flush=True)
    ratios = [r["ratio"] for r in rounds]
    low, high, coverage = median_interval(ratios)
    record = {**header("loader: images a second of processor time, against torchvision's ImageFolder and DataLoader"),
              "size": args.size, "crop_area": args.crop_area, "batch": args.batch,
              "ratio_median": statistics.median(ratios), "ratio_low": low, "ratio_high": high, "coverage": coverage,
              "our_images_per_cpu_s": statistics.median(r["ours"]["images_per_cpu_s"] for r in rounds),
              "peer_images_per_cpu_s": statistics.median(r["peer"]["images_per_cpu_s"] for r in rounds),
              "rounds": rounds}
    print(f"ours / torchvision = {record['ratio_median']:.2f} [{low:.2f}, {high:.2f}] ({coverage:.0%} interval of "
          f"the median, {len(rounds)} rounds)")
    write(args.out, record)


if __name__ == "__main__":
    main()
