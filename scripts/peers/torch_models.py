"""The applications' models in PyTorch; state_dict() has the names and layouts of our parameter files."""

from collections import OrderedDict

from torch import nn

HIDDEN = {"softmax": [], "mlp": [128], "mlp4096": [4096, 4096, 4096]}


def build(workload):
    """Takes images (N, 1, 28, 28), gives logits (N, 10)."""
    if workload == "resnet":
        return Residual()
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
        relu, pool = nn.functional.relu, nn.functional.max_pool2d
        x = relu(self.conv1(x))
        x = pool(relu(self.conv3(relu(self.conv2(x))) + x), 2)
        x = pool(relu(self.conv5(relu(self.conv4(x))) + self.conv6(x)), 2)
        x = relu(self.conv8(relu(self.conv7(x))) + x)
        return self.dense1(nn.functional.avg_pool2d(x, 7).flatten(1))


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
