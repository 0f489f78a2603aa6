#!/usr/bin/python3
"""`--weights` with files of torch.save(): what PyTorch itself writes, beside the same weights as safetensors. Skipped without PyTorch.

    torch_weights_test.py --program build/release/paceline
"""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest
from collections import Counter, OrderedDict
from pathlib import Path

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: PyTorch is not there ({error}); on Debian: apt-get install python3-torch")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "share/paceline"), str(ROOT / "tests/parity")]
sys.dont_write_bytecode = True
import models  # noqa: E402
import paceline_model  # noqa: E402

PROGRAM = None
MOBILE = ROOT / "recipes/models/small-mobile.toml"


class Calls:
    """What a hostile pickle is: its reader calls this."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


class TorchWeights(unittest.TestCase):
    def setUp(self):
        self.made = tempfile.TemporaryDirectory()
        self.folder = Path(self.made.name)
        torch.manual_seed(5)
        self.state = models.SmallMobile(classes=10).state_dict()
        for name, value in self.state.items():
            if name.endswith("running_mean"):
                value.normal_()

    def tearDown(self):
        self.made.cleanup()

    def train(self, file, *words, model=MOBILE, size=16):
        """One step on one image; the answer and the bytes of the checkpoint, which are those of the weights after it."""
        out = Path(tempfile.mkdtemp(dir=self.folder)) / "run"
        done = subprocess.run([PROGRAM, "train", "--model", model, "--data", f"synthetic,train=8,test=8,classes=10,size={size}", "--steps", "1",
                               "--local-batch", "2", "--threads", "1", "--weights", file, "--out", out, *words], capture_output=True, text=True)
        self.assertNotIn("Traceback", done.stderr)
        files = [path.read_bytes() for path in out.glob("checkpoint-*.safetensors")]
        return done.returncode, done.stdout + done.stderr, weights_in(files[0]) if files else None

    def same_as_safetensors(self, saved, state, model=MOBILE, size=16, sentence="weights from given.pth"):
        given, plain = self.folder / "given.pth", self.folder / "plain.safetensors"
        torch.save(saved, given)
        plain.write_bytes(paceline_model.safetensors(OrderedDict((k, v) for k, v in state.items() if not k.endswith("tracked"))))
        code, text, weights = self.train(given, model=model, size=size)
        self.assertEqual(code, 0, text)
        self.assertIn(sentence, text)
        self.assertTrue(weights)
        self.assertEqual(weights, self.train(plain, model=model, size=size)[2])

    def test_weights_are_those_of_safetensors(self):
        transposed = OrderedDict((k, v.transpose(0, -1).contiguous().transpose(0, -1) if v.dim() > 1 else v) for k, v in self.state.items())
        whole = torch.cat([v.flatten().float() for v in self.state.values()])
        shared, at = OrderedDict(), 0
        for name, value in self.state.items():
            shared[name] = whole[at:at + value.numel()].view(value.shape)
            at += value.numel()
        for saved in (self.state, transposed, shared, OrderedDict((k, nn.Parameter(v) if v.is_floating_point() else v) for k, v in self.state.items())):
            self.same_as_safetensors(saved, self.state)

    def test_each_type_is_read(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            rounded = OrderedDict((k, v.to(dtype) if v.is_floating_point() else v) for k, v in self.state.items())
            self.same_as_safetensors(rounded, rounded)

    def test_a_checkpoint_of_a_training_holds_them(self):
        model = models.SmallMobile()
        model.load_state_dict(self.state)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.rand(2, 3, 16, 16)).sum().backward()
        before = OrderedDict((k, v.clone()) for k, v in self.state.items())
        optimizer.step()
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 3])
        wrapped = OrderedDict(("module." + k, v) for k, v in before.items())
        for key in ("state_dict", "model", "model_state_dict"):
            self.same_as_safetensors({"epoch": 3, "args": argparse.Namespace(lr=0.1), key: wrapped, "optimizer": optimizer.state_dict(),
                                      "scheduler": schedule.state_dict(), "counts": Counter("aab"), "rng": torch.get_rng_state(), "seed": 1 << 70,
                                      "device": torch.device("cpu"), "best": torch.tensor(1.5).double().numpy()[()], "size": model.fc.weight.size(),
                                      "path": Path("here"), "tags": {"a", "b"}, "made": b"bytes"}, before,
                                     sentence=f"whose names begin with '{key}.module.'")

    def test_resnet18_is_read(self):
        state = models.make("resnet18", 3, 32, 32, 10).state_dict()
        self.same_as_safetensors(state, state, model="resnet18", size=32, sentence="weights from given.pth: 102 arrays")

    def test_a_letter_of_another_alphabet_is_no_hurdle(self):
        file = self.folder / "modèle é.pth"  # it is the name of a folder inside the file too
        torch.save(self.state, file)
        code, text, _ = self.train(file)
        self.assertEqual(code, 0, text)

    def test_what_is_no_state_dict_is_a_sentence(self):
        marker = self.folder / "ran"
        file = self.folder / "given.pth"
        script = torch.jit.trace(models.SmallMobile().eval(), torch.rand(1, 3, 16, 16))
        for save, sentence in [
            (lambda: torch.save(Calls(marker), file), "it holds posix.system, which only Python can make, and nothing of it was run"),
            (lambda: torch.save({**self.state, "x": Calls(marker)}, file), "it holds posix.system"),
            (lambda: torch.save({**self.state, "x": Calls(marker)}, file, pickle_protocol=4), "it holds posix.system"),
            (lambda: torch.save(models.SmallMobile(), file), "it holds models.SmallMobile, which only Python can make"),
            (lambda: torch.save(self.state, file, _use_new_zipfile_serialization=False), "was written by PyTorch before 1.6"),
            (lambda: torch.jit.save(script, file), "is a TorchScript archive"),
            (lambda: torch.save(torch.rand(3), file), "it holds one array"),
            (lambda: torch.save([torch.rand(3)], file), "it holds no dictionary"),
            (lambda: torch.save({"a.weight": torch.quantize_per_tensor(torch.rand(3), 1, 0, torch.qint8)}, file), "_rebuild_qtensor"),
        ]:
            file.unlink(missing_ok=True)
            save()
            code, text, _ = self.train(file)
            self.assertEqual(code, 3, text)
            self.assertIn(sentence, text)
            self.assertEqual(len(text.strip().splitlines()), 1, text)
            self.assertFalse(marker.exists())
        torch.save(self.state, file, pickle_protocol=4)
        self.assertEqual(self.train(file)[0], 0)


def weights_in(checkpoint):
    """The arrays of a checkpoint: what follows its header."""
    return checkpoint[8 + int.from_bytes(checkpoint[:8], "little"):]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=os.path.abspath)
    PROGRAM = parser.parse_known_args()[0].program
    unittest.main(argv=sys.argv[:1])
