"""Times experiment trackers: TensorBoard, Weights & Biases, MLflow."""

from __future__ import annotations

from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import replace_timed


def attach_tensorboard(recorder: Recorder, module: ModuleType) -> None:
    library = recorder.name("tensorboard")
    writer = module.SummaryWriter
    for method in [name for name in vars(writer) if name.startswith("add_") or name in ("flush", "close")]:
        replace_timed(recorder, writer, method, "tracker", library)


def attach_wandb(recorder: Recorder, module: ModuleType) -> None:
    library = recorder.name("wandb")
    for method in ("log", "watch", "save", "log_artifact"):
        replace_timed(recorder, module.Run, method, "tracker", library)


def attach_mlflow(recorder: Recorder, module: ModuleType) -> None:
    library = recorder.name("mlflow")
    for function in ("log_metric", "log_metrics", "log_param", "log_params", "log_artifact", "log_figure"):
        replace_timed(recorder, module, function, "tracker", library)
