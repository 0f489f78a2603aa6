#!/usr/bin/python3
"""Records a PyTorch model as a model file of Paceline, with its weights.

    paceline_model.py torchvision.models:resnet50 --input 3x224x224 --out resnet50
    paceline train --model resnet50.toml --data folder:flowers --epochs 5

MODULE:CALLABLE is any importable name, also of the current folder, that returns an nn.Module. The model runs once, in
evaluation; each call becomes a layer with its real shapes, parameters keep their names. NAME.toml has the layers,
NAME.safetensors the weights. The layers are then computed again by plain PyTorch calls: files are written only where
the logits are the model's own. What cannot be said in a model file is named, with its module, call and shape.

Needs PyTorch 1.13 or later, and nothing else: this file may be copied and run anywhere.
"""
import argparse
import ast
import importlib
import json
import os
import pickle
import re
import struct
import sys

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

SIDES = ("top", "bottom", "left", "right", "front", "back")
DROPS_SAMPLES = ("StochasticDepth", "DropPath")  # modules by name, which are not looked into


class Refused(Exception):
    """What a model file cannot hold, as a sentence."""


CHANNELS_LAST = "channels last"  # what Value.seen_as is after permute(0, 2, 3, 1), or as [N,places,C]


class Value:
    """What a tensor of the recorded pass is: the output of layer `name`. `seen_as` says what views made of it; one that
    `is_spread` is a factor for each channel that was copied to all pixels."""

    def __init__(self, name, seen_as="images", groups=1, is_spread=False):
        self.name, self.seen_as, self.groups, self.is_spread = name, seen_as, groups, is_spread


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def number(value):
    """As model files write height and width: one number where both are equal, else a list."""
    a, b = pair(value) if len(pair(value)) == 2 else pair(value) * 2
    return a if a == b else [a, b]


