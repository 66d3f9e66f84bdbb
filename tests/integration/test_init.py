"""torusctl init: the files of each host, the two-step way to all hosts, and the change of the key."""

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.setups import CLUSTER, SSH, Bench, torusctl, with_torusd
from torus_net import find_program, patience


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def settings(text):
    return dict(re.findall(r'^(\S+) = (.*)$', text, re.M))


def test_the_files_of_a_host(bench):
    done = bench.here('gamma', '--yes')
    assert done.returncode == 0, done.stderr
    config = settings(bench.read('gamma', 'torusd/torusd.ini'))
    assert config['dims'] == '3' and config['rank'] == '2' and config['link_mbit'] == '1000'
    assert config['+0'] == '[fe80::b%eth1]:7411' and config['-0'] == '[fe80::b%eth3]:7411'
    assert bench.read('gamma', 'torusd/links') == 'eth1 fe80::a/64\neth3 fe80::b/64\n'
    assert bench.read('gamma', 'hosts').startswith('127.0.0.1 localhost\n# BEGIN torusd')
    assert re.findall(r'^(10\S+) (\w+)$', bench.read('gamma', 'hosts'), re.M) == [
        ('10.128.0.1', 'alpha'), ('10.128.0.2', 'beta'), ('10.128.0.3', 'gamma')]
    assert 'dev eth3' in bench.read('gamma', 'torusd/routes.sh')
    key = bench.folder / 'gamma/etc/torusd/cluster.key'
    assert key.read_text() == bench.key() and key.stat().st_mode & 0o777 == 0o600
    assert bench.read('gamma', 'torusd/cluster.ini') == bench.file.read_text()
    again = bench.here('gamma', '--yes')
    assert again.returncode == 0 and 'up to date' in again.stdout


def test_rates_of_cables(bench):
    """A rate that is given at one end holds at both; an own one comes before those of all hosts."""
    bench.file.write_text(bench.file.read_text().replace('[gamma]\n', '[gamma]\n+0.link_mbit = 2.5/20\n')
                          .replace('-0 = eth2\n', '-0 = eth2\n+0.link_mbit = 500\n'))
    rates = {}
    for host in 'alpha', 'beta', 'gamma':
        assert bench.here(host, '--yes').returncode == 0
        config = settings(bench.read(host, 'torusd/torusd.ini'))
        rates[host] = config['+0.link_mbit'], config['-0.link_mbit']
        checked = subprocess.run([find_program('torusd'), '--check', '--config', bench.folder / host / 'etc/torusd/torusd.ini'],
                                 capture_output=True, text=True)
        assert 'link_mbit' not in checked.stderr
    assert rates == {'alpha': ('500', '20/2.5'), 'beta': ('500', '500'), 'gamma': ('2.5/20', '500')}


def install_routed(bench, host):
    program = bench.folder / host / 'usr/sbin/torus-routed'
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\n')
    program.chmod(0o755)


def test_torus_routed_gets_addresses_instead_of_a_script(bench):
    install_routed(bench, 'beta')
    for host in 'alpha', 'beta':
        assert bench.here(host, '--yes').returncode == 0
    assert (bench.folder / 'alpha/etc/torusd/routes.sh').exists()
    assert not (bench.folder / 'alpha/etc/torusd/addresses').exists()
    assert not (bench.folder / 'beta/etc/torusd/routes.sh').exists()
    lines = [re.fullmatch(r'(10\.128\.0\.\d),(fd[0-9a-f:]*::\d) (\w+)', line).groups()
             for line in bench.read('beta', 'torusd/addresses').splitlines()]
    assert [(v4, name) for v4, _, name in lines] == [('10.128.0.1', 'alpha'), ('10.128.0.2', 'beta'),
                                                     ('10.128.0.3', 'gamma')]
    assert len({v6.rpartition(':')[0] for _, v6, _ in lines}) == 1
    for v4, v6, name in lines:
        assert f'{v4} {name}\n{v6} {name}\n' in bench.read('beta', 'hosts')
    install_routed(bench, 'alpha')  # later, by an upgrade
    assert bench.here('alpha', '--yes').returncode == 0
    assert not (bench.folder / 'alpha/etc/torusd/routes.sh').exists()
    assert bench.read('alpha', 'torusd/addresses') == bench.read('beta', 'torusd/addresses')


