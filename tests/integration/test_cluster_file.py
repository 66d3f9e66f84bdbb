"""The cluster file belongs to the people who edit it: torusctl discover --output adds to it what is new."""

import json
import os

import pytest

from support.users import as_user, copy_programs, open_folder
from torus_net.patience import run
from torus_net.process import find_program

FILE = '''; the lab on the second floor
[cluster]
dims = 4
encrypt = yes          ; the cables leave the room
data_roots = /data

[*]
+0 = right
-0 = left

[alpha]
rank = 0
ssh = root@10.0.0.1
[beta]                 ; since May
rank = 1

[gamma]
rank=2
-0 : old0              ; the card from 2019
[delta]
rank = 3
'''


def identity(name):
    return f'{sum(map(ord, name)):032x}'


class Room:
    """Machines and cables, and a cluster file about them."""

    def __init__(self, folder):
        self.found, self.file, self.hosts = folder / 'found.json', folder / 'cluster.ini', {}
        self.file.write_text(FILE)

    def cable(self, a, at_a, b, at_b):
        for here, at, there, other in ((a, at_a, b, at_b), (b, at_b, a, at_a)):
            self.hosts.setdefault(here, {}).setdefault(at, []).append({'host': there, 'interface': other})

    def ring(self, *names, ends=('right', 'left')):
        self.hosts = {}
        for name, following in zip(names, (*names[1:], names[0])):
            self.cable(name, ends[0], following, ends[1])

    def line(self, *names):
        self.hosts = {}
        for name, following in zip(names, names[1:]):
            self.cable(name, 'right', following, 'left')

    def rename(self, name, before, after):
        self.hosts[name][after] = self.hosts[name].pop(before)
        for interfaces in self.hosts.values():
            for heard in interfaces.values():
                for one in heard:
                    if (one['host'], one['interface']) == (name, before):
                        one['interface'] = after

    def discover(self, *options, trust='proved', names=None, text=False):
        names = names or {}
        self.found.write_text(json.dumps({'hosts': [
            {'name': names.get(name, name), 'id': identity(name), 'trust': trust,
             'interfaces': [{'name': at, 'heard': [{**one, 'host': names.get(one['host'], one['host']),
                                                    'id': identity(one['host'])} for one in heard]}
                            for at, heard in interfaces.items()]}
            for name, interfaces in self.hosts.items()]}))
        return run([find_program('torusctl'), *([] if text else ['--json']), 'discover', '--from', self.found, *options], 30)

    def merge(self, *options, **more):
        done = self.discover('--output', self.file, *options, **more)
        self.status, said = done.returncode, json.loads(done.stdout)
        return said.get('changes', said.get('error')), said.get('kept')

    def added(self):
        """The lines that were added to FILE. Fails unless all lines of FILE are still there, in their order."""
        before, lines = FILE.splitlines(), []
        for line in self.file.read_text().splitlines():
            if before and line == before[0]:
                before.pop(0)
            else:
                lines.append(line)
        assert not before, (before, self.file.read_text())
        return lines


@pytest.fixture
def room(tmp_path):
    made = Room(tmp_path)
    made.ring('alpha', 'beta', 'gamma', 'delta')
    made.rename('gamma', 'left', 'old0')
    return made


def test_nothing_but_what_is_new_changes(room):
    os.chmod(room.file, 0o640)
    if os.geteuid() == 0:
        os.chown(room.file, 4711, 4712)
    before = room.file.stat()
    changes, kept = room.merge()
    assert room.status == 0 and kept == [] and len(changes) == 4, (changes, kept)
    assert room.added() == [f'id = {identity(name)}' for name in ('alpha', 'beta', 'gamma', 'delta')]
    after = room.file.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    text = room.file.read_bytes()
    assert room.merge() == ([], []) and room.status == 0 and room.file.read_bytes() == text
    assert room.file.stat().st_ino == after.st_ino, 'the file is not written again'
    assert 'is up to date' in room.discover('--output', room.file, text=True).stdout


def test_only_certain_ids_are_written(room):
    assert room.merge(trust='open') == ([], []) and room.file.read_text() == FILE


def test_an_interface_has_another_name(room):
    room.rename('gamma', 'old0', 'new0')
    room.rename('beta', 'right', 'eth7')
    changes, kept = room.merge(trust='open')
    assert room.status == 0 and kept == []
    assert changes == ['beta has port +0 at eth7 now, not at right', 'gamma has port -0 at new0 now, not at old0']
    assert room.file.read_text() == FILE.replace('old0  ', 'new0  ').replace('rank = 1\n', 'rank = 1\n+0 = eth7\n')