class Recorder(TorchFunctionMode):
    """Turns the calls of one pass into layers."""

    def __init__(self, model):
        super().__init__()
        self.parameters = {id(p): name for name, p in list(model.named_parameters()) + list(model.named_buffers())}
        self.learned = {name for name, _ in model.named_parameters()}
        self.layers, self.values, self.alive, self.expanded = [], {}, [], {}
        self.used, self.numbers, self.path = set(), {}, []
        for name, module in model.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                raise Refused(f"{name or 'the model'} was compiled by torch.jit, and its calls cannot be seen; record the model before it is compiled")
            if type(module).__name__ in DROPS_SAMPLES:
                module.forward = self.stochastic_depth(module)
            if isinstance(module, torch.nn.MultiheadAttention):
                module.forward = self.attention(module)
            module.register_forward_pre_hook(lambda *_, name=name: self.path.append(name))
            module.register_forward_hook(lambda *_: self.leave())

    def leave(self):
        self.path.pop()  # a hook that returned something would replace the module's result

    def begin(self, image):
        self.keep(image, Value("input"))

    def keep(self, tensor, value):
        self.values[id(tensor)] = value
        self.alive.append(tensor)  # so that no other tensor gets its id
        return tensor

    def order_of(self, tensor):
        """How the tensor's elements are ordered: CHANNELS_LAST, or "images" for all others."""
        value = self.values.get(id(tensor))
        return CHANNELS_LAST if value is not None and value.seen_as == CHANNELS_LAST else "images"

    def of(self, tensor, seen_as="images", spread_is_ok=False):
        """The layer behind a tensor."""
        value = self.values.get(id(tensor)) if isinstance(tensor, torch.Tensor) else None
        if value is None:
            kind = "a parameter or constant" if isinstance(tensor, torch.Tensor) else f"the number {tensor}"
            raise Refused(f"one of its operands is {kind}, where only results of layers may stand")
        if value.is_spread and not spread_is_ok:
            raise Refused("its input is a value for each channel that was copied to all pixels; only products may use it")
        if value.seen_as != seen_as and not (seen_as == "images" and value.seen_as == "features"):
            raise Refused(f"its input was reshaped ({value.seen_as})")
        return value.name

    def add(self, op, inputs, result, name=None, order="images", **keys):
        """`order`: order_of() the result, which is that of the inputs."""
        if name is None:
            self.numbers[op] = self.numbers.get(op, 0) + 1
            name = f"{op}{self.numbers[op]}"
        self.layers.append({"op": op, "name": name, "inputs": inputs, **keys})
        flat = result.dim() == 2
        return self.keep(result, Value(name, "features" if flat else order))

    def owner(self, weight, *others):
        """The module whose parameters these are; each may serve one layer."""
        name = self.parameters.get(id(weight))
        if name is None or not name.endswith(".weight"):
            raise Refused(f"its weight is {'no parameter of the model' if name is None else name}, and must be named <module>.weight")
        if name in self.used:
            raise Refused(f"{name} is used twice: layers cannot share weights")
        self.used.add(name)
        for other, suffix in others:
            if other is not None:
                if self.parameters.get(id(other)) != name[:-len("weight")] + suffix:
                    raise Refused(f"its {suffix} is not that of {name[:-len('.weight')]}")
                self.used.add(self.parameters[id(other)])
        return name[:-len(".weight")]

    def stochastic_depth(self, module):
        def forward(x):
            if getattr(module, "mode", "row") != "row":
                raise Refused(f"{self.path[-1]}: it drops whole batches (mode '{module.mode}'); only mode 'row' is known")
            p = getattr(module, "p", getattr(module, "drop_prob", None))
            order = self.order_of(x)
            return self.add("stochastic_depth", [self.of(x, order)], x.clone(), order=order, probability=float(p or 0))
        return forward

    def attention(self, module):
        def forward(query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, *rest, **more):
            path, channels, order = self.path[-1], module.embed_dim, {"order": CHANNELS_LAST}
            for wrong, what in ((not query is key is value, "query, key and value are not one tensor"), (not module.batch_first, "batch_first is off"),
                                (key_padding_mask is not None or attn_mask is not None, "it has a mask"), (module.dropout > 0, "it has dropout"),
                                (module.in_proj_weight is None or module.bias_k is not None or module.add_zero_attn, "it has keys of other sizes or added ones")):
                if wrong:
                    raise Refused(f"{path}: {what}; only attention of a sequence to itself is known, without mask and dropout")
            names = {"weight": f"{path}.in_proj_weight", "bias": module.in_proj_bias is not None and f"{path}.in_proj_bias"}
            self.used.update(name for name in self.parameters.values() if name.startswith(f"{path}."))
            qkv = self.add("dense", [self.of(query, CHANNELS_LAST)], torch.zeros([*query.shape[:-1], 3 * channels]), f"{path}.in_proj", **order, features=3 * channels, flatten=False, **names)
            heads = self.add("attention", [self.of(qkv, CHANNELS_LAST)], torch.zeros(query.shape), f"{path}.attention", **order, heads=module.num_heads)
            out = self.add("dense", [self.of(heads, CHANNELS_LAST)], torch.zeros(query.shape), f"{path}.out_proj", **order, features=channels, flatten=False, bias=module.out_proj.bias is not None)
            return out, None
        return forward

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", str(func)).strip("_")
        tracked = [a for a in flatten([args, kwargs]) if isinstance(a, torch.Tensor) and id(a) in self.values]
        made = [r for r in flatten([result]) if isinstance(r, torch.Tensor)]
        if name == "expand" and id(args[0]) in self.parameters:
            self.expanded[id(result)] = args[0]
            self.alive.append(result)
        if not tracked or not made:  # shapes, flags, parameters among themselves
            return result
        handler = HANDLERS.get(name)
        try:
            if handler is None:
                raise Refused("it is not known")
            handler(self, result, *args, **kwargs)
        except Refused as why:
            shape = "x".join(map(str, tracked[0].shape[1:]))
            raise Refused(f"{self.path[-1] if self.path and self.path[-1] else 'the model'}: {name} of [{shape}]: {why}") from None
        return result


