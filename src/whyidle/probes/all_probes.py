"""The table of probes: which module's import attaches which probe."""

from __future__ import annotations

from types import ModuleType

from whyidle.probes.import_hooks import Attach
from whyidle.probes.python import collector, console, files, log_calls, progress, trackers
from whyidle.probes.recorder import Recorder
from whyidle.probes.torch import autograd, compiling, copies, loader, modules, optimizer, ranks, saving


def _torch(recorder: Recorder, module: ModuleType) -> None:
    copies.attach(recorder, module)
    recorder.start()


PROBES: dict[str, Attach] = {
    "builtins": console.attach,
    "gc": collector.attach,
    "logging": log_calls.attach,
    "os": files.attach,
    "torch": _torch,
    "torch._dynamo.eval_frame": compiling.attach,
    "torch.autograd": autograd.attach,
    "torch.distributed.checkpoint.state_dict_saver": saving.attach_distributed,
    "torch.distributed.distributed_c10d": ranks.attach,
    "torch.nn.modules.module": modules.attach,
    "torch.optim.optimizer": optimizer.attach,
    "torch.serialization": saving.attach,
    "torch.utils.data._utils.fetch": loader.attach_fetchers,
    "torch.utils.data._utils.worker": loader.attach_worker_loop,
    "torch.utils.data.dataloader": loader.attach_loader,
    "safetensors.torch": saving.attach_safetensors,
    "torch.utils.tensorboard.writer": trackers.attach_tensorboard,
    "tensorboardX.writer": trackers.attach_tensorboard,
    "wandb.sdk.wandb_run": trackers.attach_wandb,
    "mlflow.tracking.fluent": trackers.attach_mlflow,
    "tqdm.std": progress.attach_tqdm,
    "rich.progress": progress.attach_rich,
}
