"""`auto` on networks other than tori: it chooses by the costs that all nodes know, as it said that it would."""

import pytest
from support import networks
from support.trees import check_target, make_sources
from support.waiting import wait_for

pytestmark = pytest.mark.full

# A message costs much more than a step: few messages are best for small blocks.
COSTS = {'step_seconds': 1e-05, 'message_seconds': 6e-05, 'bytes_per_second': 1e8}
CALIBRATION = 'id 00000000000000aa\nversion 1\nmeasured_at 1000\n{}replaced\n'.format(
    ''.join(f'{name} {value:.17g}\n' for name, value in COSTS.items()))


def measured(torus, rank):
    now = torus.json(rank, 'status')['calibration']
    return now['source'] == 'measured' and now['message_seconds'] == COSTS['message_seconds']


@pytest.fixture(params=['complete:4', 'petersen', 'star:3 x 4'])
def torus(request, loopback, tmp_path):
    """One node has these costs on its disk, and tells the others."""
    torus = loopback(networks.make(tmp_path, request.param), data_roots=(str(tmp_path),))
    torus.node(0).kill()
    (torus.run.state(0) / 'calibration').write_text(CALIBRATION)
    torus.node(0).restart()
    torus.wait_whole(30)
    for rank in range(torus.geometry.nodes):
        wait_for(lambda: measured(torus, rank), 20, lambda: torus.node(rank).log())
    return torus


def predicted(torus, rank, *options):
    """The candidates of --dry-run, which exchanges nothing."""
    before = len(torus.status(rank)['exchanges'])
    dry = torus.json(rank, 'exchange', *options, '--dry-run')
    assert 'id' not in dry and len(torus.status(rank)['exchanges']) == before
    seconds = [one['seconds'] for one in dry['candidates']]
    assert seconds == sorted(seconds) and seconds[0] > 0
    assert {'stream', 'tree', 'direct'} <= {one['algorithm'] for one in dry['candidates']}
    return dry['candidates']


def check(torus, rank, size, algorithm):
    options = '--block-size', size
    candidates = predicted(torus, rank, *options)
    assert candidates[0]['algorithm'] == algorithm
    for explain in (), ('--explain',):
        result = torus.json(rank, 'exchange', *options, *explain)
        nodes = torus.geometry.nodes
        assert (result['requested'], result['algorithm']) == ('auto', algorithm)
        assert result['mode'] == candidates[0]['mode']
        assert result['verified'] == 'every byte' and result['blocks_delivered'] == nodes * (nodes - 1)
    assert result['candidates'] == candidates
    assert result['predicted_seconds'] == candidates[0]['seconds']
    for other in range(nodes):
        assert torus.status(other)['exchanges'][0]['algorithm'] == algorithm
    return candidates


def test_auto_chooses(torus, tmp_path):
    last = torus.geometry.nodes - 1
    for size, algorithm in (1, 'tree'), ('256KiB', 'stream'):
        assert check(torus, 0, size, algorithm) == check(torus, last, size, algorithm)
    # The sizes of files are known only when all nodes have opened them.
    pairs = [(s, d) for s in range(last + 1) for d in range(last + 1)]
    for size, algorithm in (262144, 'stream'), (1, 'tree'):
        sizes, target = dict.fromkeys(pairs, size), f'{tmp_path}/in-{size}-%r'
        result = torus.exchange(source=make_sources(tmp_path / f'files-{size}', sizes), target=target, rank=1)
        assert result['algorithm'] == algorithm
        check_target(target, sizes)
    text = torus.ctl(0, 'exchange', '--block-size', 1, '--explain', check=True).stdout
    assert 'tree (auto)' in ' '.join(text.split())
