"""Models of the zoo and of model files as plain PyTorch, with the same parameter names; nothing here knows Paceline."""

import torch
from torch import nn
from torch.nn import functional as F


class Relu(nn.Module):
    """max(x, 0), where `owner.bias` was the last thing added to x, channel by channel.

    With a `margin` it first moves that bias until no element lies within the margin of zero: at such a point the
    gradient jumps, and which side an element is on would be a matter of rounding (see parity.py).
    """

    margin = 0.0

    def forward(self, x, owner):
        return F.relu(self.moved_away(x, owner) if self.margin else x)

    def moved_away(self, x, owner):
        x = x.clone()
        others = [0] + list(range(2, x.dim()))
        channels = torch.arange(x.shape[1])  # that may still be near: fewer each time
        while True:
            channels = channels[x[:, channels].abs().amin(others) < self.margin]
            if not len(channels):
                return x
            owner.bias[channels] += 1e-3
            x[:, channels] += 1e-3


class MaxPool(nn.Module):
    """Max pooling; with a `margin` it marks in `tied` the samples with a window whose first
    two are closer than that: which of them wins would be a matter of rounding. (Two zeros are a ReLU's: the
    gradient ends there whichever wins.)"""

    margin = 0.0
    tied = None

    def __init__(self, kernel, stride, padding=0, ceil=False):
        super().__init__()
        self.kernel, self.stride, self.padding, self.ceil = kernel, stride, padding, ceil

    def forward(self, x):
        if self.margin:
            n, c = x.shape[:2]
            beyond = (self.stride - 1) * self.ceil
            windows = F.unfold(F.pad(x, (0, beyond) * 2, value=-torch.inf), self.kernel, padding=self.padding, stride=self.stride).reshape(n, c, self.kernel**2, -1)
            best = windows.topk(2, dim=2).values
            close = (best[:, :, 0] != 0) & (best[:, :, 0] - best[:, :, 1] < self.margin)
            self.tied = close.flatten(1).any(1)
        return F.max_pool2d(x, self.kernel, self.stride, self.padding, ceil_mode=self.ceil)


class BasicBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu1, self.relu2 = Relu(), Relu()
        self.downsample = None
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu1(self.bn1(self.conv1(x)), self.bn1)
        return self.relu2(self.bn2(self.conv2(y)) + shortcut, self.bn2)


