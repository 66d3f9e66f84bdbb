"""Waiting for conditions. All limits on waiting in the tests are those of torus_net.patience: they count only
the time for which the machine lets the test and its daemons run."""

import subprocess
import time

from torus_net.patience import Patience


def wait_for(condition, seconds=30, what='the condition did not become true', pause=0.01):
    """Returns the first true value of condition(). When time is up, raises AssertionError with `what` (a text or a
    function). Most conditions are programs that ask a daemon, so the longer it takes, the less often they are asked."""
    patience, begin = Patience(seconds), time.monotonic()
    while True:
        late = patience.over
        value = condition()
        if value:
            return value
        assert not late, what() if callable(what) else what
        time.sleep(max(pause, min((time.monotonic() - begin) / 20, 0.25)))


def wait_logged(log, text, seconds=30):
    """Waits until log() contains `text`, or a match of it if it is a compiled pattern. A thread of the daemon writes its
    log: whatever else shows that something has happened, the line about it may come later. Returns the log."""
    def said():
        whole = log()
        return whole if (text in whole if isinstance(text, str) else text.search(whole)) else None
    return wait_for(said, seconds, lambda: f'{text!r} is not in the log:\n{log()[-4000:]}')


def run_when_possible(command):
    """Runs a command until it succeeds, such as umount: daemons may close files after they have answered."""
    wait_for(lambda: subprocess.run(command).returncode == 0, what=f'{command} fails')


def exchanges(torus, rank=0):
    return torus.status(rank)['exchanges']


def wait_running(torus, rank=0, seconds=30, tx_bytes=1, besides=()):
    """Returns the id of an exchange that runs at `rank` and is not in `besides`, once data has moved on the links
    there."""
    def running():
        found = [x['id'] for x in exchanges(torus, rank)
                 if x['state'] == 'running' and x['id'] not in besides]
        if found and sum(link['tx_bytes'] for link in torus.links(rank)['links']) > tx_bytes:
            return found[0]
        return None
    return wait_for(running, seconds, lambda: f'no exchange runs at node {rank}: '
                                              f'{exchanges(torus, rank)}')


def state_of(torus, exchange, rank=0):
    """(state, reason) of an exchange at a node; (None, '') if the node does not know it."""
    for x in exchanges(torus, rank):
        if x['id'] == exchange:
            return x['state'], x['reason']
    return None, ''


def wait_state(torus, exchange, states, ranks, seconds=30):
    """Waits until the exchange has one of `states` at all `ranks`. Returns the reasons by rank."""
    reasons = {}
    for rank in ranks:
        def there(rank=rank):
            state, reasons[rank] = state_of(torus, exchange, rank)
            return state in states
        wait_for(there, seconds, lambda: f'exchange {exchange} at node {rank}: '
                                         f'{state_of(torus, exchange, rank)}, not {states}')
    return reasons