def test_ipv6_addresses_stay_when_the_key_changes(bench):
    for host in 'alpha', 'beta', 'gamma':
        install_routed(bench, host)
    assert bench.all('--yes').returncode == 0
    before, key = bench.read('beta', 'torusd/addresses'), bench.key()
    assert ',fd' in before
    assert bench.all('--new-key', '--yes').returncode == 0
    assert bench.read('beta', 'torusd/addresses') == before and bench.key() != key
    bench.file.write_text(bench.file.read_text().replace('[alpha]', '[other]'))
    assert bench.here('beta', '--yes').returncode == 0
    assert bench.read('beta', 'torusd/addresses').partition(',')[2][:12] != before.partition(',')[2][:12]


# The interface and its route, and the warning.
@pytest.mark.hosts  # needs root
@pytest.mark.parametrize('commands,says', [
    ('ip addr add 10.128.0.77/24 dev lan', '10.128.0.1 of alpha is in the network 10.128.0.0/24, .* over lan: '),
    ('ip route add 10.128.0.2/31 dev lan', '10.128.0.2 of beta is in the network 10.128.0.2/31, .* over lan: '),
    ('ip addr add 10.9.0.1/24 dev lan; ip route add 10.128.0.0/16 nexthop via 10.9.0.2 nexthop via 10.9.0.3',
     '10.128.0.1 of alpha is in the network 10.128.0.0/16, .* over lan: '),
    ('ip -6 addr add fd00:1::77/120 dev lan nodad', 'fd00:1::1 of alpha is in the network fd00:1::/120, .* over lan: '),
    ('ip addr add 10.128.0.4/30 dev lan; ip route add 10.128.0.2/31 dev lan proto 84', None),
    ('ip addr add 10.129.0.1/16 dev lan; ip route add default dev lan', None),
    ('ip link set lan name eth1; ip link set eth1 up; ip addr add 10.128.0.77/24 dev eth1', None)])
def test_addresses_that_a_network_has_already(bench, commands, says):
    bench.file.write_text(bench.file.read_text().replace('[cluster]\n', '[cluster]\naddress6 = fd00:1::1\n'))
    script = ('set -e; ip link add lan type veth peer name other; ip link set other up; ip link set lan up; '
              f'{commands}; shift; "$@"')
    done = subprocess.run(['unshare', '--net', 'sh', '-c', script, 'sh', 'init', find_program('torusctl'), 'init', bench.file,
                           '--here', '--host', 'beta', '--key', bench.folder / 'key', '--dry-run'],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, env=with_torusd())
    assert done.returncode == 0, done.stderr
    overlaps = re.findall('warning: the address (.*)', done.stdout)
    assert len(overlaps) == (1 if says else 0), done.stdout
    if says:
        assert re.match(says, overlaps[0]) and 'in [cluster]' in overlaps[0]


# A host with the user torusd and data roots of its own.
HOST = '''set -eu
sed '/^torusd:/d' /etc/passwd >{folder}/passwd && echo torusd:x:4711:4711::/:/bin/false >>{folder}/passwd
sed '/^torusd:/d' /etc/group >{folder}/group && echo torusd:x:4711: >>{folder}/group && echo more:x:4712:torusd >>{folder}/group
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/group /etc/group
mount -t tmpfs none /srv
mkdir -m 755 /srv/torusd /srv/roots /srv/group /srv/closed /srv/closed/open /srv/reading
chown torusd: /srv/torusd /srv/closed/open
chown :more /srv/group && chmod 775 /srv/group
chmod 700 /srv/closed
mount --bind -o ro /srv/reading /srv/reading
shift
"$@"
'''


DRY = 'init {bench.file} --here --host beta --key {bench.folder}/key --dry-run'


def on_a_host(bench, *command):
    return subprocess.run(['unshare', '--mount', 'sh', '-c', HOST.format(folder=bench.folder), 'sh', 'init', *command],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, env=with_torusd())


@pytest.mark.hosts  # needs root
@pytest.mark.parametrize('roots, says', [
    ('/srv/torusd', None), ('/srv/group:/srv/reading', None),
    ('/srv/torusd:/srv/not there', "data root /srv/not there does not exist: 'install -d -o torusd -g torusd DIR'"),
    ('/srv/torusd:/srv/roots', "data root /srv/roots: the user torusd cannot write there. Give it the folder "
                               "('chown torusd: DIR')"),
    ('/srv/closed/open', 'data root /srv/closed/open cannot be opened: Permission denied')])