class ResNet(nn.Module):
    def __init__(self, channels, classes, stages, small_images):
        super().__init__()
        width = stages[0][0]
        if small_images:
            self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
            self.maxpool = nn.Identity()
        else:
            self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False)
            self.maxpool = MaxPool(3, 2, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = Relu()
        inputs = width
        self.stages = len(stages)
        for i, (out, blocks) in enumerate(stages):
            layers = []
            for block in range(blocks):
                layers.append(BasicBlock(inputs, out, 2 if i > 0 and block == 0 else 1))
                inputs = out
            setattr(self, f"layer{i + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x)), self.bn1))
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


class MnistCnn(nn.Module):
    """Dropout left out: parity runs with its probability at 0."""

    def __init__(self, channels, classes, height, width):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(64 * ((height - 4) // 2) * ((width - 4) // 2), 128)
        self.fc2 = nn.Linear(128, classes)
        self.relu1, self.relu2, self.relu3 = Relu(), Relu(), Relu()
        self.pool = MaxPool(2, 2)

    def forward(self, x):
        x = self.relu1(self.conv1(x), self.conv1)
        x = self.relu2(self.conv2(x), self.conv2)
        x = torch.flatten(self.pool(x), 1)
        return self.fc2(self.relu3(self.fc1(x), self.fc1))


class SmallCnn(nn.Module):
    """recipes/models/small-cnn.toml: the ops that no model of the zoo has (GELU, average pool). Without dropout."""

    def __init__(self, channels, classes):
        super().__init__()
        self.stem = nn.Conv2d(channels, 32, 3, 1, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(32)
        self.branch_conv = nn.Conv2d(32, 32, 3, 1, 1, bias=False)
        self.branch = nn.BatchNorm2d(32)
        self.pool = MaxPool(2, 2)
        self.widen = nn.Conv2d(32, 64, 3, 2, 1)
        self.relu = Relu()
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        trunk = F.gelu(self.stem_norm(self.stem(x)))
        x = self.pool(F.gelu(self.branch(self.branch_conv(trunk)) + trunk))
        x = F.avg_pool2d(self.relu(self.widen(x), self.widen), 2)
        return self.fc(x.mean((2, 3)))


class SmallMobile(nn.Module):
    """recipes/models/small-mobile.toml, which was recorded from this class: the ops of mobile networks. Depthwise and grouped
    convolutions, a gate for each channel, halves that are shuffled, activations with few kinks."""

    def __init__(self, channels=3, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 5, 2, 2, groups=16, bias=False)
        self.depthwise_norm = nn.BatchNorm2d(16)
        self.squeeze, self.excite = nn.Conv2d(16, 8, 1), nn.Conv2d(8, 16, 1)
        self.widen = nn.Conv2d(16, 32, 1, groups=2)
        self.branch = nn.Conv2d(16, 16, 3, 1, 1, groups=4, bias=False)
        self.branch_norm = nn.BatchNorm2d(16)
        self.fc = nn.Linear(48, classes)

    def forward(self, x):
        x = F.hardswish(self.stem_norm(self.stem(x)))
        x = F.silu(self.depthwise_norm(self.depthwise(x)))
        gate = torch.sigmoid(self.excite(F.silu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        x = self.widen(x * gate)
        left, right = x.chunk(2, dim=1)
        right = torch.tanh(self.branch_norm(self.branch(right)))
        x = torch.cat([left, right, F.hardsigmoid(left) * right], dim=1)
        n, c, h, w = x.shape
        x = x.view(n, 3, c // 3, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.fc(x.mean((2, 3)))


class SmallInception(nn.Module):
    """recipes/models/small-inception.toml, which was recorded from this class: windows that are not square, gaps between taps,
    pools that round up, that do not count their padding, that make a given size."""

    def __init__(self, channels=3, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(16)
        self.pool = MaxPool(3, 2, ceil=True)
        self.wide = nn.Conv2d(16, 16, (1, 7), padding=(0, 3), bias=False)
        self.wide_norm = nn.BatchNorm2d(16)
        self.tall = nn.Conv2d(16, 24, (5, 1), padding=(2, 0))
        self.far = nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=2)
        self.flat = nn.Conv2d(16, 8, 1)
        self.last = nn.Conv2d(48, 24, (2, 3), stride=(1, 2), padding=(1, 0), bias=False)
        self.last_norm = nn.BatchNorm2d(24)
        self.fc = nn.Linear(24 * 6, classes)

    def forward(self, x):
        x = self.pool(F.pad(F.silu(self.stem_norm(self.stem(x))), (-1, 2, 0, 1)))
        wide = F.silu(self.tall(F.silu(self.wide_norm(self.wide(x)))))
        near = self.flat(F.avg_pool2d(x, 3, 1, 1, count_include_pad=False))
        x = torch.cat([wide, F.silu(self.far(x)), near], dim=1)
        x = F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), ceil_mode=True)
        x = F.silu(self.last_norm(self.last(x)))
        return self.fc(F.adaptive_avg_pool2d(x, (3, 2)).flatten(1))


class SmallNorm(nn.Module):
    """recipes/models/small-norm.toml, which was recorded from this class: a ConvNeXt's block and a group norm. Layer norms and dense
    layers where the channels are the last dimension, learned factors of both shapes."""

    def __init__(self, channels=3, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(channels, 16, 2, 2)
        self.depthwise = nn.Conv2d(16, 16, 7, padding=3, groups=16)
        self.norm = nn.LayerNorm(16, eps=1e-6)
        self.widen, self.narrow = nn.Linear(16, 40), nn.Linear(40, 16, bias=False)
        self.layer_scale = nn.Parameter(torch.full((16, 1, 1), 0.5))
        self.gamma = nn.Parameter(torch.ones(40))
        self.down = nn.Conv2d(16, 24, 2, 2, bias=False)
        self.group = nn.GroupNorm(3, 24)
        self.last = nn.LayerNorm(24)
        self.fc = nn.Linear(24, classes)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.narrow(self.gamma * F.gelu(self.widen(y))).permute(0, 3, 1, 2)
        x = x + self.layer_scale * y
        x = F.gelu(self.group(self.down(x)))
        return self.fc(self.last(x.mean((2, 3))))


RESNET18 = [(64, 2), (128, 2), (256, 2), (512, 2)]


def make(name, channels, height, width, classes):
    if name == "resnet18-cifar":
        return ResNet(channels, classes, RESNET18, small_images=True)
    if name == "resnet18":
        return ResNet(channels, classes, RESNET18, small_images=False)
    if name == "resnet8-cifar":
        return ResNet(channels, classes, [(16, 1), (32, 1), (64, 1)], small_images=True)
    if name == "mnist-cnn":
        return MnistCnn(channels, classes, height, width)
    if name.endswith("/small-cnn.toml"):
        return SmallCnn(channels, classes)
    if name.endswith("/small-inception.toml"):
        return SmallInception(channels, classes)
    if name.endswith("/small-mobile.toml"):
        return SmallMobile(channels, classes)
    if name.endswith("/small-norm.toml"):
        return SmallNorm(channels, classes)
    import torchvision  # what follows needs it alone

    if name == "vit-cifar":
        return torchvision.models.vision_transformer.VisionTransformer(
            image_size=height, patch_size=4, num_layers=9, num_heads=3, hidden_dim=192, mlp_dim=384, num_classes=classes)
    if hasattr(torchvision.models, name):
        return getattr(torchvision.models, name)(num_classes=classes)
    raise SystemExit(f"parity: model '{name}' has no PyTorch model in models.py; add it there")
