"""Predict the next letter of a made-up language: nothing is planted, nothing should be found."""

import argparse
import time

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class LetterModel(nn.Module):
    def __init__(self, letters=64, width=128, length=64):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 512, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, letters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, text):
        places = torch.arange(text.shape[1], device=text.device)
        states = self.layers(self.letters(text) + self.places(places), mask=self.mask, is_causal=True)
        return self.out(states)


def main(steps):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    text = (torch.randint(0, 4, (100_000,)).cumsum(0) % 64).to(device)
    model = LetterModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(1, steps + 1):
        begins = torch.randint(0, len(text) - 65, (16, 1), device=device)
        rows = text[begins + torch.arange(65, device=device)]
        logits = model(rows[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            rate = step / (time.perf_counter() - start)
            print(f"step {step}: loss {loss.item():.3f}, {rate:.0f} steps/s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--cured", action="store_true", help="changes nothing: there is nothing to cure")
    main(parser.parse_args().steps)
