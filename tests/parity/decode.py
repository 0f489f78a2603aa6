#!/usr/bin/python3
"""Images of every kind and mode that Pillow writes, decoded by us and by Pillow: equal pixels, and equally upright. Parts of images
scaled by both: equal pixels where evaluation reads them, at most a level off where training does. Images of 16 bits are scaled by a
range, in whole numbers: (value - low) / (high - low) times 255, rounded.

    decode.py --runner build/release/tests/decode_run

What Pillow alone reads is named with our reason. Skipped (77) without Pillow.
"""
import argparse
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from PIL import Image, ImageOps, features
except ImportError as error:
    print(f"skipped: Pillow is not there ({error}); on Debian: apt-get install python3-pil")
    sys.exit(77)

SIZES = [(1, 1), (7, 5), (64, 48), (33, 130)]
# Kind: its modes, and the words of each way to save them.
WAYS = {
    "webp": (["RGB", "RGBA"], [{"lossless": True, "exact": True}, {"quality": 80}]),
    "tif": (["RGB", "RGBA", "L", "LA", "P", "1"], [{}, {"compression": "tiff_lzw"}, {"compression": "tiff_adobe_deflate"}, {"compression": "packbits"}]),
    "gif": (["P", "L", "RGB"], [{}, {"interlace": 0}]),
    "bmp": (["RGB", "L", "P", "1"], [{}]),
}


def picture(mode, size, seed):
    """Bands with noise, so that palettes and lossy kinds have something to keep."""
    draw = random.Random(seed)
    width, height = size
    pixels = bytes(min(255, max(0, int(128 + 90 * ((x + 2 * y + 40 * c) % 37 - 18) / 18 + draw.randint(-15, 15))))
                   for y in range(height) for x in range(width) for c in range(3))
    image = Image.frombytes("RGB", size, pixels)
    if mode == "RGBA":
        image.putalpha(Image.frombytes("L", size, bytes(draw.randint(0, 255) for _ in range(width * height))))
    return image.convert(mode)


def resized(runner, folder):
    """Sentences on parts of pictures that are scaled otherwise than by Pillow."""
    draw, wrong, most = random.Random(7), [], 0
    for at in range(40):
        width, height = draw.choice([(1, 1), (3, 50), (40, 31), (97, 64), (200, 133), (300, 7)])
        rows, columns = draw.choice([(1, 1), (32, 32), (7, 60), (height, width), (64, 48)])
        path = folder / f"resized-{at}.ppm"
        image = Image.frombytes("RGB", (width, height), bytes(draw.randrange(256) for _ in range(3 * width * height)))
        image.save(path)
        # Pillow keeps a box as float: eighths are the same number in both.
        left, top = draw.randrange(4 * width) / 8, draw.randrange(4 * height) / 8
        right, bottom = [begin + (1 + draw.randrange(int(8 * (side - begin)))) / 8 for side, begin in ((width, left), (height, top))]
        if at % 3 == 0:
            left, top, right, bottom = 0, 0, width, height
        words = [str(word) for word in (top, left, bottom - top, right - left, rows, columns)]
        subprocess.run([runner, "--resize", *words, path], check=True)
        theirs = image.resize((columns, rows), Image.BILINEAR, box=(left, top, right, bottom)).tobytes()
        for kind, bound in (("pil", 0), ("fast", 1)):
            with Image.open(f"{path}.{kind}.ppm") as scaled:
                off = max(abs(a - b) for a, b in zip(scaled.tobytes(), theirs))
            most = max(most, off)
            if off > bound:
                wrong.append(f"{width}x{height}, box {words}, {kind}: off by {off}")
    if most == 0:
        wrong.append("the fast way gives Pillow's very pixels, which it is not written to do: is it compared?")
    return wrong


