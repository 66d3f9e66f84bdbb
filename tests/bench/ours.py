"""The systems of torusd, one for each algorithm, and their expected times."""

import json
import subprocess

from torus_net import TorusError

from . import machine
from .systems import OURS, Failed, Sample, System


class Ours(System):
    def __init__(self, torus, algorithm, repeats_itself):
        super().__init__(torus, OURS, algorithm)
        self.torus = torus
        self.repeats_itself = self.repeats_cheaply = repeats_itself

    def measure(self, size, warmup, repeats, timeout):
        before = machine.daemon_seconds(self.torus)
        try:
            if self.repeats_itself:
                seconds, detail = self._session(size, warmup + repeats, timeout)
            else:
                seconds, detail = self._calls(size, warmup + repeats, timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f'not finished within {timeout:.0f} s') from None
        except TorusError as e:
            raise Failed(str(e)) from e
        if len(seconds) != warmup + repeats:
            raise Failed(f'{len(seconds)} times were reported instead of {warmup + repeats}')
        return Sample(seconds[warmup:], machine.daemon_seconds(self.torus) - before, detail)

    def warm_up(self, size, timeout):
        try:
            return self.torus.exchange('stream', size, timeout=timeout)['seconds']
        except (TorusError, subprocess.TimeoutExpired) as e:
            raise Failed(f'warming up: {e}') from e

    def _exchange(self, size, timeout, *options):
        name = None if self.algorithm == 'default' else self.algorithm
        result = self.torus.exchange(name, size, timeout=timeout,
                                     options=['--timeout', int(timeout) + 1, *options])
        if result['verified'] in (False, 'nothing'):  # older builds say true or false
            raise Failed('blocks arrived damaged')
        return result

    def _session(self, size, count, timeout):
        result = self._exchange(size, timeout, '--repeat', count)
        return result.get('seconds_each', [result['seconds']]), messages(result)

    def _calls(self, size, count, timeout):
        seconds = []
        for _ in range(count):
            result = self._exchange(size, timeout)
            seconds.append(result['seconds'])
        return seconds, messages(result)


def messages(result):
    """The mean number of messages and bytes that a node sent, as the daemons count them."""
    nodes = result.get('per_node', ())  # older builds have no node_count
    ports = [port for node in nodes for port in node['ports'].values()]
    if not ports:
        return {}
    return {'chosen': result['algorithm'],
            'messages': sum(port['combined_messages'] for port in ports) / len(nodes),
            'tx_bytes': sum(port['tx_bytes'] for port in ports) / len(nodes)}


def our_systems(torus, wanted, complain):
    """All algorithms that support this torus, or those of `wanted` that do."""
    rows = torus.json(0, 'algorithms', '--dims', str(torus.geometry))['algorithms']
    taken = [row['algorithm'] for row in rows
             if row['operation'] == 'exchange' and row['accepts']]
    if _takes_auto(torus):
        rows.append({'algorithm': 'auto'})
        taken.append('auto')
    if wanted is not None:
        known = {row['algorithm'] for row in rows} | {'default'}
        for name in wanted:
            if name not in known:
                complain(f'torusctl does not know the algorithm "{name}"')
        taken = [name for name in wanted if name in taken or name == 'default']
    repeats_itself = '--repeat' in torus.ctl(0, 'exchange', '--help').stdout
    return [Ours(torus, name, repeats_itself) for name in dict.fromkeys(taken)]


def _takes_auto(torus):
    try:
        torus.exchange('auto', 1)
    except TorusError:
        return False
    return True


def explainer(torus):
    """A function (algorithm, size) that returns the seconds that torusctl predicts, or None."""
    if '--explain' not in torus.ctl(0, 'exchange', '--help').stdout:
        return lambda algorithm, size: None

    def predicted(algorithm, size):
        try:
            said = torus.json(0, 'exchange', '--explain', '--dry-run', '--block-size', size)
        except TorusError:
            return None
        found = [row for row in said['candidates'] if algorithm in ('auto', row['algorithm'])]
        return found[0]['seconds'] if found else None
    return predicted


SIMULATED = ('stream', 'at2', 'dim-s2', 'pair-s4')  # if they support the torus
SIMULATED_FROM, SIMULATED_TO = 4096, 262144
BURST = 15 << 10  # bytes that Mininet's links pass at once


def not_simulated(_algorithm, _size):
    return None


def simulator(program, dims, mbit):
    """A function (algorithm, size) that returns the seconds of a simulated exchange, on links with a limiter of
    this rate and with infinitely fast processors, or None if it was not simulated."""
    def simulated(algorithm, size):
        if (algorithm not in SIMULATED or not SIMULATED_FROM <= size <= SIMULATED_TO
                or not program.exists()):
            return None
        command = [program, dims, algorithm, str(size), str(mbit * 1e6 / 8), '20', str(BURST)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return json.loads(done.stdout)['seconds'] if done.returncode == 0 else None
    return simulated