def test_cables_that_are_plugged_in_otherwise(room):
    """The ranks stay if the cables allow that; the ports follow the cables."""
    room.ring('alpha', 'beta', 'gamma', 'delta', ends=('left', 'right'))
    changes, kept = room.merge(trust='open')
    assert room.status == 0 and kept == [] and 'alpha has port +0 at left now, not at right' in changes
    assert room.discover('--cluster', room.file, trust='open').returncode == 0
    text = room.file.read_text()
    room.ring('alpha', 'gamma', 'beta', 'delta')
    changes, kept = room.merge(trust='open')
    assert room.status == 1 and changes == [] and 'with other ranks only' in kept[0] and room.file.read_text() == text


def test_a_host_that_is_not_found_is_kept(room):
    room.line('delta', 'alpha', 'beta')
    room.rename('beta', 'left', 'eth7')
    changes, kept = room.merge(trust='open')
    assert room.status == 1 and kept == ['gamma (rank 2) was not found']
    assert changes == ['beta has port -0 at eth7 now, not at left'] and room.added() == ['-0 = eth7']
    said = room.discover('--output', room.file, trust='open', text=True).stdout
    assert 'gamma (rank 2) was not found' in said


def test_another_host_in_its_place(room):
    room.ring('alpha', 'beta', 'epsilon', 'delta')
    changes, kept = room.merge(trust='open')
    assert room.status == 1 and changes == [] and room.file.read_text() == FILE
    assert len(kept) == 1 and kept[0].startswith('epsilon is where gamma (rank 2) should be'), kept


def test_names_and_ids(room):
    room.file.write_text(FILE.replace('rank = 1\n', f'rank = 1\nid = {identity("beta")}\n')
                         .replace('rank = 3\n', f'rank = 3\nid = {"7" * 32}\n'))
    text = room.file.read_text()
    changes, kept = room.merge(trust='open', names={'beta': 'bravo'})
    assert room.status == 1 and changes == [] and room.file.read_text() == text
    assert kept[0].startswith('beta calls itself bravo now') and kept[1].startswith(f'delta has the id {"7" * 32} in the file, '
                                                                                 f'and {identity("delta")} here')


def test_a_torus_that_grows(room):
    room.ring('alpha', 'beta', 'gamma', 'delta', 'epsilon')
    room.rename('gamma', 'left', 'old0')
    changes, kept = room.merge(trust='open')
    assert room.status == 1 and changes == [] and room.file.read_text() == FILE
    assert len(kept) == 1 and 'the cables make 5 with 5 hosts, and the file has 4 with 4' in kept[0] and '--dims 5' in kept[0]
    differs = room.discover('--cluster', room.file, trust='open')
    assert differs.returncode == 1
    assert json.loads(differs.stdout)['differences'] == ['the cables make 5 with 5 hosts, and the file has 4 with 4']
    changes, kept = room.merge('--dims', '5', trust='open')
    assert room.status == 0 and kept == [], kept
    assert changes == ['the dimensions are 5 now, and were 4', 'epsilon is new, and has rank 4']
    assert room.file.read_text() == FILE.replace('dims = 4', 'dims = 5') + (
        f'\n[epsilon]\nrank = 4\n; found with the id {identity("epsilon")}\n+0 = right\n-0 = left\n')


def test_a_rank_that_the_owner_has_made_free(room):
    room.file.write_text(FILE.replace('dims = 4', 'dims = 5').replace('rank = 3', 'rank = 4'))
    room.ring('alpha', 'beta', 'gamma', 'epsilon', 'delta')
    room.rename('gamma', 'left', 'old0')
    text = room.file.read_text()
    changes, kept = room.merge()
    assert room.status == 0 and kept == [] and 'epsilon is new, and has rank 3' in changes
    assert room.file.read_text().endswith(f'[epsilon]\nrank = 3\nid = {identity("epsilon")}\n+0 = right\n-0 = left\n')
    assert 'rank = 4\n' in text


def test_ranks_change_only_with_new_dimensions(room):
    room.ring('alpha', 'epsilon', 'beta', 'gamma', 'delta')
    room.rename('gamma', 'left', 'old0')
    changes, kept = room.merge('--dims', '5', trust='open')
    assert room.status == 0 and kept == []
    assert any('epsilon is new' in change for change in changes) and any('now, not' in change for change in changes), changes
    assert room.discover('--cluster', room.file, trust='open').returncode == 0
    assert 'encrypt = yes          ; the cables leave the room' in room.file.read_text()


