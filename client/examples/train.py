"""Trains a small model on all nodes, and goes on when a node goes down meanwhile:

    torusrun python3 train.py 1000 shrink    with the nodes that are left
    torusrun python3 train.py 1000 wait      once the node is up again, and this program runs there again

1000 is the number of steps. See client/doc/torch.md.
"""

import sys

import torch
import torch.distributed as dist
import torch_torus  # noqa: F401: registers the backend

STEPS, ON_FAILURE = int(sys.argv[1]), sys.argv[2]
INPUTS = torch.randn(64, 20, generator=torch.Generator().manual_seed(1))
RESULTS = INPUTS.sin().sum(1, keepdim=True)


def agree(model, optimizer, step):
    """Gives all ranks the state of one that has made the most steps: some may have made one more than others when a node
    went down, and a program that was started again has made none. Returns how many steps that are."""
    steps = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(steps, torch.tensor([step]))
    best = int(torch.cat(steps).argmax())
    states = [model.state_dict(), optimizer.state_dict()]
    dist.broadcast_object_list(states, best)
    model.load_state_dict(states[0])
    optimizer.load_state_dict(states[1])
    return int(steps[best])


def train(model, optimizer, step):
    """Makes the steps that are left. Returns how many steps were made, and the error if a node went down."""
    try:
        dist.init_process_group('torus', init_method=f'torus://?on_failure={ON_FAILURE}')
        step = agree(model, optimizer, step)
        ddp = torch.nn.parallel.DistributedDataParallel(model)
        rank, size = dist.get_rank(), dist.get_world_size()
        while step < STEPS:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(ddp(INPUTS[rank::size]), RESULTS[rank::size])
            loss.backward()
            optimizer.step()
            step += 1
            if step % 20 == 0:
                print(f'step {step}: loss {loss.item():.4f}, {size} ranks', flush=True)
        dist.barrier()
        return step, None
    except RuntimeError as error:
        return step, error


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.Tanh(), torch.nn.Linear(50, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step, error = train(model, optimizer, 0)
    while error is not None:
        if 'torus: ' not in str(error):
            raise error
        print(f'step {step}: {error}', file=sys.stderr, flush=True)
        if dist.is_initialized():
            dist.destroy_process_group()
        step, error = train(model, optimizer, step)
    print(f'done with {dist.get_world_size()} ranks, parameters {sum(p.sum().item() for p in model.parameters()):.6f}')
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
