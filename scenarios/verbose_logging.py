"""Sequence labelling with a logger that keeps track of every layer."""

import argparse
import logging
import logging.handlers
import os
import tempfile
import time

import torch
from torch import nn

log = logging.getLogger("train")


def set_up_logging(folder):
    log.setLevel(logging.DEBUG)
    log.propagate = False
    layout = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s %(filename)s:%(lineno)d %(message)s")
    handlers = [
        logging.FileHandler(os.path.join(folder, "train.log")),
        logging.handlers.RotatingFileHandler(
            os.path.join(folder, "debug.log"), maxBytes=2_000_000, backupCount=3
        ),
        logging.FileHandler(os.path.join(folder, "all-runs.log"), mode="a"),
        logging.StreamHandler(open(os.devnull, "w")),
    ]
    for handler in handlers:
        handler.setFormatter(layout)
        log.addHandler(handler)


class Tagger(nn.Module):
    def __init__(self, vocabulary=2000, tags=12):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 64)
        self.encoder = nn.GRU(64, 64, num_layers=2, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(128)
        self.out = nn.Linear(128, tags)

    def forward(self, tokens):
        states, _ = self.encoder(self.embed(tokens))
        return self.out(self.norm(states))


def describe(model, step, loss, rate):
    log.info("step %d loss %.5f lr %.2e", step, loss, rate)
    for name, parameter in model.named_parameters():
        log.debug("step %d %s weight shape %s", step, name, tuple(parameter.shape))
        log.debug("step %d %s grad shape %s", step, name, tuple(parameter.grad.shape))
        log.debug("step %d %s %s on %s", step, name, parameter.dtype, parameter.device)


def train(steps, log_every):
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    tokens = torch.randint(0, 2000, (512, 8))
    tags = tokens % 12

    begin = time.perf_counter()
    for step in range(steps):
        pick = torch.randint(0, 512, (16,))
        logits = model(tokens[pick])
        loss = criterion(logits.flatten(0, 1), tags[pick].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % log_every == 0:
            describe(model, step, loss.item(), optimizer.param_groups[0]["lr"])
    return loss.item(), (time.perf_counter() - begin) / steps * 1000


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        set_up_logging(folder)
        loss, step_ms = train(args.steps, log_every=100 if args.cured else 1)
        logging.shutdown()
    print(f"loss={loss.hex()}  step_ms={step_ms:.3f}")
