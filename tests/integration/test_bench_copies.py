"""scripts/bench --copy: orders of nodes, trees and torrents, without a network."""

import hashlib

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
