#!/usr/bin/env python3
"""Trains for a moment with --tensorboard and reads what it left with other libraries than ours.

    decode.py --program BUILD/paceline

Messages are decoded by google.protobuf (python3-protobuf) with descriptors made here after TensorBoard's event.proto and
summary.proto; checksums are worked out by crcmod (python3-crcmod). Without either the test says so and ends with 77.
"""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import crcmod.predefined
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf import message_factory
except ImportError as missing:
    print(f"skipped: {missing.name} is not there; apt-get install python3-protobuf python3-crcmod")
    sys.exit(77)

CRC32C = crcmod.predefined.mkPredefinedCrcFun("crc-32c")


def masked(data):
    crc = CRC32C(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def event_class():
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="board", syntax="proto3")

    def message(name, *fields):
        one = file.message_type.add(name=name)
        for number, key, kind, label, of in fields:
            one.field.add(number=number, name=key, type=kind, label=label, type_name=of)

    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    message("Value", (1, "tag", field.TYPE_STRING, one, None), (2, "simple_value", field.TYPE_FLOAT, one, None))
    message("Summary", (1, "value", field.TYPE_MESSAGE, many, ".board.Value"))
    message("Event", (1, "wall_time", field.TYPE_DOUBLE, one, None), (2, "step", field.TYPE_INT64, one, None),
            (3, "file_version", field.TYPE_STRING, one, None), (5, "summary", field.TYPE_MESSAGE, one, ".board.Summary"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("board.Event"))


def events_in(path):
    """All messages of a file; ends the test where a frame or a checksum is wrong."""
    data, at, Event, events = path.read_bytes(), 0, event_class(), []
    while at < len(data):
        length = data[at:at + 8]
        (size,) = struct.unpack("<Q", length)
        assert struct.unpack("<I", data[at + 8:at + 12])[0] == masked(length), f"checksum of the length at byte {at}"
        message = data[at + 12:at + 12 + size]
        assert len(message) == size, f"cut at byte {at}"
        assert struct.unpack("<I", data[at + 12 + size:at + 16 + size])[0] == masked(message), f"checksum at byte {at}"
        event = Event()
        event.ParseFromString(message)
        assert not event.UnknownFields() if hasattr(event, "UnknownFields") else True
        events.append(event)
        at += 16 + size
    return events


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        subprocess.run([program, "train", "--model", "resnet8-cifar", "--data", "synthetic,train=512,test=128",
                        "--global-batch", "64", "--epochs", "2", "--precision", "fp32", "--no-measured-kernels",
                        "--tensorboard", "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        files = list((out / "tensorboard").iterdir())
        assert len(files) == 1, files
        assert files[0].name.startswith("events.out.tfevents."), files
        first, *events = events_in(files[0])
        assert first.file_version == "brain.Event:2", first
        scalars = {}
        for event in events:
            for value in event.summary.value:
                scalars.setdefault(value.tag, {})[event.step] = value.simple_value
        record = json.loads((out / "record.json").read_text())
        near = lambda a, b: abs(a - b) <= 1e-6 * max(1, abs(b))
        for epoch in record["epochs"]:
            for tag, key in (("train/loss", "train_loss"), ("train/accuracy", "train_accuracy"),
                             ("test/loss", "test_loss"), ("test/accuracy", "test_accuracy"), ("learning_rate", "lr")):
                assert near(scalars[tag][epoch["updates"]], epoch[key]), (tag, epoch, scalars[tag])
                assert near(scalars["by_epoch/" + tag][epoch["epoch"]], epoch[key]), (tag, epoch)
        assert all(value > 0 for value in scalars["images_per_s"].values()), scalars["images_per_s"]
        began = events[0].wall_time
        assert all(began <= event.wall_time < began + 600 for event in events)
        print(f"{len(events) + 1} messages of {files[0].stat().st_size} bytes, tags {', '.join(sorted(scalars))}")


if __name__ == "__main__":
    main()
