#!/usr/bin/python3
"""What a window of few shards costs the accuracy where the shards are sorted by class, the worst case: real photographs.

Packs images of CIFAR-10 (cifar10-jpeg.tar.xz: train/CLASS/NUMBER.jpg and test/) into shards, class after class, and
trains in the global order and with windows of 1, 8 and 64 shards, with several seeds (`paceline converge --compare
shuffle`). A training that is stopped goes on where it was, so the same command may be given in pieces: --minutes.

usage: sorted_shards.py cifar10-jpeg.tar.xz --dir DIR [--images 20000] [--test 5000] [--shards 100] [--mixed] [--model resnet8-cifar]
                        [--epochs 8] [--batch 128] [--seeds 3] [--minutes 4.5] [--program build/release/paceline]
Exit status: 0: all trainings have ended, and DIR/study/ has their records; 75: come again.
"""
import argparse
import io
import os
import random
import signal
import subprocess
import sys
import tarfile

AGAIN = 75


def images_of(archive):
    """The archive's images as {"train" or "test": {class: [bytes]}}, in its order."""
    parts = {"train": {}, "test": {}}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(".jpg"):
                _, part, name, _ = member.name.split("/")
                parts[part].setdefault(name, []).append(tar.extractfile(member).read())
    return parts


def write_shards(folder, name, samples, shards):
    """Packs (class, bytes) in this order."""
    for i in range(shards):
        with tarfile.open(os.path.join(folder, f"{name}-{i:03}.tar"), "w", format=tarfile.USTAR_FORMAT) as tar:
            for k in range(len(samples) * i // shards, len(samples) * (i + 1) // shards):
                label, image = samples[k]
                for ending, data in (("jpg", image), ("cls", label.encode())):
                    member = tarfile.TarInfo(f"{k:06}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def make(archive, folder, images, test, shards, mixed):
    parts = images_of(archive)
    for name, part, count, files in (("train", parts["train"], images, shards), ("val", parts["test"], test, 1)):
        each = count // len(part)
        samples = [(label, image) for label in sorted(part) for image in part[label][:each]]
        if mixed:
            random.Random(0).shuffle(samples)
        write_shards(folder, name, samples, files)


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--images", type=int, default=20000)
    parser.add_argument("--test", type=int, default=5000)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--mixed", action="store_true", help="the images in random order: the control")
    parser.add_argument("--model", default="resnet8-cifar")
    parser.add_argument("--epochs", type=float, default=8)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=4.5)
    parser.add_argument("--program", default=os.path.join(root, "build", "release", "paceline"))
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    done = os.path.join(args.dir, "packed")
    if not os.path.exists(done):
        make(args.archive, args.dir, args.images, args.test, args.shards, args.mixed)
        with open(done, "w", encoding="utf-8"):
            pass
    words = [os.path.abspath(args.program), "converge", "--compare", "shuffle", "--model", args.model, "--data",
             f"shards:train-{{000..{args.shards - 1:03}}}.tar,test=val-000.tar,size=32,crop-area=0.6",
             "--baseline-batch", str(args.batch), "--epochs", f"{args.epochs:g}", "--schedule", "cosine",
             "--repeats", str(args.seeds), "--out", "study"]
    child = subprocess.Popen(words, cwd=args.dir)
    try:
        sys.exit(child.wait(60 * args.minutes))
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)  # it writes a checkpoint
        child.wait()
        sys.exit(AGAIN)


if __name__ == "__main__":
    main()