def flatten(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flatten(value)
        elif isinstance(value, dict):
            yield from flatten(value.values())
        else:
            yield value


# ---- one handler for each call: (recorder, result, the call's own arguments)

def conv2d(r, result, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    kernel = weight.shape[2:]
    if isinstance(padding, str):
        all_of = [d * (k - 1) if padding == "same" else 0 for d, k in zip(pair(number(dilation)), kernel)]
        if any(both % 2 for both in all_of):
            raise Refused(f"its padding is 'same', which pads only one side of a kernel of {kernel[0]}x{kernel[1]}; give numbers")
        padding = [both // 2 for both in all_of]
    # A model file's padding ends where a window would lie outside the image; PyTorch's may be larger.
    most = [d * (k - 1) for d, k in zip(pair(number(dilation)), kernel)]
    beyond = [max(0, p - m) for p, m in zip(pair(number(padding)), most)]
    if any(beyond):
        wide = input.new_empty(*input.shape[:2], *(side + 2 * more for side, more in zip(input.shape[2:], beyond)))
        padded(r, wide, input, top=beyond[0], bottom=beyond[0], left=beyond[1], right=beyond[1])
        input, padding = wide, [p - more for p, more in zip(pair(number(padding)), beyond)]
    r.add("conv2d", [r.of(input)], result, r.owner(weight, (bias, "bias")), channels=weight.shape[0], kernel=number(kernel),
          stride=number(stride), padding=number(padding), dilation=number(dilation), groups=groups, bias=bias is not None)


def batch_norm(r, result, input, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if weight is None or bias is None or mean is None or momentum is None:
        raise Refused("it must have weight, bias, running statistics and a momentum")
    name = r.owner(weight, (bias, "bias"), (mean, "running_mean"), (var, "running_var"))
    r.add("batch_norm", [r.of(input)], result, name, epsilon=eps, momentum=momentum)


def linear(r, result, input, weight, bias=None):
    order = r.order_of(input)
    if input.dim() != 2 and order != CHANNELS_LAST:
        raise Refused("it is applied along the last dimension, which is not the channels; flatten or permute it before")
    r.add("dense", [r.of(input, order)], result, r.owner(weight, (bias, "bias")), order, features=weight.shape[0],
          bias=bias is not None, flatten=input.dim() == 2)


def layer_norm(r, result, input, normalized_shape, weight=None, bias=None, eps=1e-5):
    order = r.order_of(input)
    if len(normalized_shape) != 1 or (input.dim() != 2 and order != CHANNELS_LAST):
        raise Refused(f"it is over the last dimensions, {list(normalized_shape)}; only that over the channels is known")
    if weight is None or bias is None:
        raise Refused("it must have weight and bias")
    r.add("layer_norm", [r.of(input, order)], result, r.owner(weight, (bias, "bias")), order, epsilon=eps)


def group_norm(r, result, input, num_groups, weight=None, bias=None, eps=1e-5):
    if weight is None or bias is None:
        raise Refused("it must have weight and bias")
    r.add("group_norm", [r.of(input)], result, r.owner(weight, (bias, "bias")), groups=num_groups, epsilon=eps)


def elementwise(op):
    def handler(r, result, input, *args, **kwargs):
        if op == "gelu" and kwargs.get("approximate", "none") != "none":
            raise Refused("only the exact GELU is known")
        order = r.order_of(input)
        r.add(op, [r.of(input, order)], result, order=order)
    return handler


def hardtanh(r, result, input, min_val=-1.0, max_val=1.0, inplace=False):
    if (min_val, max_val) != (0, 6):
        raise Refused(f"its limits are {min_val} and {max_val}; only those of ReLU6, 0 and 6, are known")
    r.add("relu6", [r.of(input)], result)


def clamp(r, result, input, min=None, max=None):
    hardtanh(r, result, input, min, max)


def learned(r, tensor):
    """The name of a parameter that serves one layer, as it is or expanded; None: it is none."""
    name = r.parameters.get(id(r.expanded.get(id(tensor), tensor)))
    if name in r.used:
        raise Refused(f"{name} is used twice: layers cannot share weights")
    if name is not None and name not in r.learned:
        raise Refused(f"{name} is a buffer, which does not learn; position, factors and tokens of layers do")
    return name


def position(r, result, input, weight):
    name = r.parameters[id(weight)]
    if r.order_of(input) != CHANNELS_LAST or input.dim() != 3 or weight.shape != (1, *input.shape[1:]):
        raise Refused(f"{name} of {list(weight.shape)} is added; only one of [1, places, channels] to [N, places, channels] is known")
    r.used.add(learned(r, weight))
    r.add("position", [r.of(input, CHANNELS_LAST)], result, name, CHANNELS_LAST, weight=name)


def class_token(r, result, tensors):
    name = learned(r, tensors[0])
    if len(tensors) != 2 or name is None or tensors[0].shape[1] != 1:
        raise Refused("it joins places; only one learned place in front of the others can be joined")
    r.used.add(name)
    r.add("class_token", [r.of(tensors[1], CHANNELS_LAST)], result, name, CHANNELS_LAST, weight=name)


def add(r, result, input, other, alpha=1, out=None):
    for weight, value in ((input, other), (other, input)):
        if alpha == 1 and id(weight) in r.parameters and id(value) in r.values:
            return position(r, result, value, weight)
    if alpha != 1 or not isinstance(other, torch.Tensor) or not isinstance(input, torch.Tensor) or input.shape != other.shape:
        raise Refused("only two tensors of one shape can be added")
    order = r.order_of(input)
    r.add("add", [r.of(input, order), r.of(other, order)], result, order=order)


def mul(r, result, input, other, out=None):
    if not isinstance(other, torch.Tensor) or not isinstance(input, torch.Tensor):
        raise Refused("only two tensors can be multiplied")
    for factor, value in ((input, other), (other, input)):
        if id(factor) in r.parameters and id(value) in r.values:
            return scale(r, result, value, factor)
    is_spread = [r.values[id(x)].is_spread for x in (input, other) if id(x) in r.values]
    if input.shape != result.shape or is_spread == [True, False]:  # the factor comes first
        input, other = other, input
    if input.shape != result.shape or (other.shape != input.shape and other.shape[2:] != (1, 1)):
        raise Refused("only tensors of one shape, or a factor for each channel, can be multiplied")
    r.add("mul", [r.of(input), r.of(other, spread_is_ok=True)], result)


def scale(r, result, input, factor):
    """A learned factor for each channel."""
    name, order = r.parameters[id(factor)], r.order_of(input)
    channels = input.shape[3 if order == CHANNELS_LAST else 1] if input.dim() in (2, 4) else 0
    flat = tuple(factor.shape) == (channels,) and (order == CHANNELS_LAST or input.dim() == 2)
    if not flat and not (tuple(factor.shape) == (channels, 1, 1) and order == "images" and input.dim() == 4):
        raise Refused(f"{name} of {list(factor.shape)} is not a factor for each channel")
    r.used.add(learned(r, factor))
    first = {} if bool((factor != factor.flatten()[0]).any()) else {"initial": float(f"{factor.flatten()[0].item():.7g}")}
    r.add("scale", [r.of(input, order)], result, name, order, **first, dimensions=factor.dim(), weight=name)


def cat(r, result, tensors, dim=0, out=None):
    if r.order_of(tensors[-1]) == CHANNELS_LAST and result.dim() == 3 and dim in (1, -2):
        return class_token(r, result, tensors)
    if dim not in (1, 1 - result.dim()):
        raise Refused(f"it joins along dimension {dim}; only channels, dimension 1, can be joined")
    own = [i for i, tensor in enumerate(tensors) if id(tensor) in r.values]
    if len(own) == 1 and len(tensors) > 1 and result.dim() == 4 and not any(t.any() for i, t in enumerate(tensors) if i not in own):
        front = sum(t.shape[1] for t in tensors[:own[0]])  # zeros beside one value (a shortcut without weights)
        padded(r, result, tensors[own[0]], front=front, back=result.shape[1] - front - tensors[own[0]].shape[1])
        return
    if len(tensors) == 1:
        r.keep(result, r.values[id(tensors[0])])  # it changes nothing
    else:
        r.add("concat", [r.of(tensor) for tensor in tensors], result)


def pool_keys(kernel_size, stride, padding, ceil_mode):
    stride = stride if stride not in (None, []) else kernel_size
    return {"kernel": number(kernel_size), "stride": number(stride), "padding": number(padding), "ceil": bool(ceil_mode)}


def max_pool2d(r, result, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if number(dilation) != 1 or return_indices:
        raise Refused("dilation and indices are not known")
    r.add("max_pool", [r.of(input)], result, **pool_keys(kernel_size, stride, padding, ceil_mode))


def avg_pool2d(r, result, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    if divisor_override is not None:
        raise Refused("it must have no divisor of its own")
    keys = pool_keys(kernel_size, stride, padding, ceil_mode)
    r.add("average_pool", [r.of(input)], result, **keys, count_padding=bool(count_include_pad) or keys["padding"] == 0)


def adaptive_avg_pool2d(r, result, input, output_size):
    if tuple(result.shape[2:]) == (1, 1):
        r.add("global_average_pool", [r.of(input)], result)
    else:  # also where it changes nothing: it would at another image size
        r.add("adaptive_average_pool", [r.of(input)], result, size=number(result.shape[2:]))


def mean(r, result, input, dim=None, keepdim=False, dtype=None, out=None):
    over = None if dim is None else sorted(d % input.dim() for d in ((dim,) if isinstance(dim, int) else dim))
    if r.order_of(input) == CHANNELS_LAST and over == list(range(1, input.dim() - 1)) and not keepdim:
        return r.add("global_average_pool", [r.of(input, CHANNELS_LAST)], result)
    if over != [2, 3]:
        raise Refused(f"it is over dimensions {dim}; only that over height and width, [2, 3], is known")
    r.add("global_average_pool", [r.of(input)], result)


def dropout(r, result, input, p=0.5, training=True, inplace=False):
    if p == 0:
        return r.keep(result, r.values[id(input)])  # it changes nothing
    order = r.order_of(input)
    r.add("dropout", [r.of(input, order)], result, order=order, probability=float(p))


def slices(r, result, input, sizes):
    begin = 0
    for part, channels in zip(result, sizes):
        r.add("slice", [r.of(input)], part, begin=begin, channels=channels)
        begin += channels


def chunk(r, result, input, chunks, dim=0):
    if dim not in (1, 1 - input.dim()):
        raise Refused(f"it divides dimension {dim}; only channels, dimension 1, can be divided")
    slices(r, result, input, [part.shape[1] for part in result])


def padded(r, result, input, **sides):
    """Zeros on each side; negative numbers cut off."""
    r.add("pad", [r.of(input)], result, **{side: sides.get(side, 0) for side in SIDES})


def pad(r, result, input, pad, mode="constant", value=None):
    pad = list(pad)
    if mode != "constant" or value not in (None, 0):
        raise Refused(f"its padding is {'of mode ' + repr(mode) if mode != 'constant' else value}; only zeros are known")
    if input.dim() != 4 or any(pad[6:]):
        raise Refused("only channels, rows and columns can be padded")
    if any(pad):
        left, right, top, bottom, front, back = pad[:6] + [0] * (6 - len(pad))
        padded(r, result, input, top=top, bottom=bottom, left=left, right=right, front=front, back=back)
    else:
        r.keep(result, r.values[id(input)])


def getitem(r, result, input, index):
    """A range of channels; rows and columns from a first to a last, or every second, third, .. of them."""
    index = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in index:
        at = index.index(Ellipsis)
        index[at:at + 1] = [slice(None)] * (input.dim() - len(index) + 1)
    if r.order_of(input) == CHANNELS_LAST and input.dim() == 3 and [i if isinstance(i, int) else i == slice(None) for i in index] in ([True, 0], [True, 0, True]):
        return r.add("first_place", [r.of(input, CHANNELS_LAST)], result)
    ranges = [i.indices(size) if isinstance(i, slice) else (0, -1, 1) for i, size in zip(index, input.shape)]
    ranges += [(0, size, 1) for size in input.shape[len(ranges):]]
    if any(end <= begin or step < 1 for begin, end, step in ranges) or ranges[0] != (0, input.shape[0], 1) or ranges[1][2] != 1:
        raise Refused("only a range of channels, rows and columns, [:, begin:end], can be taken, or every second row and column, [:, :, ::2, ::2]")
    if ranges[1][:2] != (0, input.shape[1]) or input.dim() != 4 or ranges[2:] == [(0, size, 1) for size in input.shape[2:]]:
        begin, end, _ = ranges[1]
        part = input[:, begin:end]
        r.add("slice", [r.of(input)], result if part.shape == result.shape else part, begin=begin, channels=end - begin)
        input = part
    if input.dim() == 4 and ranges[2:] != [(0, size, 1) for size in input.shape[2:]]:
        (top, end, down), (left, last, right) = ranges[2:]
        cut = input[:, :, top:end, left:last]
        if cut.shape != input.shape:
            padded(r, result if cut.shape == result.shape else cut, input, top=-top, bottom=end - input.shape[2], left=-left, right=last - input.shape[3])
        if cut.shape != result.shape:
            r.add("average_pool", [r.of(cut if cut.shape != input.shape else input)], result, **pool_keys(1, (down, right), 0, False), count_padding=True)


def reshape(r, result, input, *sizes):
    """To features, or the steps of a channel shuffle: [N,C,H,W] to [N,groups,C/groups,H,W], exchanged, and back."""
    value, n, shape = r.values[id(input)], input.shape[0], tuple(result.shape)
    if shape == tuple(input.shape):
        r.keep(result, value)
    elif value.seen_as == "images" and len(shape) == 3 and input.dim() == 4 and shape[:2] == tuple(input.shape[:2]):
        r.keep(result, Value(value.name, "places"))  # [N,C,H W]
    elif value.seen_as in ("images", "features") and len(shape) == 2 and shape[0] == n:
        r.keep(result, Value(value.name, "features"))
    elif value.seen_as in ("images", "features") and shape == tuple(input.shape[:2]) + (1, 1):
        r.keep(result, Value(value.name))
    elif value.seen_as == "images" and len(shape) == 5 and shape[0] == n and shape[3:] == tuple(input.shape[2:]):
        r.keep(result, Value(value.name, "groups", shape[1]))
    elif value.seen_as == "exchanged groups" and len(shape) == 4 and shape[2:] == tuple(input.shape[3:]):
        value = Value(value.name, "images", value.groups)
        r.values[id(input)] = value
        r.add("channel_shuffle", [value.name], result, groups=value.groups)
    else:
        raise Refused(f"it makes [{'x'.join(map(str, shape[1:]))}]")


def transpose(r, result, input, first, second):
    value = r.values[id(input)]
    if input.dim() == 3 and value.seen_as in ("places", CHANNELS_LAST) and {first % 3, second % 3} == {1, 2}:
        return r.keep(result, Value(value.name, "places" if value.seen_as == CHANNELS_LAST else CHANNELS_LAST))
    if value.seen_as != "groups" or {first, second} != {1, 2}:
        raise Refused(f"it exchanges dimensions {first} and {second}; only a channel shuffle may")
    r.keep(result, Value(value.name, "exchanged groups", value.groups))


def expand(r, result, input, *sizes):
    if input.dim() != 4 or tuple(input.shape[2:]) != (1, 1) or result.shape[:2] != input.shape[:2]:
        raise Refused("only a value for each channel can be copied to all pixels")
    r.keep(result, Value(r.of(input), is_spread=True))


def permute(r, result, input, *order):
    order = tuple(order[0]) if len(order) == 1 else order
    value = r.values[id(input)]
    if order == (0, 2, 3, 1) and value.seen_as == "images":
        r.keep(result, Value(value.name, CHANNELS_LAST, is_spread=value.is_spread))
    elif order == (0, 3, 1, 2) and value.seen_as == CHANNELS_LAST:
        r.keep(result, Value(value.name, is_spread=value.is_spread))
    elif order in ((0, 2, 1), (0, 2, 1, 3, 4)):
        transpose(r, result, input, 1, 2)
    else:
        raise Refused(f"it orders dimensions as {order}; only channels may become the last, and come back, or be shuffled")


def same(r, result, input, *args, **kwargs):
    if result.shape != input.shape:
        raise Refused("it changes the shape")
    r.keep(result, r.values[id(input)])


def dropout2d(r, result, input, p=0.5, training=True, inplace=False):
    if input.dim() == 4 and tuple(input.shape[2:]) != (1, 1):
        raise Refused("it drops whole channels; only dropout of single values is known")
    dropout(r, result, input, p)


def squeezed(r, result, input, *args, **kwargs):
    reshape(r, result, input)


def constant(r, result, *args, **kwargs):
    """Of the shape of a value, but of none of its numbers."""


def ending(r, result, *args, **kwargs):
    raise Refused("Paceline adds the softmax itself; end the model with its logits")


HANDLERS = {
    "conv2d": conv2d, "batch_norm": batch_norm, "layer_norm": layer_norm, "group_norm": group_norm, "linear": linear, "hardtanh": hardtanh, "clamp": clamp, "cat": cat, "concat": cat,
    "relu": elementwise("relu"), "relu6": elementwise("relu6"), "silu": elementwise("silu"), "gelu": elementwise("gelu"),
    "hardswish": elementwise("hard_swish"), "hardsigmoid": elementwise("hard_sigmoid"), "sigmoid": elementwise("sigmoid"),
    "tanh": elementwise("tanh"), "add": add, "iadd": add, "radd": add, "mul": mul, "imul": mul, "rmul": mul,
    "max_pool2d": max_pool2d, "boolean_dispatch": max_pool2d, "avg_pool2d": avg_pool2d,
    "adaptive_avg_pool2d": adaptive_avg_pool2d, "mean": mean, "dropout": dropout, "dropout2d": dropout2d, "feature_dropout": dropout2d, "permute": permute,
    "expand": expand, "expand_as": expand,
    "get": same, "pad": pad, "chunk": chunk, "split": chunk, "getitem": getitem,
    "flatten": squeezed, "view": reshape, "reshape": reshape, "squeeze": squeezed, "transpose": transpose, "contiguous": same, "clone": same, "to": same,
    "unsqueeze": squeezed, "softmax": ending, "log_softmax": ending,
    "zeros_like": constant, "ones_like": constant, "full_like": constant, "new_zeros": constant, "new_ones": constant, "new_full": constant,
}


# ---- the recorded layers, computed again

def at_each_place(call, x):
    """`call` along the last dimension of [N, H, W, C]."""
    return call(x) if x.dim() == 2 else call(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def compute(layer, x, weights):
    op, name = layer["op"], layer["name"]
    bias = weights.get(layer["bias"] if isinstance(layer.get("bias"), str) else name + ".bias")
    weight = weights.get(layer.get("weight", name + ".weight"))
    if op == "conv2d":
        return F.conv2d(x[0], weight, bias, layer["stride"], layer["padding"], layer["dilation"], layer["groups"])
    if op == "batch_norm":
        return F.batch_norm(x[0], weights[name + ".running_mean"], weights[name + ".running_var"], weight, bias, False, 0, layer["epsilon"])
    if op == "dense":
        return F.linear(x[0].flatten(1), weight, bias) if layer["flatten"] else at_each_place(lambda a: F.linear(a, weight, bias), x[0])
    if op == "layer_norm":
        return at_each_place(lambda a: F.layer_norm(a, weight.shape, weight, bias, layer["epsilon"]), x[0])
    if op == "group_norm":
        return F.group_norm(x[0], layer["groups"], weight, bias, layer["epsilon"])
    if op == "scale":
        return x[0] * (weight.flatten() if x[0].dim() == 2 else weight.reshape(-1, 1, 1))
    if op == "position":
        return x[0] + weight.transpose(1, 2).reshape(1, *x[0].shape[1:])
    if op == "class_token":
        return torch.cat([weight.transpose(1, 2).expand(len(x[0]), -1, -1), x[0].flatten(2)], 2).unsqueeze(3)
    if op == "first_place":
        return x[0].flatten(2)[:, :, 0]
    if op == "attention":
        n, c, h, w = x[0].shape
        q, k, v = x[0].reshape(n, 3, layer["heads"], c // 3 // layer["heads"], h * w).transpose(3, 4).unbind(1)
        return (torch.softmax(q @ k.transpose(2, 3) / q.shape[3]**0.5, 3) @ v).transpose(2, 3).reshape(n, c // 3, h, w)
    if op == "max_pool":
        return F.max_pool2d(x[0], layer["kernel"], layer["stride"], layer["padding"], ceil_mode=layer["ceil"])
    if op == "average_pool":
        return F.avg_pool2d(x[0], layer["kernel"], layer["stride"], layer["padding"], layer["ceil"], layer["count_padding"])
    if op == "adaptive_average_pool":
        return F.adaptive_avg_pool2d(x[0], layer["size"])
    if op == "pad":
        return F.pad(x[0], [layer[side] for side in ("left", "right", "top", "bottom", "front", "back")])
    if op == "slice":
        return x[0][:, layer["begin"]:layer["begin"] + layer["channels"]]
    if op == "channel_shuffle":
        n, c, h, w = x[0].shape
        return x[0].view(n, layer["groups"], c // layer["groups"], h, w).transpose(1, 2).reshape(n, c, h, w)
    plain = {"relu": F.relu, "relu6": F.relu6, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
             "hard_sigmoid": F.hardsigmoid, "hard_swish": F.hardswish, "dropout": lambda a: a, "stochastic_depth": lambda a: a,
             "global_average_pool": lambda a: a.mean((2, 3), keepdim=True), "add": torch.add,
             "mul": lambda a, b: a * b.reshape(b.shape + (1,) * (a.dim() - b.dim())), "concat": lambda *a: torch.cat(a, 1)}
    return plain[op](*x)


def replay(layers, image, weights):
    """The logits of the recorded layers."""
    values = {"input": image}
    for layer in layers:
        inputs = [values[name] for name in layer["inputs"]]
        if len({value.dim() for value in inputs}) > 1:  # features beside [C,1,1]
            inputs = [value.reshape(value.shape[:2] + (1, 1)) if value.dim() == 2 else value for value in inputs]
        values[layer["name"]] = compute(layer, inputs, weights)
    return values[layers[-1]["name"]].flatten(1)


def record(model, shape, unused_is_ok=False):
    """Layers and weights of the model, proven on a random image."""
    model.eval()
    torch.manual_seed(1)
    image = torch.rand(2, *shape)
    with torch.no_grad():
        expected = model(image.clone())
        recorder = Recorder(model)
        recorder.begin(image)
        with recorder:
            result = model(image)
        if not isinstance(result, torch.Tensor) or result.dim() != 2:
            raise Refused("the model must return logits [images, classes]")
        last = recorder.of(result, "features")
        layers = used_by(recorder.layers, last)
        names = [name for name, _ in model.named_parameters()]
        unused = [name for name in names if name not in recorder.used]
        if unused and not unused_is_ok:
            raise Refused(f"{len(unused)} parameters took no part, {unused[0]} first: a part of the model was not seen (torch.jit), "
                          "or serves training alone (an auxiliary head); --unused ok leaves them out")
        weights = {name: value for name, value in model.state_dict().items() if name in recorder.used}
        got = replay(layers, image, weights)
    difference = (got - expected).abs().max().item()
    if not difference <= 1e-5 * max(1.0, expected.abs().max().item()):
        raise Refused(f"the recorded layers give other logits than the model: {difference:.3g} apart")
    if layers[-1]["op"] == "dense":
        layers[-1]["features"] = "classes"
    return layers, weights, difference


def used_by(layers, last):
    """The layers that `last` depends on, in order, `last` at the end."""
    wanted = {last}
    for layer in reversed(layers):
        if layer["name"] in wanted:
            wanted.update(layer["inputs"])
    return [layer for layer in layers if layer["name"] in wanted]


# ---- the files

DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "ceil": False, "count_padding": True, "begin": 0, "flatten": True, "initial": 1.0, "dimensions": 3, **{side: 0 for side in SIDES}, "epsilon": 1e-5, "momentum": 0.1}


def toml(layers, title, shape):
    lines, above = [f"name = {json.dumps(title)}", f"image = {json.dumps(shape)}"], "input"
    for layer in layers:
        lines += ["", "[[layer]]", f'op = "{layer["op"]}"', f'name = {json.dumps(layer["name"])}']
        if layer["inputs"] != [above]:
            lines.append(f"inputs = {json.dumps(layer['inputs'])}" if len(layer["inputs"]) > 1 else f"input = {json.dumps(layer['inputs'][0])}")
        for key, value in layer.items():
            default = DEFAULTS.get(key)
            if layer["op"].endswith("pool") and key == "stride":
                default = layer["kernel"]
            if key in ("op", "name", "inputs") or (default is not None and value == default):
                continue
            lines.append(f"{key} = {json.dumps(value)}")
        above = layer["name"]
    return "\n".join(lines) + "\n"


def safetensors(weights):
    header, parts, offset = {}, [], 0
    for name, value in weights.items():
        data = value.detach().to(torch.float32).contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def literal(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def load_state(model, path):
    """Loads a state dict, alone or in a dictionary of the whole training, with or without DataParallel's names. None of its code runs."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise Refused(f"{path} holds more than tensors, and PyTorch reads that only by running the file's code; 'paceline train --weights {path}' "
                      "reads most such files as they are, and torch.save(model.state_dict(), FILE) writes one for --state")
    if not isinstance(state, dict):
        raise Refused(f"{path} holds no state dict, but a {type(state).__name__}")
    names = set(model.state_dict())
    if not names & set(state):  # a dictionary of the whole training
        nested = {key: value for key, value in state.items() if isinstance(value, dict) and value and all(torch.is_tensor(one) for one in value.values())}
        usual = [key for key in ("state_dict", "model_state_dict", "model", "net") if key in nested] or (list(nested) if len(nested) == 1 else [])
        state = nested[usual[0]] if usual else state
    if state and not names & set(state) and all(str(name).startswith("module.") for name in state):
        state = {name[len("module."):]: value for name, value in state.items()}
    try:
        model.load_state_dict(state)
    except RuntimeError as error:  # its first line names the class alone
        lines = [" ".join(line.split()) for line in str(error).splitlines()]
        raise Refused(f"{path} is not of this model: {lines[min(1, len(lines) - 1)][:300]}; --with KEY=VALUE gives the callable its arguments")


def make_model(module, name, arguments):
    if module.endswith(".py"):
        raise Refused(f"a module is named without .py: {module[:-3]}:{name}")
    made = importlib.import_module(module)
    for part in name.split("."):
        made = getattr(made, part)
    if isinstance(made, torch.nn.Module):
        if arguments:
            raise Refused("it is a model already, and takes no --with")
        return made
    try:
        model = made(**arguments)
    except TypeError as error:
        raise Refused(f"{error}; --with KEY=VALUE gives the callable its arguments")
    if not isinstance(model, torch.nn.Module):
        raise Refused(f"it must return an nn.Module, but returns a {type(model).__name__}")
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODULE:CALLABLE")
    parser.add_argument("--input", default="3x224x224", metavar="CxHxW", help="an image's shape (3x224x224)")
    parser.add_argument("--with", action="append", default=[], metavar="KEY=VALUE", dest="arguments", help="an argument of CALLABLE")
    parser.add_argument("--state", metavar="FILE.pth", help="a state dict to load into the model first")
    parser.add_argument("--unused", choices=["ok"], help="leave out parameters that take no part in an evaluation")
    parser.add_argument("--out", metavar="NAME", help="files' name without ending (CALLABLE)")
    options = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    module, _, name = options.model.partition(":")
    if not name:
        parser.error(f"MODULE:CALLABLE is needed, but is '{options.model}'; write torchvision.models:resnet50")
    try:
        if not re.fullmatch(r"\d+x\d+x\d+", options.input):
            raise Refused(f"--input must be channels x height x width, such as 3x224x224, but is '{options.input}'")
        shape = [int(size) for size in options.input.split("x")]
        if shape[0] > 4 and shape[1] > 4 and shape[2] in (1, 3):
            raise Refused(f"--input has the channels first: {shape[2]}x{shape[0]}x{shape[1]}, not {options.input}")
        arguments = {key: literal(value) for key, _, value in (text.partition("=") for text in options.arguments)}
        model = make_model(module, name, arguments)
        if options.state:
            load_state(model, options.state)
        layers, weights, difference = record(model, shape, options.unused == "ok")
        out = options.out or name.split(".")[-1]
        with open(out + ".toml", "w") as file:
            file.write(toml(layers, os.path.basename(out), shape))
        with open(out + ".safetensors", "wb") as file:
            file.write(safetensors(weights))
    except Exception as error:  # also what the model's own code throws
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        sys.exit(f"paceline_model: {options.model}: {first}")
    count = sum(value.numel() for value in model.parameters())
    print(f"{out}.toml: {len(layers)} layers, {count:,} parameters; their logits are PyTorch's within {difference:.1e}\n{out}.safetensors: the weights {f'of {options.state}' if options.state else f'with which {name} returned it; --state FILE.pth takes those of a file'}")


if __name__ == "__main__":
    main()
