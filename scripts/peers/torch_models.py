"""The applications' models in PyTorch; state_dict() has the names and layouts of our parameter files."""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional
from workloads import WORKLOADS

HIDDEN = {"softmax": [], "mlp": [128], "mlp4096": [4096, 4096, 4096]}


def build(workload):
    """Takes images (N, 1, 28, 28), (N, 3, 32, 32) for colour_… and resnet18, (N, 3, 224, 224) for resnet50; gives logits
    (N, classes). gpt: of bytes (N, T), logits (N, T, 256)."""
    if workload == "small_gpt":
        return Gpt(layers=2, heads=2, width=32, context=16)
    if workload == "gpt":
        return Gpt(layers=6, heads=6, width=384, context=128)
    if workload == "resnet":
        return Residual()
    if workload == "resnet18":
        return ResNet((2, 2, 2, 2), False, 10)
    if workload == "resnet50":
        return ResNet((3, 4, 6, 3), True, WORKLOADS[workload].classes)
    if workload == "colour_cnn":
        return _convolutional(channels=3, left=4)
    return _convolutional() if workload == "cnn" else _dense(HIDDEN[workload])


def _dense(hidden):
    widths = [28 * 28, *hidden, 10]
    layers = OrderedDict(flatten=nn.Flatten())
    for number, (inputs, outputs) in enumerate(zip(widths, widths[1:]), start=1):
        layers[f"dense{number}"] = nn.Linear(inputs, outputs)
        if number <= len(hidden):
            layers[f"relu{number}"] = nn.ReLU()
    return nn.Sequential(layers)


class Residual(nn.Module):
    """Eight convolutions, three shortcuts."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.conv3 = nn.Conv2d(16, 16, 3, padding=1)
        self.conv4 = nn.Conv2d(16, 32, 3, padding=1)
        self.conv5 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv6 = nn.Conv2d(16, 32, 1)  # the shortcut beside them
        self.conv7 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv8 = nn.Conv2d(32, 32, 3, padding=1)
        self.dense1 = nn.Linear(32, 10)

    def forward(self, x):
        relu, pool = functional.relu, functional.max_pool2d
        x = relu(self.conv1(x))
        x = pool(relu(self.conv3(relu(self.conv2(x))) + x), 2)
        x = pool(relu(self.conv5(relu(self.conv4(x))) + self.conv6(x)), 2)
        x = relu(self.conv8(relu(self.conv7(x))) + x)
        return self.dense1(functional.avg_pool2d(x, 7).flatten(1))


class ResNet(nn.Module):
    """ResNet-18 for images of 32 x 32 pixels, or with bottlenecks ResNet-50; layers are numbered in the order of use,
    shortcuts after what they are beside.

    @param counts  of blocks of 64, 128, 256 and 512 channels
    """

    def __init__(self, counts, bottlenecks, classes):
        super().__init__()
        self.convs, self.pools = 0, bottlenecks
        self.stem = self._convolution(3, 64, 7, 2) if bottlenecks else self._convolution(3, 64, 3, 1)
        self.blocks, inputs = [], 64
        for channels, count in zip((64, 128, 256, 512), counts):
            for number in range(count):
                stride = 2 if number == 0 and channels != 64 else 1
                if bottlenecks:
                    main = [(inputs, channels, 1, 1), (channels, channels, 3, stride), (channels, 4 * channels, 1, 1)]
                else:
                    main = [(inputs, channels, 3, stride), (channels, channels, 3, 1)]
                main, outputs = [self._convolution(*shape) for shape in main], main[-1][1]
                shortcut = self._convolution(inputs, outputs, 1, stride) if inputs != outputs else None
                self.blocks.append((main, shortcut))
                inputs = outputs
        self.dense1 = nn.Linear(inputs, classes)

    def _convolution(self, inputs, channels, kernel, stride):
        """The names of a convolution and its normalisation."""
        self.convs += 1
        names = f"conv{self.convs}", f"batch_norm{self.convs}"
        self.add_module(names[0], nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, bias=False))
        self.add_module(names[1], nn.BatchNorm2d(channels))
        return names

    def _normalised(self, names, x):
        return getattr(self, names[1])(getattr(self, names[0])(x))

    def forward(self, x):
        x = functional.relu(self._normalised(self.stem, x), inplace=True)
        if self.pools:
            x = functional.max_pool2d(x, 3, 2, 1)
        for main, shortcut in self.blocks:
            y = x
            for names in main[:-1]:
                y = functional.relu(self._normalised(names, y), inplace=True)
            y = self._normalised(main[-1], y)
            x = functional.relu(y + (self._normalised(shortcut, x) if shortcut else x), inplace=True)
        return self.dense1(x.mean((2, 3)))


class Gpt(nn.Module):
    """A decoder of transformer blocks that are normalised before each part; the last layer's weight is the embeddings'."""

    def __init__(self, layers, heads, width, context, dropout=0.0):
        super().__init__()
        self.layers, self.heads, self.dropped = layers, heads, dropout
        self.embedding1 = nn.Embedding(256, width)
        self.positional_embedding1 = nn.Embedding(context, width)
        for table in (self.embedding1, self.positional_embedding1):
            nn.init.normal_(table.weight, std=0.1)
        for layer in range(layers):
            for number, module in (
                (2 * layer + 1, nn.LayerNorm(width)),
                (layer + 1, nn.MultiheadAttention(width, heads, dropout, batch_first=True)),
                (2 * layer + 2, nn.LayerNorm(width)),
                (2 * layer + 1, nn.Linear(width, 4 * width)),
                (2 * layer + 2, nn.Linear(4 * width, width)),
            ):
                kind = {nn.LayerNorm: "layer_norm", nn.MultiheadAttention: "attention", nn.Linear: "dense"}[type(module)]
                self.add_module(f"{kind}{number}", module)
        self.add_module(f"layer_norm{2 * layers + 1}", nn.LayerNorm(width))
        self.dropout = nn.Dropout(dropout)

    def _attend(self, attention, x):
        """As the module does, without its copies and its mask."""
        parts = functional.linear(x, attention.in_proj_weight, attention.in_proj_bias)
        queries, keys, values = parts.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        dropped = self.dropped if self.training else 0.0
        y = functional.scaled_dot_product_attention(queries, keys, values, dropout_p=dropped, is_causal=True)
        return attention.out_proj(y.transpose(1, 2).flatten(2))

    def forward(self, tokens):
        drop, part = self.dropout, self.__getattr__
        steps = tokens.shape[1]
        x = drop(self.embedding1(tokens) + self.positional_embedding1.weight[:steps])
        for layer in range(self.layers):
            x = x + drop(self._attend(part(f"attention{layer + 1}"), part(f"layer_norm{2 * layer + 1}")(x)))
            y = functional.gelu(part(f"dense{2 * layer + 1}")(part(f"layer_norm{2 * layer + 2}")(x)))
            x = x + drop(part(f"dense{2 * layer + 2}")(y))
        x = part(f"layer_norm{2 * self.layers + 1}")(x)
        return functional.linear(x, self.embedding1.weight)


def _convolutional(channels=1, left=3):
    """@param left  pixels a side before the dense layers"""
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(channels, 32, 3),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(32, 64, 3),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            conv3=nn.Conv2d(64, 64, 3),
            relu3=nn.ReLU(),
            flatten=nn.Flatten(),
            dense1=nn.Linear(64 * left * left, 64),
            relu4=nn.ReLU(),
            dense2=nn.Linear(64, 10),
        )
    )