def test_hosts_in_the_order_of_ranks_get_ranks_where_that_is_needed(room):
    room.file.write_text('[cluster]\ndims = 3m\n[alpha]\n+0 = right\n[beta]\n-0 = left\n+0 = right\n[gamma]\n-0 = left\n')
    room.line('alpha', 'beta', 'gamma', 'delta')
    changes, kept = room.merge('--dims', '4m', trust='open')
    assert room.status == 0 and kept == [] and 'rank' not in room.file.read_text() and 'delta is new, and has rank 3' in changes
    room.file.write_text('[cluster]\ndims = 4m\n[alpha]\n+0 = right\n[beta]\n-0 = left\n+0 = right\n')
    room.line('alpha', 'beta', 'gamma')
    room.merge(trust='open')
    assert room.status == 1 and 'rank' not in room.file.read_text() and '[gamma]' in room.file.read_text()
    room.file.write_text('[cluster]\ndims = 3m\n[alpha]\n+0 = right\n[beta]\n-0 = left\n+0 = right\n[gamma]\n-0 = left\n')
    room.line('omega', 'alpha', 'beta', 'gamma')
    changes, kept = room.merge('--dims', '4m', trust='open')
    assert room.status == 0 and kept == []
    assert room.discover('--cluster', room.file, trust='open').returncode == 0


def test_a_file_with_hosts_only(room):
    room.file.write_text('[cluster]\nencrypt = yes\n[alpha]\nssh = root@10.0.0.1\n[delta]\n[gamma]\n[beta]')
    changes, kept = room.merge(trust='open')
    assert room.status == 0 and kept == [] and changes[0] == 'the dimensions are 4 now'
    text = room.file.read_text()
    assert text.startswith('[cluster]\nencrypt = yes\ndims = 4\n[alpha]\nssh = root@10.0.0.1\n')
    assert [line[1:-1] for line in text.splitlines() if line[0] == '['] == ['cluster', 'alpha', 'delta', 'gamma', 'beta']
    assert room.discover('--cluster', room.file, trust='open').returncode == 0
    room.file.write_text('; nothing yet\n')
    room.merge(trust='open')
    assert room.status == 0 and room.file.read_text().startswith('; nothing yet\n\n[cluster]\ndims = 4\n\n[alpha]\n')


def test_bytes_that_people_do_not_see_stay(room):
    room.file.write_bytes(b'\xef\xbb\xbf' + FILE.replace('\n', '\r\n').encode())
    room.rename('beta', 'right', 'eth7')
    room.merge(trust='open')
    assert room.status == 0
    assert room.file.read_bytes() == b'\xef\xbb\xbf' + FILE.replace('\n', '\r\n').replace(
        'rank = 1\r\n', 'rank = 1\r\n+0 = eth7\r\n').encode()


def test_a_link_is_followed(room, tmp_path):
    real = tmp_path / 'real.ini'
    room.file.rename(real)
    room.file.symlink_to('real.ini')
    room.merge()
    assert room.status == 0 and room.file.is_symlink() and f'id = {identity("beta")}' in real.read_text()


@pytest.mark.parametrize('before, after, says', [
    ('dims = 4', 'dims = 4\ndims = 5', ':4: dims is given twice'), ('[gamma]', '[gamma', ':17: "[gamma" has no "]"'),
    ('rank=2', 'rank=1', 'both have rank 1'), ('[*]', 'colour = red\n[*]', ':7: unknown setting "colour"')])
def test_a_file_that_cannot_be_read_is_refused(room, before, after, says):
    room.file.write_text(FILE.replace(before, after))
    text = room.file.read_text()
    error, _ = room.merge()
    assert room.status == 2 and says in error['text'] and room.file.read_text() == text, error


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can run commands as other users')
def test_a_file_keeps_its_owner_or_is_left_as_it_is(room):
    """Another user may write to it, but could not give the new file to its owner."""
    room.merge(trust='open')
    with open_folder() as folder:
        torusctl, = copy_programs(folder, 'torusctl')
        folder.chmod(0o777)
        file, found = folder / 'cluster.ini', folder / 'found.json'
        file.write_text(FILE)
        file.chmod(0o666)
        found.write_text(room.found.read_text().replace('"open"', '"proved"'))
        found.chmod(0o644)
        done = run([*as_user(65534), *torusctl, 'discover', '--from', found, '--output', file], 30)
        assert done.returncode == 1 and f'cannot write {file}' in done.stderr, done.stdout + done.stderr
        assert file.read_text() == FILE and file.stat().st_uid == 0
        assert {path.name for path in folder.iterdir() if 'cluster' in path.name} == {'cluster.ini'}


def test_comparing_and_changing_exclude_each_other(room):
    done = room.discover('--cluster', room.file, '--output', room.file)
    assert done.returncode == 2 and '--output' in done.stdout
