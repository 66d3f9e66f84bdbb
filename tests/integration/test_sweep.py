"""torusctl sweep: its three outputs agree, and Ctrl-C ends it with what it has."""

import csv
import io
import json
import signal
import subprocess
import xml.etree.ElementTree as ET

import pytest
from support.waiting import wait_for
from torus_net import find_program, patience

pytestmark = pytest.mark.plain
SWEEP = 'sweep', '--dims', '4x4..16x16', '--algorithms', 'at2,a2,atape,ar'


def sweep(*words):
    done = patience.run([find_program('torusctl'), *SWEEP, *words], 120)
    assert done.returncode == 0, done
    return done.stdout


def test_outputs_agree(tmp_path):
    said = json.loads(sweep('--json', '--plot', tmp_path / 'counts.svg'))
    rows = list(csv.DictReader(io.StringIO(sweep('--csv'))))
    assert len(rows) == len(said['results']) == 12
    for row, result in zip(rows, said['results']):
        assert row['dims'] == 'x'.join(map(str, result['dims'])) and row['algorithm'] == result['algorithm']
        for name in 'startups', 'transmission', 'busiest', 'bound', 'efficiency':
            assert row[name] == '' if name not in result else abs(float(row[name]) - result[name]) < 1e-8
        assert row['refused'] == result.get('refused', '')
    picture = ET.parse(tmp_path / 'counts.svg').getroot()
    shown = [text.text for text in picture.iter('{http://www.w3.org/2000/svg}text')]
    drawn = [title.text for title in picture.iter('{http://www.w3.org/2000/svg}title')]
    # Startups and transmission of three algorithms, and the bounds of two kinds of ports.
    assert {'at2', 'a2', 'atape', 'bound, all-port', 'bound, one-port, single hops'} <= set(shown) and 'ar' not in shown
    assert [drawn.count(name) for name in ('at2', 'a2', 'atape', 'all-port')] == [2, 2, 2, 1]
    points = [len(path.get('d').split('L')) for path in picture.iter('{http://www.w3.org/2000/svg}path')]
    assert points.count(3) == 8
    assert ET.fromstring(sweep('--plot', '-')).tag == picture.tag


def test_interrupted(tmp_path):
    """What is counted is printed; the function under way has no row, and the next torus is not begun."""
    (tmp_path / 'slow.py').write_text(f'''
import pathlib
def route(network, source, destination, segment):
    if network.nodes == 4:
        pathlib.Path({str(tmp_path / 'begun')!r}).touch()
        while not pathlib.Path({str(tmp_path / 'go')!r}).exists():
            pass
    return [[0, 0, 1, (destination - source) % network.nodes]]
''')
    client = subprocess.Popen([find_program('torusctl'), '--json', 'sweep', '--dims', '3..5', '--step', '1', '--algorithms',
                               f'python:{tmp_path}/slow.py'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for((tmp_path / 'begun').exists)
    client.send_signal(signal.SIGINT)
    out, err = patience.communicate(client, patience.Patience(60))
    (tmp_path / 'go').touch()
    said = json.loads(out)
    assert client.returncode == 1 and 'interrupted' in err
    assert said['complete'] is False and [row['dims'] for row in said['results']] == [[3]], said
    assert said['results'][0]['startups'] == 1, said
