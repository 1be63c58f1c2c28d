# steps: -
import os
import signal
import threading
import time

import torch

received = []


def note(number, frame):
    received.append((number, threading.current_thread().name, frame.f_code.co_name))


signal.signal(signal.SIGTERM, note)
signal.signal(signal.SIGUSR2, note)
time.sleep(0.1)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.1)
print(received)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigwait({signal.SIGUSR1}), signal.getsignal(signal.SIGTERM) is note)
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
signal.signal(signal.SIGTERM, signal.SIG_DFL)
print(torch.ones(1).item(), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
