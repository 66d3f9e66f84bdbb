"""torusctl init is killed at any step, on the side that asks or on a host: the same command finishes, and no host is locked
out meanwhile. With --kill-seeds FIRST:COUNT, at other and more steps."""

import fcntl
import itertools
import os
import random
import re
import shutil
from pathlib import Path

import pytest

from support.setups import Bench, torusctl, with_torusd
from torus_net.process import find_program

HOSTS = 'alpha', 'beta', 'gamma'
LIBRARY = Path(find_program('torusctl')).parent / 'tests' / 'support' / 'libkill_point.so'
pytestmark = pytest.mark.plain  # thousands of short programs

KEY = re.compile('[0-9a-f]{64}')

# The receiving torusctl gets a number, and a step at which it is killed, if it is the one.
RECEIVER = '''exec 9>>{folder}/running
flock -s 9
number=$(flock {folder}/count sh -c 'echo x >>{folder}/count; wc -l <{folder}/count')
point=0
[ "$number" -ne "$(cat {folder}/victim)" ] || point=$(cat {folder}/point)
KILL_POINT=$point KILL_POINT_LOG={folder}/steps-$number LD_PRELOAD=$KILL_POINT_LIBRARY '''


def first(killed):
    """The first setup of all hosts."""
    for host in HOSTS:
        shutil.rmtree(killed.bench.folder / host / 'etc/torusd')
        (killed.bench.folder / host / 'etc/hosts').write_text('127.0.0.1 localhost\n')
    killed.bench.folder.joinpath('key').unlink()
    return ()


def settings(killed):
    killed.edit('link_mbit = 1000', 'link_mbit = 2500\nencrypt = yes')
    return ()


def removed(killed):
    killed.edit('dims = 3', 'dims = 2m')
    killed.edit('[*]\n+0 = eth1\n-0 = eth2\n', '')
    killed.edit('[alpha]\n', '[alpha]\n+0 = eth1\n')
    killed.edit('[beta]\n', '[beta]\n-0 = eth2\n')
    killed.edit('[gamma]\n-0 = eth3\n', '')
    return ()


def added(killed):
    """gamma joins alpha and beta."""
    text = killed.bench.file.read_text()
    first(killed)
    removed(killed)
    assert killed.run().returncode == 0
    killed.bench.file.write_text(text)
    return ()


def renamed(killed):
    killed.edit('[gamma]\n', '[delta]\nssh = root@gamma\n')
    return ()


def new_key(killed):
    return ('--new-key',)


def new_key_of_a_host(killed):
    """The key file of the side that asks is that of a host."""
    key = killed.bench.folder / 'key'
    key.unlink()
    key.symlink_to(killed.bench.folder / 'alpha/etc/torusd/cluster.key')
    return ('--new-key',)


