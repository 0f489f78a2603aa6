#!/usr/bin/python3
"""Makes an image folder of the form of Caltech-256 from three small data sets: many classes, uneven in number and size.

usage: caltech256-form.py FRUITS MNIST CIFAR10_JPEG DEST

FRUITS: the folder with Training/ (24 varieties); MNIST: the one with train-images-idx3-ubyte; CIFAR10_JPEG: the one with
train/. 240 classes are a variety of fruit with a digit on it, 10 are those of CIFAR-10. Class c has between 8 and 80
images; each is a JPEG between 40 and 400 pixels a side, landscape or portrait, some grey. Everything follows from fixed
seeds: two runs write the same pictures. It is a proof that such a folder is read and trained, not a benchmark.
"""
import os
import random
import sys

from PIL import Image


def digits(folder):
    """The training images of MNIST by digit, as 28x28 grey pictures."""
    def read(name, header):
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()[header:]
    pixels = read("train-images-idx3-ubyte", 16)
    labels = read("train-labels-idx1-ubyte", 8)
    by_digit = [[] for _ in range(10)]
    for i, digit in enumerate(labels[:5000]):
        by_digit[digit].append(Image.frombytes("L", (28, 28), pixels[784 * i:784 * (i + 1)]))
    return by_digit


def files(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def write(picture, path, draw):
    """Saves `picture` at a size and proportion of its own."""
    side = draw.randint(40, 400)
    other = min(400, max(40, round(side * draw.uniform(0.6, 1.6))))
    picture = picture.resize((side, other), Image.BICUBIC)
    if draw.random() < 0.05:
        picture = picture.convert("L")
    picture.save(path, quality=draw.randint(60, 92))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    fruits, mnist, cifar, dest = sys.argv[1:]
    by_digit = digits(mnist)
    varieties = files(os.path.join(fruits, "Training"))
    number = 0
    for variety in varieties:
        views = files(variety)
        for digit in range(10):
            number += 1
            draw = random.Random(number)
            name = f"{number:03}.{os.path.basename(variety).lower().replace(' ', '-')}-{digit}"
            os.makedirs(os.path.join(dest, name))
            for i in range(draw.randint(8, 80)):
                with Image.open(draw.choice(views)) as view:
                    picture = view.convert("RGB")
                mark = draw.choice(by_digit[digit]).resize((48, 48))
                picture.paste((0, 0, 0), (draw.randint(0, 52), draw.randint(0, 52)), mark)
                write(picture, os.path.join(dest, name, f"{number:03}_{i + 1:04}.jpg"), draw)
    for thing in files(os.path.join(cifar, "train")):
        number += 1
        draw = random.Random(number)
        name = f"{number:03}.{os.path.basename(thing)}"
        os.makedirs(os.path.join(dest, name))
        for i, path in enumerate(draw.sample(files(thing), draw.randint(8, 80))):
            with Image.open(path) as picture:
                write(picture.convert("RGB"), os.path.join(dest, name, f"{number:03}_{i + 1:04}.jpg"), draw)
    print(f"{number} classes in {dest}")


if __name__ == "__main__":
    main()
