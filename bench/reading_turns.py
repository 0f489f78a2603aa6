#!/usr/bin/python3
"""Reads the same images with two workers each: a folder by paceline, the same packed into shards by paceline, the folder by
torchvision's ImageFolder with PyTorch's DataLoader, and the shards by a reader in Python as WebDataset's is. In turns, in one run.

Each decodes, crops at random, resizes, flips and normalises into batches. The figure is images a second of wall time, all files in the
page cache; ratios are within a round, the median over the rounds. Workers are threads of paceline, processes of PyTorch.

usage: reading_turns.py DIR [--photographs N] [--size 224] [--batch 64] [--images 1280] [--rounds 6] [--shards 8] [--out record.json]
                        [--driver build/release/bench/bench_loader] [--program build/release/paceline]

DIR holds train/ or Training/ with a folder a class, and a test folder beside it; with --photographs it is filled first with N JPEGs of
500x375 (noise whose spectrum falls as that of photographs, 1/f). Needs Debian's python3-torchvision. What is timed begins and ends with
the pipeline full, behind the first batch.
"""
import argparse
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

from record import ROOT, header, write
from step_vs_torch import last_json_line, median_interval

READERS = ("paceline, folder", "paceline, shards", "torchvision, folder", "python, shards")


def make_photographs(folder, count):
    """Noise with the spectrum of photographs, in colours that go together; about 90 KB each."""
    import numpy
    from PIL import Image
    height, width = 375, 500
    frequency = numpy.hypot(numpy.fft.fftfreq(height)[:, None], numpy.fft.rfftfreq(width)[None, :])
    frequency[0, 0] = 1
    for index in range(count):
        draw = numpy.random.RandomState(index)
        fields = []
        for _ in range(3):
            noise = draw.normal(size=frequency.shape) + 1j * draw.normal(size=frequency.shape)
            field = numpy.fft.irfft2(noise / frequency, s=(height, width))
            fields.append(field / field.std())
        light, red, blue = fields
        pixels = numpy.stack([light + 0.3 * red, light, light + 0.3 * blue], axis=-1) * 50 + 120
        path = os.path.join(folder, "test" if index % 10 == 9 else "train", f"class{index % 8}", f"{index:05}.jpg")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype("uint8")).save(path, quality=92)


def training_folder(top):
    return next(os.path.join(top, name) for name in ("train", "Training") if os.path.isdir(os.path.join(top, name)))


def transform(size):
    from torchvision import transforms
    return transforms.Compose([transforms.RandomResizedCrop(size, scale=(0.08, 1)), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                               transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


def samples_of_shards(paths, form):
    """WebDataset's pipeline in plain Python: shards shuffled, members grouped by key, a shuffle buffer of 1,000, decoded by Pillow."""
    from PIL import Image

    def decoded(fields):
        return form(Image.open(io.BytesIO(fields["jpg"])).convert("RGB")), int(fields["cls"])

    def raw():
        order = random.sample(paths, len(paths))
        for path in order:
            with tarfile.open(path, mode="r|") as tar:
                key, fields = None, {}
                for member in tar:
                    begin, _, ending = member.name.partition(".")
                    if begin != key and fields:
                        yield fields
                        fields = {}
                    key = begin
                    fields[ending] = tar.extractfile(member).read()
                if fields:
                    yield fields
    buffer = []
    while True:
        for fields in raw():
            if len(buffer) < 1000:
                buffer.append(fields)
                continue
            at = random.randrange(len(buffer))
            chosen, buffer[at] = buffer[at], fields
            yield decoded(chosen)


def peer(args):
    """A reader of PyTorch, in a process of its own: prints what bench_loader prints."""
    import torch
    from torchvision import datasets
    torch.set_num_threads(1)
    form, options = transform(args.size), {"batch_size": args.batch, "num_workers": args.workers, "drop_last": True}
    if args.peer == READERS[2]:
        loader = torch.utils.data.DataLoader(datasets.ImageFolder(training_folder(args.dir), form), shuffle=True, persistent_workers=True, **options)
    else:
        paths = sorted(os.path.join(args.packed, name) for name in os.listdir(args.packed) if name.startswith("train-"))

        class Shards(torch.utils.data.IterableDataset):
            def __iter__(self):
                me = torch.utils.data.get_worker_info()
                return samples_of_shards(paths[me.id::me.num_workers], form)
        loader = torch.utils.data.DataLoader(Shards(), **options)

    def batches():
        while True:
            yield from loader
    endless = batches()
    for _ in range(2 * args.workers + 1):  # the workers have begun, and have prepared as many batches as they keep
        next(endless)
    begin, wanted = time.monotonic(), max(1, args.images // args.batch)
    for _ in range(wanted):
        next(endless)
    print(json.dumps({"images": wanted * args.batch, "wall_s": time.monotonic() - begin}))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"reading_turns: {' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir")
    parser.add_argument("--photographs", type=int, default=0)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--images", type=int, default=1280)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--driver", default=os.path.join(ROOT, "build", "release", "bench", "bench_loader"))
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "paceline"))
    parser.add_argument("--what", default="", help="of the images, for the record")
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--packed", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args)
    if args.photographs > 0 and not os.path.isdir(os.path.join(args.dir, "train")):
        make_photographs(args.dir, args.photographs)
    with tempfile.TemporaryDirectory() as folder:
        spec = f"folder:{args.dir},size={args.size}"
        packed = os.path.join(folder, "packed")
        said = run([args.program, "data", "pack", spec, packed, "--shards", str(args.shards)])
        shards = said.rsplit("--data ", 1)[1].strip().strip("'")
        ours = lambda what: [args.driver, what, str(args.batch), str(args.workers), str(args.images)]
        theirs = lambda name: [sys.executable, os.path.abspath(__file__), args.dir, "--peer", name, "--packed", packed, "--size", str(args.size),
                               "--batch", str(args.batch), "--images", str(args.images), "--workers", str(args.workers)]
        commands = dict(zip(READERS, (ours(spec), ours(shards), theirs(READERS[2]), theirs(READERS[3]))))
        rounds = []
        for index in range(args.rounds):
            order = READERS[index % 4:] + READERS[:index % 4]  # another one goes first in each round
            result = {}
            for name in order:
                one = last_json_line(run(commands[name]))
                result[name] = one["images"] / one["wall_s"]
            rounds.append({"images_per_s": result, "load": os.getloadavg()[0]})
            print(f"round {index + 1}/{args.rounds}: " + ", ".join(f"{name} {result[name]:.0f}/s" for name in READERS), flush=True)
    record = {**header("reading images: a folder and shards, beside torchvision and a reader of shards in Python"), "images_are": args.what,
              "size": args.size, "batch": args.batch, "workers": args.workers, "shards": args.shards, "rounds": rounds}
    record["images_per_s"] = {name: statistics.median(one["images_per_s"][name] for one in rounds) for name in READERS}
    for key, over, under in (("folder_over_torchvision", 0, 2), ("shards_over_folder", 1, 0), ("shards_over_python", 1, 3),
                             ("shards_over_torchvision", 1, 2)):
        ratios = [one["images_per_s"][READERS[over]] / one["images_per_s"][READERS[under]] for one in rounds]
        low, high, coverage = median_interval(ratios)
        record[key] = {"median": statistics.median(ratios), "low": low, "high": high, "coverage": coverage}
        print(f"{key} = {record[key]['median']:.2f} [{low:.2f}, {high:.2f}] ({coverage:.0%}, {len(rounds)} rounds)")
    write(args.out, record)


if __name__ == "__main__":
    main()
