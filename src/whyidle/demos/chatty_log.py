"""Label words in sentences, with a log that keeps track of every layer at every step."""

import argparse
import logging
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
log = logging.getLogger("train")


def log_to(folder):
    log.setLevel(logging.DEBUG)
    log.propagate = False
    layout = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s %(filename)s:%(lineno)d %(message)s")
    for name in ("train.log", "debug.log"):
        handler = logging.FileHandler(folder / name)
        handler.setFormatter(layout)
        log.addHandler(handler)


def describe(model, step, loss):
    log.info("step %d loss %.5f", step, loss.item())
    for name, weight in model.named_parameters():
        log.debug("step %d %s shape %s on %s", step, name, tuple(weight.shape), weight.device)
        log.debug("step %d %s gradient shape %s", step, name, tuple(weight.grad.shape))


class Tagger(nn.Module):
    def __init__(self, words=2000, tags=12):
        super().__init__()
        self.embed = nn.Embedding(words, 32)
        self.encoder = nn.GRU(32, 32, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, tags)

    def forward(self, sentences):
        states, _ = self.encoder(self.embed(sentences))
        return self.out(states)


def train(steps, log_every):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sentences = torch.randint(0, 2000, (512, 8), device=device)
    tags = sentences % 12
    model = Tagger().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    start = time.perf_counter()
    for step in range(1, steps + 1):
        rows = torch.randint(0, 512, (16,), device=device)
        loss = criterion(model(sentences[rows]).flatten(0, 1), tags[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % log_every == 0:
            describe(model, step, loss)
    print(f"{steps} steps: loss {loss.item():.3f}, {steps / (time.perf_counter() - start):.0f} steps/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log_to(Path(folder))
        train(args.steps, log_every=100 if args.cured else 1)
        logging.shutdown()
