"""scripts/bench --copy: orders of nodes, trees and torrents, without a network."""

import hashlib
import re
import shutil

import pytest
from bench import copy_peers, copy_trees, torrent
from support.compare_trees import differences
from torus_net import Geometry


def test_a_chain_visits_neighbours():
    for dims in '4', '4x4', '3x5', '2x3x4':
        geometry = Geometry(dims)
        nodes = copy_peers.chain(geometry)
        assert nodes[0] == 0 and sorted(nodes) == list(range(geometry.nodes))
        for here, there in zip(nodes, nodes[1:]):
            assert there in [geometry.neighbour(here, port) for port in geometry.ports(here)], dims


def test_a_tree_reaches_all_nodes():
    assert copy_peers.children(Geometry('4')) == {0: [1, 3], 1: [2]}
    below = copy_peers.children(Geometry('4x4'))
    assert sorted(rank for ranks in below.values() for rank in ranks) == list(range(1, 16))


class Recorder(copy_peers.Bed):
    """Starts nothing, and notes what would have been started."""

    def __init__(self, folder):
        self.geometry, self.base, self.folder, self.others, self.started = Geometry('4'), folder, folder, range(1, 4), set()

    def address(self, rank):
        return f'10.0.0.{rank}'

    def start(self, rank, *command, output=None):
        scripts = [text for text in map(str, command) if ' ' in text]  # of a shell
        self.started |= {command[0], *(re.match(r'\S+', part)[0] for text in scripts for part in re.split('[|;&] +', text))}

    run = start

    def end(self, process, what):
        pass

    wait_listening = end


WAYS = [way for way in copy_peers.all_ways() if way.programs and not isinstance(way, copy_peers.Aria2)]


@pytest.mark.parametrize('way', WAYS, ids=lambda way: way.name)
def test_a_way_needs_all_programs_that_it_starts(tmp_path, monkeypatch, way):
    bed = Recorder(tmp_path)
    monkeypatch.setattr(copy_peers.subprocess, 'run', lambda command, **_: bed.start(0, *command))
    monkeypatch.setattr(copy_peers.Path, 'mkdir', lambda *_, **__: None)  # /run/sshd
    way.prepare(bed)
    way.run(bed, tmp_path)
    assert bed.started - {'wait'} <= set(way.programs), bed.started
    which = shutil.which
    for program in way.programs:
        monkeypatch.setattr(copy_peers.shutil, 'which', lambda name, program=program: name != program and (which(name) or name))
        said = []
        assert copy_peers.installed([way], said.append) == [] and f'{program} is not installed' in said[0]


def test_trees_change_by_one_per_cent(tmp_path):
    for kind, size, files in ('file', 1 << 20, 0), ('environment', 0, 400), ('cache', 1 << 20, 20):
        made = copy_trees.make(kind, tmp_path / kind, size=size, files=files)
        old, new = made.path(copy_trees.OLD), made.path(copy_trees.NEW)
        assert differences(old, new, only={'contents'}) and 0 < made.changed < made.bytes / 10
        assert not differences(old, new, only={'kinds', 'texts', 'modes'})
        again = copy_trees.make(kind, tmp_path / 'again' / kind, size=size, files=files)
        assert not differences(new, again.path(copy_trees.NEW), only={'contents'})
        target = tmp_path / f'{kind}-target'
        copy_trees.reset(made, copy_trees.OLD, target)
        assert not differences(old, target, only={'kinds', 'texts', 'modes', 'contents'})
        copy_trees.reset(made, None, target)
        assert not target.exists()


def test_a_torrent(tmp_path):
    assert torrent.bencoded({'b': [1, b'xy'], 'a': 'z'}) == b'd1:a1:z1:bli1e2:xyee'
    (tmp_path / 'tree').mkdir()
    content = bytes(range(256)) * 2000
    (tmp_path / 'tree' / 'a').write_bytes(content[:1000])
    (tmp_path / 'tree' / 'b').write_bytes(content[1000:])
    (tmp_path / 'tree' / 'c').symlink_to('a')
    torrent.write_torrent(tmp_path / 'file', tmp_path / 'tree', 'http://x/')
    text = (tmp_path / 'file').read_bytes()
    digests = b''.join(hashlib.sha1(content[at:at + torrent.PIECE]).digest()
                       for at in range(0, len(content), torrent.PIECE))
    assert b'6:pieces%d:%s' % (len(digests), digests) in text and text.count(b'6:lengthi') == 2
