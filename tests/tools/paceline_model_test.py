#!/usr/bin/python3
"""share/paceline/paceline_model.py: records models, proves the layers, names what it cannot say. Skipped without PyTorch.

    paceline_model_test.py --program build/release/paceline
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    print(f"skipped: PyTorch is not there ({error}); on Debian: apt-get install python3-torch")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "share/paceline"), str(ROOT / "tests/parity")]
sys.dont_write_bytecode = True
import models  # noqa: E402
import paceline_model  # noqa: E402

PROGRAM = None


class Plain(nn.Module):
    """Layers around one call."""

    def __init__(self, call, channels=8):
        super().__init__()
        self.call, self.stem, self.fc = call, nn.Conv2d(3, channels, 3), nn.LazyLinear(4)

    def forward(self, x):
        return self.fc(self.call(self.stem(x)).flatten(1))


class Named(nn.Module):
    """Stands for torchvision's module of that name, which a pass must not look into."""

    def __init__(self):
        super().__init__()
        self.p, self.mode = 0.3, "row"

    def forward(self, x):
        return x * torch.ones(1)


Named.__name__ = "StochasticDepth"


class Tokens(nn.Module):
    """A vision transformer's calls, as torchvision and timm write them; `change` is one that a model file cannot say."""

    def __init__(self, change=None, reads=lambda x: x[:, 0], **of_attention):
        super().__init__()
        self.change, self.reads = change or (lambda x: x), reads
        self.patches, self.fc = nn.Conv2d(3, 8, 4, 4), nn.Linear(8, 4)
        self.token, self.place = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 17, 8))
        self.attend = nn.MultiheadAttention(8, 2, **{"batch_first": True, **of_attention})
        self.mlp = nn.Linear(8, 8)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.place
        x = self.change(x)
        x = x + self.attend(x, x, x, need_weights=False)[0]
        return self.fc(self.reads(x + F.gelu(self.mlp(x))))


class ChannelsLast(nn.Module):
    """A module that sees the channels as the last dimension."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Factor(nn.Module):
    """A learned factor, as ConvNeXt's layer_scale."""

    def __init__(self, *shape):
        super().__init__()
        self.factor = nn.Parameter(torch.full(shape, 1e-6))

    def forward(self, x):
        return self.factor * x


def record(call, channels=8, size=16):
    model = Plain(call, channels)
    model(torch.rand(1, 3, size, size))
    return paceline_model.record(model, (3, size, size))[0][1:-1]


def shuffle(x):
    n, c, h, w = x.shape
    return x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, -1, h, w)


