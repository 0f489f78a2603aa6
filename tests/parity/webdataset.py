#!/usr/bin/env python3
"""Packs sets with `paceline data pack --shards` and reads the shards as WebDataset does: samples, labels, bytes.

The reader is this test's own: tarfile, members grouped by what stands before the first dot of their name.
"""
import argparse
import collections
import gzip
import hashlib
import pathlib
import struct
import subprocess
import tarfile
import tempfile
import zlib


def samples(path):
    """As WebDataset's tar iterator: (key, {ending: bytes}); a key's members follow one another."""
    with tarfile.open(path) as tar:
        key, fields = None, {}
        for member in tar:
            assert member.isfile() and member.mtime == 0 and member.uid == member.gid == 0, member
            begin, _, ending = member.name.partition(".")
            if begin != key:
                if key is not None:
                    yield key, fields
                key, fields = begin, {}
            assert ending.lower() not in fields, member.name
            fields[ending.lower()] = tar.extractfile(member).read()
        if key is not None:
            yield key, fields


def read_part(folder, part):
    """Every sample of a part: (key, label, ending of the image, bytes)."""
    found, counts = [], []
    for path in sorted(folder.glob(f"{part}-*.tar")):
        before = len(found)
        for key, fields in samples(path):
            label = int(fields.pop("cls"))  # what its decoder does with .cls
            (ending, image), = fields.items()
            found.append((key, label, ending, image))
        counts.append(len(found) - before)
    assert len({key for key, _, _, _ in found}) == len(found), "a key twice"
    return found, counts


def png(width, height, seed):
    rows = b"".join(b"\0" + bytes((seed * 31 + 7 * x + 13 * y + c) % 256 for x in range(width) for c in range(3)) for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def pixels_of(image):
    """The rows of a PNG of 8 bits, whatever its filters."""
    at, data, header = 8, b"", None
    while at < len(image):
        length, kind = struct.unpack(">I4s", image[at:at + 8])
        body = image[at + 8:at + 8 + length]
        header = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else header
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour = header[:4]
    step = {0: 1, 2: 3}[colour]
    assert depth == 8
    raw, stride, rows, before = zlib.decompress(data), width * step, [], bytes(width * step)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left, up, corner = (line[x - step] if x >= step else 0), before[x], (before[x - step] if x >= step else 0)
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda value: abs(guess - value))
            line[x] = (line[x] + (0, left, up, (left + up) // 2, paeth)[kind]) % 256
        rows.append(bytes(line))
        before = rows[-1]
    return b"".join(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        pack = lambda spec, out, *more: subprocess.run([program, "data", "pack", spec, str(top / out), *more], check=True, capture_output=True,
                                                       text=True, env={"PACELINE_CACHE": str(top / "cache"), "PATH": "/usr/bin:/bin"}).stdout
        # A folder of PNG files: their bytes and classes, each once.
        for part, count in (("train", 23), ("test", 6)):
            for number, kind in enumerate(("10", "9", "dog, big")):
                for i in range(count):
                    path = top / "images" / part / kind / f"{i}.b.png"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(png(9 + i, 8, 50 * number + i + (1000 if part == "test" else 0)))
        for shards in (1, 7, 69):
            said = pack(f"folder:{top}/images", f"packed{shards}", "--shards", str(shards))
            assert "--data " in said and "shards:" in said, said
            names = (top / f"packed{shards}/classes.txt").read_text().splitlines()
            assert names == ["10", "9", "dog, big"], names
            for part in ("train", "test"):
                found, counts = read_part(top / f"packed{shards}", part)
                assert max(counts) - min(counts) <= 1 and (part == "test" or len(counts) == shards), counts
                expected = collections.Counter((path.parent.name, path.read_bytes()) for path in (top / "images" / part).glob("*/*.png"))
                got = collections.Counter((names[label], image) for _, label, ending, image in found)
                assert got == expected and {ending for _, _, ending, _ in found} == {"png"}, part
        # The same again, whatever the files' order in their folders: the same bytes.
        pack(f"folder:{top}/images", "again", "--shards", "7")
        hashes = lambda folder: [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((top / folder).glob("*.tar"))]
        assert hashes("again") == hashes("packed7")
        # Arrays: the pixels of each image, in their order.
        arrays = top / "mnist"
        arrays.mkdir()
        images = {"train": [bytes((i * 3 + x) % 256 for x in range(784)) for i in range(40)], "t10k": [bytes((i + 5 * x) % 256 for x in range(784)) for i in range(11)]}
        for part, pictures in images.items():
            (arrays / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(struct.pack(">IIII", 2051, len(pictures), 28, 28) + b"".join(pictures)))
            (arrays / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(struct.pack(">II", 2049, len(pictures)) + bytes(i % 10 for i in range(len(pictures)))))
        pack(f"mnist:{arrays}", "digits", "--shards", "3", "--keep-order")
        for part, pictures in (("train", images["train"]), ("test", images["t10k"])):
            found, _ = read_part(top / "digits", part)
            assert [(int(key), label) for key, label, _, _ in found] == [(i, i % 10) for i in range(len(pictures))]
            assert [pixels_of(image) for _, _, _, image in found] == pictures, part
    print("WebDataset's way of reading finds every sample with its label and bytes")


if __name__ == "__main__":
    main()