def test_a_dry_run_refuses_data_roots_that_torusd_cannot_use(bench, roots, says):
    bench.file.write_text(bench.file.read_text().replace(f'= {bench.folder}\n', f'= {roots}\n'))
    done = on_a_host(bench, find_program('torusctl'), *DRY.format(bench=bench).split())
    assert done.returncode == (1 if says else 0), done.stderr
    assert (says or '') in done.stderr, done.stderr
    assert not (bench.folder / 'key').exists()


@pytest.mark.hosts  # needs root
@pytest.mark.parametrize('before, after', [('/srv/link', None), ('/srv/torusd:/srv/link', None),
                                           ('/srv/torusd', '/srv/link'), ('/srv/link/x:/srv/lin', '/srv/link'),
                                           ('/srv/roots', '/srv/link')])
def test_a_data_root_that_the_host_has_already_refuses_no_other_change(bench, before, after):
    """torusd cannot write there, with this change as without it."""
    bench.file.write_text(bench.file.read_text().replace(f'= {bench.folder}\n', '= /srv/torusd:/srv/link\n'))
    done = on_a_host(bench, 'sh', '-ec', '''
        ln -s roots /srv/link
        mount -t tmpfs none /mnt
        mkdir /mnt/upper /mnt/work
        mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work none /etc
        cp "$2/passwd" "$2/group" /etc
        mkdir -p /etc/torusd
        echo "data_roots = $1" >/etc/torusd/torusd.ini
        shift 2
        exec "$@"''', 'sh', before, bench.folder, find_program('torusctl'), *DRY.format(bench=bench).split())
    said = ("data root /srv/link: the user torusd cannot write there. Give it the folder ('chown torusd: DIR'), or mount it "
            'read-only if torusd only has to read there')
    assert done.returncode == (1 if after else 0), done
    assert (said in done.stderr) == bool(after) and (f'  warning: {said}\n' in done.stdout) == (not after), done


def test_an_image_is_checked_like_a_host(bench):
    """Data roots and groups are those of the image, also where this host has others."""
    def refuses(line, *words):
        bench.file.write_text(CLUSTER.format(data=bench.folder).replace('link_mbit = 1000', line))
        before = bench.files()
        done = bench.here('beta', '--yes')
        assert done.returncode == 1 and all(word in done.stderr for word in words), done
        assert bench.files() == before
    data = bench.data_root('beta')
    refuses('heartbeat_ms = often', 'does not accept', 'often')
    refuses('exchange_group = root', 'no group "root"', f'{bench.folder}/beta/etc/group')
    (bench.folder / 'beta/etc/group').write_text('staff:x:50:\nimage-only:x:77:\n')
    data.rmdir()
    refuses('', f'data root {data} does not exist')
    data.write_text('')
    refuses('', 'not a folder')
    data.unlink()
    data.symlink_to(bench.folder)
    refuses('', 'leads to')
    data.unlink()
    data.mkdir()
    bench.file.write_text(CLUSTER.format(data=bench.folder).replace('link_mbit = 1000', 'exchange_group = image-only'))
    assert bench.here('beta', '--yes').returncode == 0


@pytest.mark.parametrize('value,third', [('no', '10.128.0.3 gamma'), ('fd00:1::ff', '10.128.0.3,fd00:1::101 gamma')])
def test_ipv6_addresses_can_be_chosen(bench, value, third):
    install_routed(bench, 'beta')
    bench.file.write_text(bench.file.read_text().replace('[cluster]\n', f'[cluster]\naddress6 = {value}\n'))
    assert bench.here('beta', '--yes').returncode == 0
    assert bench.read('beta', 'torusd/addresses').splitlines()[2] == third


@pytest.mark.parametrize('value', ['yes', 'fe80::1', '::1', '10.0.0.1', 'ff02::1', 'fd00::ffff:ffff'])
def test_impossible_ipv6_addresses(bench, value):
    bench.file.write_text(bench.file.read_text().replace('[cluster]\n', f'[cluster]\naddress6 = {value}\n'))
    done = bench.here('beta', '--yes')
    assert done.returncode == 2 and 'address6' in done.stderr


