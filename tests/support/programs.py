"""Programs on every node of a torus, as --run-each starts them."""

import subprocess
from pathlib import Path

from torus_net import CHECKOUT
from torus_net.patience import Patience, communicate


def example(torus, name):
    """The path of a program of client/examples."""
    return str(Path(torus.torusctl).parent / 'examples' / name)


def python(script):
    """A shell command that runs a Python script with client/python in PYTHONPATH."""
    return f'PYTHONPATH={CHECKOUT}/client/python exec /usr/bin/python3 {script}'


def start_each(torus, command, ranks=None):
    """Starts a shell command on every node, or on those in `ranks`; %r stands for the rank. Returns the processes.
    Python finds the library that was built with torusctl, but not an instrumented one, which it could not
    load."""
    library = Path(torus.watcher).parent / 'client' / 'libtorus.so.1'
    setting = f'export TORUS_LIBRARY={library}; ' if library.exists() else ''
    return [node.start_program(setting + command.replace('%r', str(node.rank)), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE) for node in torus.nodes
            if ranks is None or node.rank in ranks]


def finish_each(processes, seconds=60):
    """Waits for processes. Returns a subprocess.CompletedProcess for each."""
    results = []
    try:
        for process in processes:
            out, err = communicate(process, Patience(seconds))
            results.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return results


def run_each(torus, command, seconds=60, check=True):
    results = finish_each(start_each(torus, command), seconds)
    if check:
        wrong = [f'node {rank}: exit status {result.returncode}: {result.stderr}{result.stdout}'
                 for rank, result in enumerate(results) if result.returncode != 0]
        assert not wrong, '\n'.join(wrong)
    return results