class Records(unittest.TestCase):
    def test_each_call_becomes_its_layer(self):
        for call, expected in [
            (F.relu, [("relu", {})]), (lambda x: x.relu_(), [("relu", {})]), (nn.ReLU6(), [("relu6", {})]),
            (F.silu, [("silu", {})]), (F.gelu, [("gelu", {})]), (nn.Hardswish(), [("hard_swish", {})]),
            (nn.Hardsigmoid(), [("hard_sigmoid", {})]), (torch.sigmoid, [("sigmoid", {})]), (torch.tanh, [("tanh", {})]),
            (lambda x: F.max_pool2d(x, 3, 2, 1), [("max_pool", {"kernel": 3, "stride": 2, "padding": 1})]),
            (lambda x: F.avg_pool2d(x, 2), [("average_pool", {"kernel": 2, "stride": 2, "padding": 0})]),
            (nn.AdaptiveAvgPool2d(1), [("global_average_pool", {})]), (lambda x: x.mean([2, 3]), [("global_average_pool", {})]),
            (lambda x: x.permute(0, 2, 3, 1).mean((1, 2)), [("global_average_pool", {})]),
            (nn.Conv2d(8, 8, (1, 7), padding=(0, 3), bias=False),
             [("conv2d", {"kernel": [1, 7], "stride": 1, "padding": [0, 3], "dilation": 1})]),
            (nn.Conv2d(8, 8, (3, 5), padding="same", dilation=(2, 1)), [("conv2d", {"kernel": [3, 5], "padding": 2, "dilation": [2, 1]})]),
            (nn.Conv2d(8, 8, 3, padding="valid"), [("conv2d", {"padding": 0})]),
            (nn.Conv2d(8, 8, (1, 3), padding=2), [("pad", {"top": 2, "bottom": 2, "left": 0, "right": 0}), ("conv2d", {"padding": [0, 2]})]),
            (nn.Conv2d(8, 8, 3, padding=3, dilation=2), [("conv2d", {"padding": 3, "dilation": 2})]),
            (nn.MaxPool2d(3, 2, ceil_mode=True), [("max_pool", {"kernel": 3, "ceil": True})]),
            (lambda x: F.max_pool2d(x, (3, 1)), [("max_pool", {"kernel": [3, 1], "stride": [3, 1], "ceil": False})]),
            (nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), [("average_pool", {"ceil": True, "count_padding": False})]),
            (nn.AvgPool2d((2, 3), count_include_pad=False), [("average_pool", {"kernel": [2, 3], "count_padding": True})]),
            (nn.AdaptiveAvgPool2d((3, 7)), [("adaptive_average_pool", {"size": [3, 7]})]),
            (nn.AdaptiveAvgPool2d((None, 20)), [("adaptive_average_pool", {"size": [14, 20]})]),
            (nn.ZeroPad2d((0, 1, 2, -3)), [("pad", {"top": 2, "bottom": -3, "left": 0, "right": 1, "front": 0, "back": 0})]),
            (nn.ZeroPad2d(0), []), (lambda x: F.pad(x, (0, 0, 0, 0, 2, 1)), [("pad", {"front": 2, "back": 1, "left": 0})]),
            (lambda x: x[:, :, ::2, ::2], [("average_pool", {"kernel": 1, "stride": 2, "padding": 0})]),
            (lambda x: x[..., 1:, 2:-1], [("pad", {"top": -1, "bottom": 0, "left": -2, "right": -1})]),
            (lambda x: x[:, 1:5, 1::3, ::2], [("slice", {"begin": 1, "channels": 4}), ("pad", {"top": -1}), ("average_pool", {"stride": [3, 2]})]),
            (lambda x: torch.cat([torch.zeros_like(x), x, x.new_zeros(2, 3, 14, 14)[:len(x)]], 1), [("pad", {"front": 8, "back": 3})]),
            (nn.AdaptiveAvgPool2d(14), [("adaptive_average_pool", {"size": 14})]), (nn.Dropout(0.2), [("dropout", {"probability": 0.2})]),
            (Named(), [("stochastic_depth", {"probability": 0.3})]),
            (lambda x: x + x, [("add", {})]), (lambda x: x.mul(torch.sigmoid(x)), [("sigmoid", {}), ("mul", {})]),
            (lambda x: torch.cat([x, x], 1), [("concat", {})]), (lambda x: torch.cat([x], 1), []), (lambda x: x[:, 2:5], [("slice", {"begin": 2, "channels": 3})]),
            (lambda x: x.chunk(2, 1)[1], [("slice", {"begin": 4, "channels": 4})]), (shuffle, [("channel_shuffle", {"groups": 2})]),
            (lambda x: F.gelu(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), [("gelu", {})]),
            (ChannelsLast(nn.LayerNorm(8, eps=1e-6)), [("layer_norm", {"name": "call.module", "epsilon": 1e-6})]),
            (ChannelsLast(nn.Linear(8, 5, bias=False)), [("dense", {"features": 5, "bias": False, "flatten": False})]),
            (nn.GroupNorm(4, 8), [("group_norm", {"name": "call", "groups": 4, "epsilon": 1e-5})]),
            (Factor(8, 1, 1), [("scale", {"weight": "call.factor", "initial": 1e-6, "dimensions": 3})]),
            (ChannelsLast(Factor(8)), [("scale", {"weight": "call.module.factor", "dimensions": 1})]),
            (lambda x: F.adaptive_avg_pool2d(x, 1).sigmoid().expand_as(x) * x,
             [("global_average_pool", {}), ("sigmoid", {}), ("mul", {})]),
        ]:
            layers = record(call)
            self.assertEqual([layer["op"] for layer in layers], [op for op, _ in expected])
            for layer, (_, keys) in zip(layers, expected):
                self.assertEqual({key: layer[key] for key in keys}, keys)

    def test_tokens_become_places(self):
        layers, weights, _ = paceline_model.record(Tokens(), (3, 16, 16))
        self.assertEqual([layer["op"] for layer in layers], ["conv2d", "class_token", "position", "dense", "attention", "dense", "add", "dense",
                                                             "gelu", "add", "first_place", "dense"])
        self.assertEqual((layers[1]["weight"], layers[2]["weight"]), ("token", "place"))
        self.assertEqual((layers[3]["weight"], layers[3]["bias"], layers[3]["flatten"]), ("attend.in_proj_weight", "attend.in_proj_bias", False))
        self.assertEqual((layers[4]["heads"], layers[5]["name"]), (2, "attend.out_proj"))
        self.assertIn("attend.in_proj_weight", weights)
        layers = paceline_model.record(Tokens(reads=lambda x: x.mean(1)), (3, 16, 16))[0]
        self.assertEqual(layers[-2]["op"], "global_average_pool")

    def test_other_attention_is_refused(self):
        for model, expected in [(Tokens(batch_first=False), "attend: batch_first is off; only attention of a sequence to itself"), (Tokens(dropout=0.1), "it has dropout"),
                                (Tokens(add_zero_attn=True), "or added ones"), (Tokens(lambda x: x + torch.ones(1, 17, 8)), "add of [17x8]"),
                                (Tokens(reads=lambda x: x[:, 1]), "getitem of [17x8]")]:
            with self.assertRaises(paceline_model.Refused) as refused:
                paceline_model.record(model, (3, 16, 16))
            self.assertIn(expected, str(refused.exception))

    def test_what_it_does_not_know_is_named(self):
        for call, sentence in [
            (lambda x: torch.fft.fft(x).real, r"the model: fft_fft of \[8x14x14\]: it is not known"),
            (nn.Conv2d(8, 8, (1, 4), padding="same"), r"call: conv2d of \[8x14x14\]: its padding is 'same', which pads only one side"),
            (lambda x: F.max_pool2d(x, 3, 2, dilation=2), r"dilation and indices are not known"),
            (nn.AvgPool2d(2, divisor_override=3), r"no divisor of its own"),
            (nn.ReflectionPad2d(1), r"its padding is of mode 'reflect'; only zeros are known"),
            (lambda x: F.pad(x, (1, 1), value=1.5), r"its padding is 1.5; only zeros are known"),
            (lambda x: x[:, 3], r"only a range of channels, rows and columns"),
            (lambda x: x[:, ::2], r"only a range of channels, rows and columns"),
            (lambda x: torch.cat([x, torch.ones_like(x)], 1), r"one of its operands is a parameter or constant"),
            (lambda x: x * 2.0, r"mul of .*only two tensors"),
            (lambda x: x + 1, r"add of .*only two tensors"),
            (lambda x: F.softmax(x.mean((2, 3)), 1), r"Paceline adds the softmax itself"),
            (nn.LayerNorm([8, 14, 14]), r"over the last dimensions, \[8, 14, 14\]; only that over the channels"),
            (nn.LayerNorm(14), r"over the last dimensions, \[14\]; only that over the channels"),
            (ChannelsLast(nn.LayerNorm(8, elementwise_affine=False)), r"it must have weight and bias"),
            (nn.Linear(14, 3), r"along the last dimension, which is not the channels"),
            (lambda x: x.permute(0, 3, 2, 1), r"it orders dimensions as \(0, 3, 2, 1\)"),
            (lambda x: x + x.permute(0, 2, 3, 1)[:, :, :, :1].permute(0, 3, 1, 2), r"was reshaped"),
            (Factor(14), r"call.factor of \[14\] is not a factor for each channel"),
        ]:
            with self.assertRaisesRegex(paceline_model.Refused, sentence):
                record(call)

    def test_shared_and_unused_weights_are_refused(self):
        conv = nn.Conv2d(8, 8, 3, padding=1)
        with self.assertRaisesRegex(paceline_model.Refused, "call.weight is used twice"):
            model = Plain(conv)
            model.forward = lambda x: model.fc(conv(conv(model.stem(x))).flatten(1))
            model(torch.rand(1, 3, 16, 16))
            paceline_model.record(model, (3, 16, 16))
        model = Plain(F.relu)
        model(torch.rand(1, 3, 16, 16))
        model.head = nn.Linear(3, 3)
        with self.assertRaisesRegex(paceline_model.Refused, "2 parameters took no part, head.weight first"):
            paceline_model.record(model, (3, 16, 16))
        self.assertEqual(len(paceline_model.record(model, (3, 16, 16), unused_is_ok=True)[0]), 3)

    def test_wrong_layers_are_not_written(self):
        """A handler that says another thing than the call did is noticed by the logits."""
        kept = paceline_model.HANDLERS["relu"]
        paceline_model.HANDLERS["relu"] = paceline_model.HANDLERS["tanh"]
        try:
            with self.assertRaisesRegex(paceline_model.Refused, "other logits than the model"):
                record(F.relu)
        finally:
            paceline_model.HANDLERS["relu"] = kept

    def test_the_recorded_file_is_that_of_the_recipes(self):
        for model, name in [(models.SmallMobile(), "small-mobile"), (models.SmallInception(), "small-inception"), (models.SmallNorm(), "small-norm")]:
            layers = paceline_model.record(model, (3, 16, 16))[0]
            self.assertEqual(paceline_model.toml(layers, name, [3, 32, 32]), (ROOT / f"recipes/models/{name}.toml").read_text())


