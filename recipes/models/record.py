#!/usr/bin/python3
"""Records the models of the zoo that PyTorch has, or that are defined here, as the model files beside this script.

    record.py [--check] [NAME..]      writes NAME.toml; with --check it compares instead, and ends with 1 if one differs

A model file has layers and no weights, so that the random ones drawn here do not matter. Needs Debian's python3-torch and
python3-torchvision; ends with 77 where they are missing.
"""
import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "share/paceline"))
try:
    import torchvision
    from torch import nn

    import paceline_model
except ImportError as error:
    print(f"skipped: {error}; on Debian: apt-get install python3-torch python3-torchvision")
    sys.exit(77)


class PreActBlock(nn.Module):
    """He et al., Identity Mappings in Deep Residual Networks (2016): batch norm and ReLU come before each convolution."""

    def __init__(self, before, channels, stride, dropout=0.0):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(before)
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.dropout = nn.Dropout(dropout) if dropout > 0 else None
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(before, channels, 1, stride, bias=False) if stride != 1 or before != channels else None

    def forward(self, x):
        first = self.bn1(x).relu()
        branch = self.bn2(self.conv1(first)).relu()
        if self.dropout is not None:
            branch = self.dropout(branch)
        return self.conv2(branch) + (x if self.shortcut is None else self.shortcut(first))


class PreActNet(nn.Module):
    """For 32x32 images: stages of `blocks` blocks, each stage but the first with stride 2."""

    def __init__(self, stem, widths, blocks, dropout=0.0):
        super().__init__()
        self.conv1 = nn.Conv2d(3, stem, 3, 1, 1, bias=False)
        before = stem
        for i, width in enumerate(widths):
            stage = []
            for block in range(blocks):
                stage.append(PreActBlock(before, width, 2 if i > 0 and block == 0 else 1, dropout))
                before = width
            setattr(self, f"layer{i + 1}", nn.Sequential(*stage))
        self.stages = len(widths)
        self.bn = nn.BatchNorm2d(before)
        self.fc = nn.Linear(before, 10)

    def forward(self, x):
        x = self.conv1(x)
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(self.bn(x).relu().mean((2, 3)))


def preact_resnet18_cifar():
    return PreActNet(64, [64, 128, 256, 512], 2)


def wide_resnet_28_10():
    """Zagoruyko and Komodakis (2016): 28 layers, ten times as wide as a ResNet for CIFAR; dropout 0.3 as in the paper."""
    return PreActNet(16, [160, 320, 640], 4, dropout=0.3)


def vit_cifar():
    """A vision transformer of torchvision's code for 32x32: patches of 4x4, so that there are 64 and the class token; narrower blocks than ViT-Ti's."""
    return torchvision.models.vision_transformer.VisionTransformer(image_size=32, patch_size=4, num_layers=9, num_heads=3, hidden_dim=192, mlp_dim=384, num_classes=10)


def convnext_cifar():
    """A ConvNeXt (Liu et al. 2022) for 32x32 images: patches of 2x2, three stages of two blocks."""
    block = torchvision.models.convnext.CNBlockConfig
    model = torchvision.models.ConvNeXt([block(48, 96, 2), block(96, 192, 2), block(192, None, 2)], 0.1, num_classes=10)
    model.features[0][0] = nn.Conv2d(3, 48, 2, 2)
    return model


OF_TORCHVISION = ("resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "resnext50_32x4d", "vgg16_bn", "mobilenet_v2",
                  "mobilenet_v3_small", "efficientnet_b0", "regnet_y_400mf", "densenet121", "shufflenet_v2_x1_0",
                  "convnext_tiny", "vit_b_16")
MODELS = {name: (getattr(torchvision.models, name), [3, 224, 224]) for name in OF_TORCHVISION}
MODELS["preact-resnet18-cifar"] = (preact_resnet18_cifar, [3, 32, 32])
MODELS["wide-resnet-28-10"] = (wide_resnet_28_10, [3, 32, 32])
MODELS["convnext-cifar"] = (convnext_cifar, [3, 32, 32])
MODELS["vit-cifar"] = (vit_cifar, [3, 32, 32])
FIRST_WEIGHTS = {"convnext_tiny": "normal", "convnext-cifar": "normal"}  # of ConvNeXt as torchvision's


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    for name in arguments.names or MODELS:
        if name not in MODELS:
            sys.exit(f"record.py: no model {name}; there are {', '.join(MODELS)}")
        make, shape = MODELS[name]
        layers, _, _ = paceline_model.record(make(), shape)
        for layer in layers:
            if name in FIRST_WEIGHTS and layer["op"] in ("conv2d", "dense"):
                layer["init"] = FIRST_WEIGHTS[name]
        text = paceline_model.toml(layers, name, shape)
        path = HERE / f"{name}.toml"
        if not arguments.check:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"record.py: {path} is not what is recorded now")
        print(f"{name}: {text.count('[[layer]]')} layers")


if __name__ == "__main__":
    main()