def deep_files(folder):
    """Grey images of 12 and 16 bits that Pillow writes, as (path, width, height, values)."""
    draw = random.Random(5)
    for kind, words in (("png", {}), ("tif", {}), ("tif", {"compression": "tiff_lzw"})):
        for size in SIZES:
            for most in (4095, 65535):
                values = [draw.randint(most // 7, most) for _ in range(size[0] * size[1])]
                path = folder / f"deep-{len(words)}-{size[0]}x{size[1]}-{most}.{kind}"
                Image.frombytes("I;16", size, struct.pack(f"<{len(values)}H", *values)).save(path, **words)
                yield path, values


def wrong_depths(runner, folder):
    """Sentences on files of 16 bits whose pixels are not what their range says."""
    files, wrong = list(deep_files(folder)), []
    for text in ("own", "0:4095", "1000:30000"):
        done = subprocess.run([runner, f"range={text}", *[path for path, _ in files]], capture_output=True, text=True, check=True)
        wrong += done.stdout.splitlines()
        for path, values in files:
            low, high = (min(values), max(values)) if text == "own" else map(int, text.split(":"))
            span = max(1, high - low)
            theirs = [(2 * 255 * min(max(value - low, 0), span) + span) // (2 * span) for value in values]
            with Image.open(f"{path}.ppm") as image:
                ours = [band.tobytes() for band in image.convert("RGB").split()]
            if any(band != bytes(theirs) for band in ours):
                wrong.append(f"{path.name} with range={text}: other than in whole numbers")
    print(f"{3 * len(files)} scalings of 16 bits, {len(wrong)} other than in whole numbers")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True, type=Path)
    runner = parser.parse_args().runner.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder, files = Path(name), []
        for kind, (modes, ways) in WAYS.items():
            if kind == "webp" and not features.check("webp"):
                continue
            for mode in modes:
                for way, words in enumerate(ways):
                    for size in SIZES:
                        path = folder / f"{mode}-{way}-{size[0]}x{size[1]}.{kind}"
                        image = picture(mode, size, len(files))
                        try:
                            image.save(path, **words)
                        except (OSError, ValueError):  # a mode that this compression does not have
                            continue
                        files.append(path)
        for turn in range(1, 9):  # as cameras and scanners write it
            for kind in ("webp", "tif"):
                path = folder / f"turned-{turn}.{kind}"
                exif = Image.Exif()
                exif[0x0112] = turn
                words = {"tiffinfo": {274: turn}} if kind == "tif" else {"exif": exif, "lossless": True}
                picture("RGB", (9, 6), turn).save(path, **words)
                files.append(path)
        frames = [picture("RGB", (20, 12), seed) for seed in range(3)]
        for kind, words in (("gif", {}), ("webp", {"lossless": True}), ("tif", {})):
            path = folder / f"several.{kind}"
            frames[0].save(path, save_all=True, append_images=frames[1:], **words)
            files.append(path)
        done = subprocess.run([runner, *files], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"decode_run ends with {done.returncode}: {done.stderr}")
        said, wrong = done.stdout, wrong_depths(runner, folder)
        for path in files:
            with Image.open(path) as image:
                image.load()  # Pillow turns a TIFF here, and 9.4's exif_transpose() would turn it once more
                theirs = (image if path.suffix == ".tif" else ImageOps.exif_transpose(image)).convert("RGB")
            decoded = Path(f"{path}.ppm")
            if not decoded.exists():
                wrong.append(f"{path.name}: not decoded")
                continue
            with Image.open(decoded) as image:
                ours = image.convert("RGB")
            if ours.size != theirs.size:
                wrong.append(f"{path.name}: {ours.size}, Pillow {theirs.size}")
            elif ours.tobytes() != theirs.tobytes():
                off = max(abs(a - b) for a, b in zip(ours.tobytes(), theirs.tobytes()))
                wrong.append(f"{path.name}: off by up to {off}")
        wrong += resized(runner, folder)
    print(f"{len(files)} files and 40 parts, {len(wrong)} other than Pillow's")
    if wrong:
        sys.exit("\n".join(wrong[:20]) + "\n" + said)


if __name__ == "__main__":
    main()
