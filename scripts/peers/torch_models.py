"""The applications' models in PyTorch; state_dict() has the names and layouts of our parameter files."""

from collections import OrderedDict

from torch import nn

HIDDEN = {"softmax": [], "mlp": [128], "mlp4096": [4096, 4096, 4096]}


def build(workload):
    """Takes images (N, 1, 28, 28), gives logits (N, 10)."""
    return _convolutional() if workload == "cnn" else _dense(HIDDEN[workload])


def _dense(hidden):
    widths = [28 * 28, *hidden, 10]
    layers = OrderedDict(flatten=nn.Flatten())
    for number, (inputs, outputs) in enumerate(zip(widths, widths[1:]), start=1):
        layers[f"dense{number}"] = nn.Linear(inputs, outputs)
        if number <= len(hidden):
            layers[f"relu{number}"] = nn.ReLU()
    return nn.Sequential(layers)


def _convolutional():
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(1, 32, 3),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(32, 64, 3),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            conv3=nn.Conv2d(64, 64, 3),
            relu3=nn.ReLU(),
            flatten=nn.Flatten(),
            dense1=nn.Linear(64 * 3 * 3, 64),
            relu4=nn.ReLU(),
            dense2=nn.Linear(64, 10),
        )
    )