def test_torusd_accepts_the_configuration(bench):
    assert bench.here('alpha', '--yes').returncode == 0
    config = bench.folder / 'alpha/etc/torusd/torusd.ini'
    done = subprocess.run([find_program('torusd'), '--check', '--config', config], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    config.write_text(config.read_text().replace('rank = 0', 'rank = 7'))
    done = subprocess.run([find_program('torusd'), '--check', '--config', config], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr


def test_the_block_of_names_is_replaced_where_it_stands(bench):
    assert bench.here('beta', '--yes').returncode == 0
    hosts = bench.folder / 'beta/etc/hosts'
    hosts.write_text(hosts.read_text() + '10.9.9.9 printer\n')
    bench.file.write_text(bench.file.read_text().replace('[beta]\n', '[beta]\naddress = 10.7.0.1\n'))
    assert bench.here('beta', '--yes').returncode == 0
    text = hosts.read_text()
    assert text.startswith('127.0.0.1 localhost\n# BEGIN') and text.endswith('# END torusd\n10.9.9.9 printer\n')
    assert '10.7.0.1 beta' in text and '10.128.0.2' not in text and text.count('BEGIN torusd') == 1
    hosts.write_text(text.replace('# END torusd\n', ''))
    done = bench.here('beta', '--yes')
    assert done.returncode == 1 and 'etc/hosts' in done.stderr and 'by hand' in done.stderr


def test_the_block_of_names_is_found_however_its_lines_end(bench):
    hosts = bench.folder / 'beta/etc/hosts'
    assert bench.here('beta', '--yes').returncode == 0
    text = hosts.read_text()
    hosts.write_bytes(text.replace('\n', '\r\n').encode())
    assert bench.here('beta', '--yes').returncode == 0
    assert hosts.read_bytes() == text.replace('localhost\n', 'localhost\r\n').encode()
    hosts.write_bytes(text.rstrip('\n').encode())
    assert bench.here('beta', '--yes').returncode == 0
    assert hosts.read_text() == text
    hosts.write_text(text.replace('# BEGIN', '## BEGIN'))  # a marker begins its line
    assert bench.here('beta', '--yes').returncode == 0
    assert hosts.read_text().count('\n# BEGIN torusd') == 1


def test_the_file_of_names_stays_what_it_is(bench):
    """It belongs to others: a link to it, its mode and its owner."""
    hosts, target = bench.folder / 'beta/etc/hosts', bench.folder / 'beta/etc/hosts.real'
    hosts.rename(target)
    hosts.symlink_to('hosts.real')
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, 4, 7)
    before = target.stat()
    assert bench.here('beta', '--yes').returncode == 0
    after = target.stat()
    assert hosts.is_symlink() and 'BEGIN torusd' in target.read_text()
    assert [(at.st_mode, at.st_uid, at.st_gid) for at in (before, after)].count(
        (after.st_mode, after.st_uid, after.st_gid)) == 2 and after.st_mode & 0o777 == 0o640
    # A link that leads out of an image would change this host.
    outside = bench.folder / 'outside'
    outside.write_text('')
    hosts.unlink()
    hosts.symlink_to(outside)
    assert bench.here('beta', '--yes').returncode == 1 and not outside.read_text() and hosts.is_symlink()


def test_all_hosts_by_ssh(bench):
    before = bench.files()
    shown = bench.all('--dry-run')
    assert shown.returncode == 0 and bench.files() == before and not (bench.folder / 'key').exists()
    assert shown.stdout.count('torusd.ini') >= 3 and '+rank = 2' in shown.stdout
    asked = bench.all()
    assert asked.returncode == 1 and '--yes' in asked.stderr and bench.files() == before
    done = bench.all('--yes', '--json')
    assert done.returncode == 0, done.stderr
    rows = {row['host']: row for row in json.loads(done.stdout)['hosts']}
    assert {host: row['result'] for host, row in rows.items()} == dict.fromkeys(('alpha', 'beta', 'gamma'), 'changed')
    assert {bench.read(host, 'torusd/cluster.key') for host in rows} == {bench.key()}
    assert [settings(bench.read(host, 'torusd/torusd.ini'))['rank'] for host in sorted(rows)] == ['0', '1', '2']
    secret = bench.key().split()[1]
    assert secret not in shown.stdout + asked.stdout + done.stdout + done.stderr
    calls = (bench.folder / 'calls').read_text().splitlines()
    assert 'admin@10.0.0.3 sudo -n torusctl --json init --receive apply' in calls


def test_a_host_that_fails_lets_nothing_change(bench):
    (bench.folder / 'fail-gamma').touch()
    before = bench.files()
    done = bench.all('--yes')
    assert done.returncode == 1 and 'gamma: no route to gamma' in done.stderr and 'nothing was changed' in done.stderr
    assert bench.files() == before


def test_any_two_hosts_have_a_key_in_common_while_it_changes(bench):
    assert bench.all('--yes').returncode == 0
    first = bench.key()
    (bench.folder / 'keys').unlink()
    done = bench.all('--yes', '--new-key')
    assert done.returncode == 0, done.stderr
    for line in (bench.folder / 'keys').read_text().splitlines():
        hosts = [set(re.findall(r'[0-9a-f]{64}', part)) for part in line.split('|')[:3]]
        assert all(a & b for a, b in itertools.combinations(hosts, 2)), line
    assert bench.key() != first and not (bench.folder / 'key.next').exists()
    for host in ('alpha', 'beta', 'gamma'):
        assert bench.read(host, 'torusd/cluster.key') == bench.key()
        assert not (bench.folder / host / 'etc/torusd/second.key').exists()


@pytest.mark.skipif(os.geteuid() != 0, reason='only root gives files away')
def test_the_file_of_a_changed_key_keeps_its_owner(bench):
    assert bench.all('--yes').returncode == 0
    first = bench.key()
    os.chown(bench.folder / 'key', 4711, 4712)
    assert bench.all('--yes', '--new-key').returncode == 0
    after = (bench.folder / 'key').stat()
    assert (after.st_uid, after.st_gid, after.st_mode & 0o777) == (4711, 4712, 0o600) and bench.key() != first


def test_an_interrupted_change_of_the_key_goes_on(bench):
    assert bench.all('--yes').returncode == 0
    first = bench.key()
    # beta answers in the first round, and fails while the others have been told of the next key.
    bench.ssh.write_text(bench.ssh.read_text().replace(
        'shift\n' + find_program('torusctl'),
        f'shift\n[ "$host/$*" != "beta/--json init --receive apply" ] || {{ touch {bench.folder}/fail-beta; exit 1; }}\n'
        + find_program('torusctl')))
    done = bench.all('--yes', '--new-key')
    assert done.returncode == 1 and 'not complete' in done.stderr
    following = bench.key('key.next')
    assert (bench.folder / 'alpha/etc/torusd/second.key').stat().st_mode & 0o777 == 0o600
    assert bench.read('alpha', 'torusd/second.key') == following and bench.key() == first
    bench.ssh.write_text(SSH.format(folder=bench.folder, torusctl=find_program('torusctl')))
    (bench.folder / 'fail-beta').unlink()
    assert bench.all('--yes', '--new-key').returncode == 0
    assert {bench.read(host, 'torusd/cluster.key') for host in ('alpha', 'beta', 'gamma')} == {following}
    assert bench.key() == following


def test_a_change_of_the_key_goes_on_from_a_host_that_has_both(bench):
    """Its key file is used through a link. beta was interrupted between its two files, and has the previous key only."""
    assert bench.all('--yes').returncode == 0
    former, following = bench.key(), 'torusd-key-1 ' + '5' * 64 + '\n'
    (bench.folder / 'key').unlink()
    (bench.folder / 'key').symlink_to(bench.folder / 'alpha/etc/torusd/cluster.key')
    for name, text in (('alpha/etc/torusd/cluster.key', following), ('alpha/etc/torusd/second.key', former),
                       ('beta/etc/torusd/second.key', former), ('gamma/etc/torusd/cluster.key', following),
                       ('gamma/etc/torusd/second.key', former), ('key.next', following)):
        (bench.folder / name).write_text(text)
        (bench.folder / name).chmod(0o600)
    done = bench.all('--yes', '--new-key')
    assert done.returncode == 0, done.stderr
    assert {bench.read(host, 'torusd/cluster.key') for host in ALL_OF_THEM} == {following}
    assert not list(bench.folder.glob('*/etc/torusd/second.key'))


def test_a_change_of_the_key_is_finished_before_anything_else(bench):
    assert bench.all('--yes').returncode == 0
    assert bench.all('--yes', '--new-key', '--host', 'beta').returncode == 2
    (bench.folder / 'fail-gamma').touch()
    refused = bench.all('--yes', '--new-key')
    assert refused.returncode == 1 and 'nothing was changed' in refused.stderr
    done = bench.all('--yes', '--new-key', '--without', 'gamma')
    assert done.returncode == 0 and 'set up again' in done.stderr, done.stderr
    assert bench.read('alpha', 'torusd/cluster.key') == bench.read('beta', 'torusd/cluster.key') == bench.key()
    (bench.folder / 'fail-gamma').unlink()
    assert bench.read('gamma', 'torusd/cluster.key') != bench.key()
    assert bench.all('--yes', '--host', 'gamma').returncode == 0
    assert bench.read('gamma', 'torusd/cluster.key') == bench.key()
    (bench.folder / 'beta/etc/torusd/second.key').write_text('torusd-key-1 ' + '5' * 64 + '\n')
    (bench.folder / 'beta/etc/torusd/second.key').chmod(0o600)
    refused = bench.all('--yes')
    assert refused.returncode == 1 and 'not ended on beta' in refused.stderr, refused.stderr
    assert bench.all('--yes', '--without', 'nobody').returncode in (1, 2)


def other_key(bench):
    (bench.folder / 'key').write_text('torusd-key-1 ' + '5' * 64 + '\n')


def key_elsewhere(bench):
    """A host that somebody has set up by hand."""
    elsewhere = bench.folder / 'beta/etc/mine.key'
    elsewhere.write_text('torusd-key-1 ' + '6' * 64 + '\n')
    elsewhere.chmod(0o600)
    config = bench.folder / 'beta/etc/torusd/torusd.ini'
    config.write_text(re.sub('(?m)^key_file = .*', 'key_file = /etc/mine.key', config.read_text()))


ALL_OF_THEM = 'alpha', 'beta', 'gamma'


@pytest.mark.parametrize('change, says, who', [
    (('encrypt = yes\n', ''), 'its links are not encrypted any more', ALL_OF_THEM),
    (('encrypt = yes\n', 'encrypt = no\n'), 'its links are not encrypted any more', ALL_OF_THEM),
    (('data_roots = ', 'data_roots = /:'), 'get access to /etc, by the data root /', ALL_OF_THEM),
    (('data_roots = ', 'data_roots = /home/:'), 'get access to /home, by the data root /home/', ALL_OF_THEM),
    (('encrypt = yes\n', 'encrypt = yes\nexchange_group = users\n'), 'members of the group users may exchange', ALL_OF_THEM),
    (('encrypt = yes\n', 'encrypt = yes\nadmin_group = users\n'), 'members of the group users may exchange', ALL_OF_THEM),
    (lambda bench: (bench.folder / 'key').unlink(), 'is missing: a new key would take its place', ALL_OF_THEM),
    (other_key, 'has another one', ALL_OF_THEM), (key_elsewhere, 'its key in /etc/mine.key', ('beta',))])
def test_what_makes_hosts_less_safe_needs_a_word_of_its_own(bench, change, says, who):
    bench.file.write_text(bench.file.read_text().replace('link_mbit', 'encrypt = yes\nlink_mbit'))
    assert bench.all('--yes').returncode == 0
    if callable(change):
        change(bench)
    else:
        bench.file.write_text(bench.file.read_text().replace(*change))
    before, key = bench.files(), (bench.folder / 'key').exists() and bench.key()
    for more in ('--yes',), ('--dry-run',), ('--yes', '--dry-run', '--json'):
        done = bench.all(*more)
        assert done.returncode == 1 and '--allow-less-safe' in done.stderr and ', '.join(who) in done.stderr, done.stderr
        assert bench.files() == before and ((bench.folder / 'key').exists() and bench.key()) == key
    rows = json.loads(done.stdout)['hosts']
    assert {row['host']: len(row['less_safe']) for row in rows} == {host: int(host in who) for host in ALL_OF_THEM}
    assert all(says in row['less_safe'][0] for row in rows if row['host'] in who), rows
    assert says in bench.all('--yes').stdout
    done = bench.all('--yes', '--allow-less-safe')
    assert done.returncode == 0 and bench.files() != before, done.stderr
    assert {bench.read(host, 'torusd/cluster.key') for host in ALL_OF_THEM} == {bench.key()}
    assert 'up to date' in bench.all('--yes').stdout


@pytest.mark.parametrize('change', [
    ('data_roots = ', 'data_roots = /srv/more:/home/alice/data:'), ('encrypt = no', 'encrypt = yes'),
    ('exchange_group = users\n', ''), ('exchange_group = users', 'admin_group = users'),
    ('exchange_group = users', 'exchange_group = torusd')])
def test_what_makes_no_host_less_safe_needs_none(bench, change):
    bench.file.write_text(bench.file.read_text().replace('link_mbit', 'encrypt = no\nexchange_group = users\nlink_mbit'))
    assert bench.all('--yes').returncode == 0
    text = bench.file.read_text()
    bench.file.write_text(text.replace(*change))
    assert bench.file.read_text() != text
    done = bench.all('--yes')
    assert done.returncode == 0, done.stderr


def test_a_configuration_that_cannot_be_read_may_have_been_safer(bench):
    assert bench.all('--yes').returncode == 0
    (bench.folder / 'beta/etc/torusd/torusd.ini').write_text('[node\n')
    done = bench.all('--yes')
    assert done.returncode == 1 and '1 host would become less safe: beta\n' in done.stderr
    assert 'whether it was safer is not known' in done.stdout


def test_a_release_that_does_not_say_whether_a_host_becomes_less_safe(bench):
    bench.ssh.write_text(bench.ssh.read_text().replace('/$host\nstatus', '/$host | sed s/less_safe/former/\nstatus'))
    done = bench.all('--yes')
    assert done.returncode == 1 and '3 hosts would become less safe' in done.stderr, done.stderr
    assert not (bench.folder / 'alpha/etc/torusd').exists()


def receive(bench, setup):
    return torusctl('--json', 'init', '--receive', 'apply', '--root', bench.folder / 'alpha',
                    input=setup if isinstance(setup, str) else json.dumps(setup))


def test_what_is_not_a_setup_changes_nothing(bench):
    good = {'version': 1, 'host': 'alpha', 'cluster': bench.file.read_text(), 'key': 'ab' * 32, 'second_key': ''}
    before = bench.files()
    bad = ['', 'x', '[]', '{"version": 1}', 'a' * 300000, {**good, 'version': 2}, {**good, 'host': 'delta'},
           {**good, 'key': ''}, {**good, 'key': 'ab' * 31}, {**good, 'key': 'ab' * 33}, {**good, 'key': 'x' * 64},
           {**good, 'second_key': 7}, {**good, 'cluster': '[alpha]\n'}, {**good, 'cluster': '[alpha\n'},
           {**good, 'cluster': good['cluster'] + '\0'}, {**good, 'cluster': good['cluster'] + '[delta]\n'},
           {**good, 'cluster': good['cluster'].replace('eth1', '../../etc')}]
    for setup in bad:
        done = receive(bench, setup)
        assert done.returncode == 1 and json.loads(done.stdout)['error']['text'], setup
        assert bench.files() == before
    assert receive(bench, good).returncode == 0
    assert bench.read('alpha', 'torusd/cluster.key') == f'torusd-key-1 {"ab" * 32}\n'


def test_setups_that_arrive_at_the_same_time_are_applied_one_by_one(bench):
    """Someone who was interrupted runs the command again, and the hosts still apply the first one."""
    assert bench.here('alpha', '--yes').returncode == 0
    files = {path for path in bench.files() if '/alpha/' in str(path)}
    setups = [{'version': 1, 'host': 'alpha', 'cluster': bench.file.read_text().replace('1000', f'{speed}'), 'key': key * 64,
               'second_key': ''} for speed, key in ((1000, 'a'), (2500, 'b'))]
    for _ in range(5):
        receivers = []
        for number in range(6):
            with open(bench.folder / f'setup{number}', 'w') as out:
                json.dump(setups[number % 2], out)
            with open(bench.folder / f'setup{number}') as setup:
                receivers.append(subprocess.Popen([find_program('torusctl'), '--json', 'init', '--receive', 'apply', '--root',
                                                   bench.folder / 'alpha'], stdin=setup, stdout=subprocess.PIPE, text=True,
                                                  env=with_torusd()))
        said = [receiver.communicate()[0] for receiver in receivers]
        assert [receiver.returncode for receiver in receivers] == [0] * 6, said
        speed = settings(bench.read('alpha', 'torusd/torusd.ini'))['link_mbit']
        assert bench.read('alpha', 'torusd/cluster.key') == f'torusd-key-1 {("a" if speed == "1000" else "b") * 64}\n'
        assert {path for path in bench.files() if '/alpha/' in str(path)} == files


@pytest.mark.parametrize('change, line, text', [
    (('dims = 3', 'dims = 3\ndims = 4'), 3, 'twice'),
    (('dims = 3', 'dims = 0'), 2, 'sizes'),
    (('link_mbit = 1000', 'key_file = x'), 3, 'unknown setting'),
    (('[gamma]', '[beta]'), 13, 'same host'),
    (('[gamma]\n', '[gamma]\n+0 = eth3\n'), 15, 'two ports'),
    (('ssh = admin@10.0.0.3', 'ssh = -oProxyCommand=x'), 12, 'not a host'),
    (('[gamma]\n', '[gamma]\n+0.link_mbit = fast\n'), 14, 'not a rate'),
    (('[gamma]\n', '[gamma]\n+0.link_mbit = 1\n+0.link_mbit = 2\n'), 15, 'the first is in line 14'),
    (('[gamma]\n', '[gamma]\n+1.link_mbit = 1\n'), 14, 'no port "+1"'),
])
def test_errors_name_the_line(bench, change, line, text):
    bench.file.write_text(bench.file.read_text().replace(*change, 1))
    done = bench.all('--yes')
    assert done.returncode == 2 and f'cluster.ini:{line}' in done.stderr and text in done.stderr, done.stderr


def test_usage(bench):
    for arguments in ([], [bench.file], [bench.file, '--here', '--ssh'], [bench.file, '--ssh', '--root', '/'],
                      ['--receive', 'maybe'], [bench.file, '--here', '--new-key']):
        assert torusctl('init', *arguments).returncode == 2
    done = torusctl('init', bench.file, '--here')
    assert done.returncode == 2 and '--host' in done.stderr


# --- torus-links ---

LINKS = Path(__file__).resolve().parents[2] / 'scripts/packaging/torus-links'
root_only = pytest.mark.skipif(os.geteuid() != 0, reason='needs root for a network namespace')


@root_only
@pytest.mark.parametrize('events', ['heard', 'missed'])
def test_torus_links_keeps_addresses(tmp_path, events):
    (tmp_path / 'ip').write_text(f'''#!/bin/sh
case "$*" in *monitor*) [ {events} = heard ] || exec sleep 1000 ;; esac
exec {shutil.which('ip')} "$@"
''')
    (tmp_path / 'ip').chmod(0o755)
    (tmp_path / 'links').write_text('eth1 fe80::a/64\neth2 fe80::b/64')  # an editor may leave out the end
    script = tmp_path / 'script'
    script.write_text(f'''set -eu
export TORUS_LINKS_FOLDER={tmp_path} PATH={tmp_path}:$PATH
await() {{ for i in $(seq 600); do eval "$1" && return; sleep 0.05; done; echo "never: $1"; ip -br addr; exit 1; }}
ip link add eth1 address 02:00:00:00:00:01 type veth peer name peer1
ip link set peer1 up
env --default-signal=HUP {LINKS} run & links=$! # with nohup, it could not hear SIGHUP
trap 'kill $links 2>/dev/null || true' EXIT
await 'ip -6 -o addr show dev eth1 | grep -q " fe80::a/64"'
ip link add eth2 type veth peer name peer2
await 'ip -6 -o addr show dev eth2 2>/dev/null | grep -q " fe80::b/64"'
ip link set eth1 down
ip link set eth1 up
await 'ip -6 -o addr show dev eth1 | grep -q " fe80::a/64"'
ip link set eth1 down # its operator wants that
ip link del eth2
ip link add eth2 type veth peer name peer2
await 'ip -6 -o addr show dev eth2 2>/dev/null | grep -q " fe80::b/64"'
! ip link show dev eth1 | grep -q '[<,]UP[,>]'
ip link set eth1 up
await 'ip -6 -o addr show dev eth1 | grep -q " fe80::a/64"'
ip link set eth2 down
printf 'eth1 fe80::b/64\\neth2 fe80::b/64' >{tmp_path}/links
kill -HUP $links
await 'ip -6 -o addr show dev eth1 | grep -q " fe80::b/64" && ! ip -6 -o addr show dev eth1 | grep -q " fe80::a/64"'
await 'ip -6 -o addr show dev eth2 | grep -q " fe80::b/64"'
kill $links
wait $links
{LINKS} down
! ip -6 -o addr | grep -q 'fe80::[ab]/'
''')
    done = patience.run(['unshare', '--net', 'bash', script], 120)
    assert done.returncode == 0, done.stdout + done.stderr
