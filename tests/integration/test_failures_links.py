"""Links to a wrong neighbour, and links that go down."""

import re
import subprocess

import pytest
from support.background import Client
from support.errors import assert_blames, assert_refused
from support.failures import others, still_works
from support.trees import check_target, make_sources, random_sizes, wait_tidy
from support.users import free_port
from support.waiting import wait_for, wait_logged
from torus_net.patience import Patience, wait


class Impostor:
    """Replaces a node of a torus by a torusd with other settings."""

    def __init__(self, torus, rank, folder, changes=(), addresses=None):
        self.node = node = torus.node(rank)
        assert node.alive
        node.terminate()
        addresses = addresses or node.addresses
        ports = [f'--port={name}={address}' for name, address in addresses.items()]
        self.log = folder / 'impostor.log'
        self.socket = str(folder / 'sock')
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(
                [torus.torusd, '--dims', str(torus.geometry), '--rank', str(rank), *ports,
                 '--control', self.socket, '--state-dir', str(folder / 'state'),
                 *map(str, changes)], stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        wait(self.process, Patience(20))


IMPOSTORS = {
    'another rank': (lambda a: (['--rank', 5], a), 'node 5 port'),
    'another torus': (lambda a: (['--dims', '2x5'], a), 'is in a torus 2x5'),
    'crossed cables': (lambda a: ([], {'+0': a['+1'], '+1': a['+0'], '-0': a['-1'], '-1': a['-0']}),
                       'node 4 port'),
}


@pytest.mark.parametrize('how', IMPOSTORS)
def test_a_neighbour_that_is_somebody_else(loopback, tmp_path, how):
    torus = loopback('3x3')
    change, said = IMPOSTORS[how]
    args, addresses = change(dict(torus.node(4).addresses))
    neighbours = {7: '-0', 1: '+0', 5: '-1', 3: '+1'}
    with Impostor(torus, 4, tmp_path, args, addresses) as impostor:
        for rank, port in neighbours.items():
            def reason(rank=rank, port=port):
                return next(link for link in torus.links(rank)['links'] if link['port'] == port)
            # Between its tries a link may be waiting for the next one: the reason stays.
            wait_for(lambda: said in reason()['reason'], 20, lambda: f'node {rank}: {reason()}\n'
                                                                     f'{impostor.log.read_text()}')
            assert reason()['up'] is False and reason()['neighbour'] == 4
            wait_logged(torus.node(rank).log, said)
        # The impostor is told, too, and reports it.
        wait_logged(impostor.log.read_text, re.compile('refused by|wrong cabling|in a torus'))
        status = torus.status(0)
        assert status['whole'] is False
        assert any('node 4 is down' in text for text in status['faults'])
        failed = torus.ctl(0, '--json', 'exchange', '--block-size', 1)
        assert_blames((failed.returncode, failed.stdout, failed.stderr), 4)
        lines = torus.node(7).log().splitlines()
        assert len(lines) < 100, 'a refusal is not to be logged at every try'
    torus.node(4).start()
    still_works(torus, rank=4)


def test_a_link_that_is_down_is_avoided(loopback, tmp_path):
    """While the torus is connected, exchanges avoid the link, and report that."""
    torus = loopback('4x4')
    addresses = dict(torus.node(5).addresses, **{'+1': f'127.0.0.1:{free_port()}'})
    fault = 'link 5:+1 to node 6 is down'
    key = ['--key-file', torus.key_file()]
    with Impostor(torus, 5, tmp_path, key, addresses):
        for rank in others(torus, 5):
            wait_for(lambda rank=rank: torus.status(rank)['faults'] == [fault], 30)
        for options in ([], ['--repeat', '3'], ['--mode', 'stepped']):
            result = torus.exchange('auto', 20000, rank=6, options=options)
            assert result['without'] == 'link 5:+1' and result['algorithm'] == 'detour', result
            assert result['blocks_delivered'] == 16 * 15 and result['verified'] == 'every byte', result
        text = torus.ctl(0, 'exchange', '--block-size', 1000).stdout
        assert re.search('^without +link 5:[+]1$', text, re.M), text
        refused = torus.ctl(0, '--json', 'exchange', '--block-size', 1000, '--algorithm', 'at2')
        assert_refused(refused, 'link')
        assert fault in refused.stderr and 'auto' in refused.stderr  # which avoids the link
        assert_refused(torus.ctl(0, '--json', 'allgather', '--block-size', 1000), 'link')
    torus.node(5).start()
    still_works(torus, rank=5)


def cut_meanwhile(torus, **options):
    """The result of an exchange during which the cable is cut."""
    torus.cable.cut_after(300_000)
    result = torus.exchange(**options)
    assert torus.cable.is_cut
    assert result['reroutes'] >= 1 and result['without'] == 'link 4:+1', result
    assert result['algorithm'] == 'detour' and result['blocks_delivered'] == 9 * 8, result
    return result


@pytest.mark.parametrize('root', [0, 4, 5], ids=['far', 'dials', 'listens'])
def test_a_link_goes_down_while_files_are_exchanged(cabled, tmp_path, root):
    """The exchange is retried without the link; bytes of files that have arrived are not sent again."""
    torus = cabled('3x3', data_roots=(str(tmp_path),))
    sizes = dict.fromkeys(random_sizes(9, 0), 300_000)
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/in-%r'
    result = cut_meanwhile(torus, source=source, target=target, rank=root)
    assert result['verified'] == 'digests'
    assert result['kept_bytes'] > 0
    check_target(target, sizes)
    wait_tidy(torus, tmp_path)
    listed = {x['id']: x['state'] for x in torus.status(root)['exchanges']}
    assert listed == {result['id']: 'committed'}  # earlier attempts are not reported
    wait_logged(torus.node(root).log, 'link 4:+1 to node 5 is down')
    torus.cable.mend()
    still_works(torus, rank=root, algorithm='direct')


def test_a_link_goes_down_in_a_session(cabled):
    """All repetitions use the routes that the result names."""
    torus = cabled('3x3')
    result = cut_meanwhile(torus, block_size=100_000, rank=8, options=['--repeat', '4'])
    assert result['verified'] == 'every byte' and result['repeat'] == 4, result
    torus.cable.mend()
    torus.wait_whole(30)
    torus.cable.cut_after(300_000)
    shown = torus.ctl(8, 'exchange', '--block-size', 300_000).stdout
    assert re.search('^without +link 4:[+]1$', shown, re.M), shown
    assert re.search('^reroutes +[1-9]$', shown, re.M), shown


def test_a_link_goes_down_before_a_barrier_is_complete(cabled):
    torus = cabled('3x3')
    clients = [Client(torus, 'barrier', rank=rank) for rank in range(8)]
    try:
        wait_for(lambda: all(torus.status(rank)['exchanges'] for rank in range(8)))
        torus.cable.cut_after(0)
        for rank in range(9):
            wait_for(lambda rank=rank: torus.status(rank)['whole'] is False, 30)
        assert all(client.process.poll() is None for client in clients)
        assert torus.ctl(8, 'barrier').returncode == 0
        for client in clients:
            code, _, err = client.end()
            assert code == 0, err
    finally:
        for client in clients:
            client.__exit__()
