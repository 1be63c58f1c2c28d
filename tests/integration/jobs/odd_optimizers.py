# steps: 11
import torch

torch.manual_seed(0)
x, y = torch.randn(16, 3), torch.randn(16, 1)


class Sign(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad.sign(), alpha=group["lr"])


def show(model):
    print([round(p.sum().item(), 7) for p in model.parameters()])


def lbfgs():
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        return loss

    for _ in range(2):
        print(f"{optimizer.step(closure).item():.7f}")
    show(model)


def accumulated_and_scaled():
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cpu")
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for micro in range(6):
        loss = (model(x) - y).square().mean() / 2
        if micro == 3:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        if micro % 2:
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
    print(scaler.get_scale())
    show(model)


def two_players():
    makes, judges = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    first, second = Sign(makes.parameters(), 0.1), Sign(judges.parameters(), 0.1)
    for _ in range(7):
        first.zero_grad()
        second.zero_grad()
        judges(makes(x).detach()).mean().backward()
        second.step()
        (-judges(makes(x))).mean().backward()
        first.step()
    show(makes)
    show(judges)


lbfgs()
accumulated_and_scaled()
two_players()
