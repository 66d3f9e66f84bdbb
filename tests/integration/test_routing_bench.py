"""scripts/routing-bench: its errors, and a short measurement."""

import argparse
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from bench import machine, routing
from bench.tables import routing as tables
from torus_net import CHECKOUT, Geometry, TorusError, find_program

pytestmark = pytest.mark.full

SCRIPT = CHECKOUT / 'scripts' / 'routing-bench'


def run(*arguments):
    environment = {**os.environ, 'TORUS_BIN': str(Path(find_program('torusd')).parent)}
    return subprocess.run([SCRIPT, '--no-install', *arguments], capture_output=True, text=True, env=environment)


def test_an_unknown_system():
    done = run('--systems', 'torus-routed,rip', '--cuts', '0')
    assert done.returncode == 2 and '"rip" is none of torus-routed, frr, bird, babeld' in done.stderr


def test_a_folder_that_is_missing():
    done = run('--into', '/nowhere')
    assert done.returncode == 2 and '/nowhere is not a folder' in done.stderr


@pytest.mark.mininet
@pytest.mark.full  # test_routed.py cuts links, too
@pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed')
def test_a_cut(tmp_path):
    done = run('4', '--systems', 'torus-routed', '--cuts', '1', '--silent', '1', '--rest', '1', '--iperf-seconds', '1',
               '--into', tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found['system'] == 'torus-routed' and found['dims'] == '4' and not found['failures']
    assert found['cuts_ms'][0] > 0 and found['silent_ms'][0] > 0
    assert found['lost'] == [0, 0] and found['loops'] == 0
    assert found['iperf_mbit'][0] > 0 and found['idle_with_torusd'][0] > found['idle'][0]
    assert json.loads((tmp_path / tables.FILE).read_text()) == [found]


def result(**more):
    return {'system': 'frr', 'dims': '4', 'mbit': None, 'load': 0.5, 'rest': 6, 'congestion': 'cubic', 'idle': [0.02],
            'idle_with_torusd': [0.021], 'cuts_ms': [20, 40, 30], 'silent_ms': [], 'lost': [0, 0, 2], 'loops': 1,
            'iperf_mbit': [10, 30], 'mpi': {'MPICH 1 KiB': [0.5]}, 'failures': ['iperf3: no end'], 'lines': 28,
            'when': 'today', 'commit': 'abc', 'machine': {**machine.describe(), 'processors': 2}, **more}


def test_a_page_keeps_what_was_not_measured_again(tmp_path):
    tables.put(tmp_path, result())
    tables.put(tmp_path, result(system='torus-routed', cuts_ms=[15]))
    tables.put(tmp_path, result(mbit=50.0))
    tables.put(tmp_path, result(cuts_ms=[70]))
    text = (tmp_path / tables.PAGE).read_text()
    assert text.index('## 4, unlimited links') < text.index('| torus-routed | 15.0 (15.0, n=1) |')
    assert text.index('| FRR | 70.0 (70.0, n=1) | - | 0 (2) | 1 | 20 | 28 |') < text.index('## 4, 50 Mbit/s')
    assert '| FRR | 30.0 (40.0, n=3) |' in text and 'two processors' in text and 'FRR failed: iperf3: no end' in text


def test_rounds_are_added():
    total = result(load=1, cuts_ms=[20], lost=[0], loops=1)
    routing.add_round(total, result(load=3, cuts_ms=[50, 60], lost=[1], mpi={'MPICH 1 KiB': [0.7], 'Open MPI 1 KiB': [2]}))
    assert total['cuts_ms'] == [20, 50, 60] and total['lost'] == [0, 1] and total['loops'] == 2 and total['load'] == 3
    assert total['mpi'] == {'MPICH 1 KiB': [0.5, 0.7], 'Open MPI 1 KiB': [2]} and total['dims'] == '4'


def test_systems_take_turns(monkeypatch):
    turns = []

    def measure(dims, mbit, name, options):
        turns.append((name, options.cuts))
        if name == 'bird':
            raise TorusError('it does not start')
        return result(system=name)
    monkeypatch.setattr(routing, 'measure', measure)
    said = []
    options = argparse.Namespace(systems=['frr', 'bird', 'babeld'], rounds=2, cuts=5, silent=0)
    found = routing.measure_all('4', None, options, said.append)
    assert turns == [('frr', 2), ('bird', 2), ('babeld', 2), ('frr', 3), ('babeld', 3)]
    assert said == ['4: bird: it does not start'] and [one['system'] for one in found] == ['frr', 'babeld']


def test_opposite_nodes():
    ring, mesh = Geometry('4x4'), Geometry('3x3m')
    assert [routing.opposite(ring, rank) for rank in (0, 5)] == [10, 15]
    assert routing.opposite(mesh, mesh.rank((0, 0))) == mesh.rank((1, 2))  # "3" is a ring