class Files(unittest.TestCase):
    def test_paceline_reads_model_and_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", ROOT / "share/paceline/paceline_model.py", "models:SmallMobile", "--input", "3x16x16",
                                   "--with", "classes=7", "--out", Path(folder, "mine")], cwd=ROOT / "tests/parity", capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("mine.toml: 24 layers, 2,415 parameters; their logits are PyTorch's within", done.stdout)
            trained = subprocess.run([PROGRAM, "train", "--model", Path(folder, "mine.toml"), "--data", "synthetic,train=64,test=16",
                                      "--steps", "2", "--local-batch", "8", "--out", Path(folder, "run")], capture_output=True, text=True)
            self.assertEqual(trained.returncode, 0, trained.stderr)

    def test_a_state_is_loaded_and_runs_no_code(self):
        with tempfile.TemporaryDirectory() as folder:
            state = models.SmallMobile().state_dict()
            state["fc.bias"][0] = 41.5
            torch.save(state, Path(folder, "state.pth"))
            torch.save({"state_dict": {f"module.{key}": value for key, value in state.items()}, "ema": state, "best_acc1": torch.tensor(71.5)},
                       Path(folder, "nested.pth"))
            torch.save(torch.zeros(3), Path(folder, "bare.pth"))
            torch.save({"fc.bias": Path("call")}, Path(folder, "hostile.pth"))  # a class that is no tensor
            torch.save({**state, "fc.bias": torch.zeros(3)}, Path(folder, "other.pth"))
            for name, code, sentence in [("state", 0, ""), ("nested", 0, ""), ("hostile", 1, "hostile.pth holds more than tensors"),
                                         ("bare", 1, "bare.pth holds no state dict, but a Tensor"), ("other", 1, "other.pth is not of this model: size mismatch for fc.bias")]:
                done = subprocess.run([sys.executable, "-B", "-W", "ignore", ROOT / "share/paceline/paceline_model.py", "models:SmallMobile",
                                       "--input", "3x16x16", "--state", Path(folder, f"{name}.pth"), "--out", Path(folder, name)],
                                      cwd=ROOT / "tests/parity", capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertIn(sentence, done.stderr)
            for name in ("state", "nested"):
                self.assertIn(struct.pack("<f", 41.5), Path(folder, f"{name}.safetensors").read_bytes())
            self.assertFalse(Path(folder, "hostile.safetensors").exists())

    def test_an_unknown_name_is_a_sentence(self):
        for words, sentence in [(["nowhere:model"], "No module named 'nowhere'"), (["models:Nothing"], "Nothing"),
                                (["models"], "MODULE:CALLABLE is needed, but is 'models'"),
                                (["models:SmallMobile", "--input", "32"], "such as 3x224x224, but is '32'"),
                                (["models:SmallMobile", "--state", "nothing.pth"], "nothing.pth"),
                                (["models:SmallMobile", "--input", "3x16x16", "--out", "/nowhere/x"], "/nowhere/x.toml"),
                                (["models.py:SmallMobile"], "a module is named without .py: models:SmallMobile"),
                                (["models:SmallMobile", "--with", "size=3"], "--with KEY=VALUE gives"),
                                (["models:SmallMobile", "--input", "32x32x3"], "channels first: 3x32x32"),
                                (["os:getcwd"], "must return an nn.Module, but returns a str")]:
            done = subprocess.run([sys.executable, "-B", ROOT / "share/paceline/paceline_model.py", *words], cwd=ROOT / "tests/parity",
                                  capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(sentence, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=os.path.abspath)
    PROGRAM = parser.parse_known_args()[0].program
    unittest.main(argv=sys.argv[:1])
