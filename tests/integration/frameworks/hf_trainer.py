import tempfile
import time

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Slow(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.002)
        generator = torch.Generator().manual_seed(index)
        return {
            "input_ids": torch.randint(0, 100, (8,), generator=generator),
            "labels": torch.tensor(index % 2),
        }


torch.manual_seed(0)
config = BertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
)
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    num_train_epochs=2,
    per_device_train_batch_size=4,
    per_device_eval_batch_size=4,
    gradient_accumulation_steps=2,
    eval_strategy="epoch",
    save_strategy="no",
    report_to=[],
    logging_strategy="no",
    use_cpu=True,
    disable_tqdm=True,
    log_level="error",
)
trainer = Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=Slow(120), eval_dataset=Slow(40)
)
trainer.pop_callback(trainer.callback_handler.callbacks[-1])  # prints timings
trainer.train()
print(trainer.state.global_step, [round(p.sum().item(), 6) for p in trainer.model.parameters()][:4])
