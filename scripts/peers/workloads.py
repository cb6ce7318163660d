"""What is trained, by whom, and the ways of running each peer that are tried; the fastest on the machine counts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    application: tuple  # ours, and its options
    trial_steps: int
    batch: int = 64  # a rank
    warm_up: int = 10  # steps left out of the figures; 10 are left out of our own summaries too
    images: tuple = None  # height, width, channels of made-up ones; MNIST where neither these nor bytes are given
    classes: int = 10
    bytes: int = None  # of a sample of text


WORKLOADS = {
    "mlp": Workload(("mnist_mlp",), 1000),
    "cnn": Workload(("mnist_cnn",), 100),
    "mlp4096": Workload(("mnist_mlp", "--hidden", "4096,4096,4096"), 20),
    "resnet18": Workload(("cifar10_resnet", "--no-augment", "--no-sync-batch-norm"), 3, warm_up=2, images=(32, 32, 3)),
    "resnet50": Workload(("imagenet_resnet50",), 3, batch=8, warm_up=2, images=(224, 224, 3), classes=100),
    "gpt": Workload(("char_gpt", "--test-split", "0"), 3, batch=16, warm_up=2, bytes=128),
}
PROGRAMS = {
    "torch": "torch_ddp.py",
    "tensorflow": "tensorflow_mirrored.py",
    "jax": "jax_devices.py",
    "horovod": "horovod_torch.py",
}


def variants(peer, workload):
    if peer == "tensorflow":
        return [] if workload == "gpt" else ["graph", "xla"]
    if peer == "jax":
        return ["loop", "loop+one_thread", "steps", "steps+one_thread"]
    convolutional = workload == "cnn" or WORKLOADS[workload].images
    return ["eager", "channels_last", "compile", "compile+channels_last"] if convolutional else ["eager", "compile"]
