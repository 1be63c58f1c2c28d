import time

import torch
from accelerate import Accelerator

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)


class Slow(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(16), index % 2


model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters())
training = torch.utils.data.DataLoader(Slow(120), batch_size=4)
validation = torch.utils.data.DataLoader(Slow(40), batch_size=4)
model, optimizer, training, validation = accelerator.prepare(model, optimizer, training, validation)
for _ in range(2):
    model.train()
    for x, y in training:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in validation:
            right += (model(x).argmax(1) == y).sum().item()
    print(loss.item(), right)
