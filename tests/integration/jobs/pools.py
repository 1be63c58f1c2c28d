# steps: -
import multiprocessing
import os
import sys
import time

import torch


def square(number):
    return number * number, torch.tensor(number).item(), multiprocessing.current_process().daemon


def fail(number):
    raise ValueError(number)


def main():
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(pool.map(square, range(4)))
            try:
                pool.map(fail, [7])
            except ValueError as error:
                print(repr(error), error.__cause__)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        print("child", torch.ones(2).sum().item())
        sys.exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(6)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.stdout.flush()
    if os.fork() == 0:  # a daemon that outlives the job
        os.setsid()
        os.closerange(0, 256)
        time.sleep(1)
        os._exit(0)
    os._exit(7)


if __name__ == "__main__":
    main()
