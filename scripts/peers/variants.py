"""The peers, and the ways of running each that are tried; the fastest on the machine counts."""

WORKLOADS = ["mlp", "cnn", "mlp4096"]
PROGRAMS = {"torch": "torch_ddp.py", "tensorflow": "tensorflow_mirrored.py", "horovod": "horovod_torch.py"}


def variants(peer, workload):
    if peer == "tensorflow":
        return ["graph", "xla"]
    if workload == "cnn":
        return ["eager", "channels_last", "compile", "compile+channels_last"]
    return ["eager", "compile"]
