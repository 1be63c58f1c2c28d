"""Language identification on sentences of very different length."""
import argparse
import random
import time

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD = 0


def make_sentences(count):
    rng = random.Random(3)
    sentences = []
    for _ in range(count):
        language = rng.randrange(4)
        length = rng.randint(100, 300)
        letters = [rng.randrange(1 + 12 * language, 30 + 12 * language) for _ in range(length)]
        sentences.append((torch.tensor(letters), language))
    return sentences


def pad_batch(batch):
    longest = max(len(ids) for ids, _ in batch)
    tokens, mask, labels = [], [], []
    for ids, label in batch:
        row, keep = [], []
        for position in range(longest):
            if position < len(ids):
                row.append(int(ids[position]))
                keep.append(1.0)
            else:
                row.append(PAD)
                keep.append(0.0)
        tokens.append(row)
        mask.append(keep)
        labels.append(label)
    return torch.tensor(tokens), torch.tensor(mask), torch.tensor(labels)


def pad_batch_at_once(batch):
    tokens = pad_sequence([ids for ids, _ in batch], batch_first=True, padding_value=PAD)
    lengths = torch.tensor([len(ids) for ids, _ in batch])
    mask = (torch.arange(tokens.shape[1]) < lengths[:, None]).float()
    return tokens, mask, torch.tensor([label for _, label in batch])


class LanguageId(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(80, 32, padding_idx=PAD)
        self.conv = nn.Conv1d(32, 64, 5, padding=2, stride=4)
        self.head = nn.Linear(64, 4)

    def forward(self, tokens, mask):
        x = (self.embed(tokens) * mask.unsqueeze(-1)).transpose(1, 2)
        return self.head(torch.relu(self.conv(x)).mean(dim=2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=350)
    parser.add_argument("--cured", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(make_sentences(4000), batch_size=48, shuffle=True, drop_last=True, num_workers=2,
                        persistent_workers=True, collate_fn=pad_batch_at_once if args.cured else pad_batch)
    model = LanguageId()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()

    step, began = 0, time.perf_counter()
    while step < args.steps:
        for tokens, mask, labels in loader:
            if step == args.steps:
                break
            optimizer.zero_grad()
            loss = criterion(model(tokens, mask), labels)
            loss.backward()
            optimizer.step()
            step += 1
    elapsed = time.perf_counter() - began
    print(f"loss={loss.item().hex()}  step_ms={elapsed / step * 1000:.3f}")


if __name__ == "__main__":
    main()