class Killed:
    """A bench, of which each try begins with the same files."""

    def __init__(self, folder, change):
        (folder / 'bench').mkdir()
        self.bench, self.start = Bench(folder / 'bench'), folder / 'start'
        self.write('running', '')
        call = f'{find_program("torusctl")} "$@"'
        script = self.bench.ssh.read_text()
        assert script.count(call) == 1
        script = script.replace(call, RECEIVER.format(folder=self.bench.folder) + call)
        self.bench.ssh.write_text(script.replace('*) host=$target', 'root@gamma) host=gamma ;; *) host=$target'))
        assert self.run().returncode == 0
        self.options = change(self)
        shutil.copytree(self.bench.folder, self.start, symlinks=True)
        self.before = self.files()
        done = self.run(*self.options)
        assert done.returncode == 0, done.stderr
        self.after = self.files()
        self.steps = {}  # by side and kind
        for path in sorted(self.bench.folder.glob('steps-*')):
            who = path.name.partition('-')[2]
            for step, kind in enumerate(path.read_text().split(), 1):
                self.steps.setdefault('asker' if who == 'asker' else 'host', {}).setdefault(kind, []).append((who, step))

    def choose(self, draw):
        """A step: of each kind the same number, as most of them only wait."""
        return draw.choice(draw.choice(list(draw.choice(list(self.steps.values())).values())))

    def write(self, name, text):
        (self.bench.folder / name).write_text(f'{text}\n')

    def edit(self, before, after):
        text = self.bench.file.read_text()
        assert before in text, text
        self.bench.file.write_text(text.replace(before, after))

    def run(self, *options, who='', point=0):
        """The command, which is killed at a step of the side that asks ('asker'), or of a receiver, given by number."""
        for path in self.bench.folder.glob('steps-*'):
            path.unlink()
        (self.bench.folder / 'count').write_text('')
        self.write('victim', who if who.isdigit() else 0)
        self.write('point', point)
        done = torusctl('init', self.bench.file, '--ssh', '--ssh-program', self.bench.ssh, '--key', self.bench.folder / 'key',
                        '--no-wait', '--yes', *options, env={
                            **with_torusd(), 'LD_PRELOAD': str(LIBRARY), 'KILL_POINT_LIBRARY': str(LIBRARY),
                            'ASAN_OPTIONS': f'{os.environ.get("ASAN_OPTIONS", "")}:verify_asan_link_order=0',
                            'KILL_POINT_PROGRAM': 'torusctl', 'KILL_POINT': str(point if who == 'asker' else 0),
                            'KILL_POINT_LOG': str(self.bench.folder / 'steps-asker')})
        with open(self.bench.folder / 'running', 'rb') as running:
            fcntl.flock(running, fcntl.LOCK_EX)  # the hosts go on after the side that asks is gone
        return done

    def again(self):
        shutil.rmtree(self.bench.folder)
        shutil.copytree(self.start, self.bench.folder, symlinks=True)

    def files(self):
        """The files of the hosts, without their keys."""
        return {path.relative_to(self.bench.folder): KEY.sub('KEY', path.read_text()) for host in HOSTS
                for path in (self.bench.folder / host).rglob('*') if path.is_file()}

    def keys(self):
        return {host: {key for path in (self.bench.folder / host / 'etc/torusd').glob('*.key')
                       for key in KEY.findall(path.read_text())} for host in HOSTS}

    def check_meanwhile(self):
        """Each file is the former or the new one, and hosts that have keys have one in common."""
        for path, text in self.files().items():
            assert text in (self.before.get(path), self.after.get(path)) or path.suffix == '.torusd-new' or (
                path.name == 'second.key' and text == 'torusd-key-1 KEY\n'), (path, text)
        keys = [held for held in self.keys().values() if held]
        assert all(a & b for a, b in itertools.combinations(keys, 2)), self.keys()

    def check_end(self):
        assert self.files() == self.after
        keys = set.union(*self.keys().values())
        assert keys == {KEY.search(self.bench.key())[0]}, self.keys()


@pytest.fixture
def seeds(request):
    begin, _, count = request.config.getoption('--kill-seeds').partition(':')
    return range(int(begin), int(begin) + int(count))


@pytest.mark.parametrize('change', [
    first, new_key, *(pytest.param(change, marks=pytest.mark.full)
                      for change in (settings, added, removed, renamed, new_key_of_a_host))])
def test_the_same_command_finishes(tmp_path, change, seeds):
    killed, interrupted = Killed(tmp_path, change), 0
    for seed in seeds:
        who, point = killed.choose(random.Random(f'{change.__name__} {seed}'))
        killed.again()
        stopped = killed.run(*killed.options, who=who, point=point)
        interrupted += stopped.returncode != 0
        try:
            killed.check_meanwhile()
            done = killed.run(*killed.options)
            assert done.returncode == 0, done.stderr
            killed.check_end()
        except AssertionError as e:
            raise AssertionError(f'seed {seed}: {who} killed at step {point}: {stopped.stderr}') from e
    assert interrupted > len(seeds) // 2, {side: {kind: len(steps) for kind, steps in kinds.items()}
                                           for side, kinds in killed.steps.items()}
