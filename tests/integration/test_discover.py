"""torusd-discover and torusctl discover on hosts made of namespaces."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from support.discovery import NAMES, discoveries, on_a_terminal
from support.early_signals import assert_ends_well
from support.users import as_user, copy_programs, open_folder
from support.waiting import wait_for, wait_logged
from torus_net.patience import Patience, communicate, run, wait
from torus_net.process import find_program

ALL = 'e0,e1,e2,e3'
REFUSED, BUSY = 2, 11  # enum error_code
REPLAY = '''
import socket, struct, sys
interface, recorded = sys.argv[1], sys.argv[2]
out = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
out.bind(('::', 7412))
data = open(recorded, 'rb').read()
while data:
    size, = struct.unpack('!I', data[:4])
    packet, data = data[4:4 + size], data[4 + size:]
    source, target, payload = packet[8:24], packet[24:40], packet[48:]
    if target[0] == 0xfe:
        out.sendto(payload, (socket.inet_ntop(socket.AF_INET6, target), 7412, 0, socket.if_nametoindex(interface)))
'''
RECORD = '''
import socket, struct, sys
interface, recorded = sys.argv[1], sys.argv[2]
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86dd))
wire.bind((interface, 0x86dd))
print('records', flush=True)
with open(recorded, 'wb', buffering=0) as out:
    while True:
        packet, address = wire.recvfrom(65536)
        if address[2] != socket.PACKET_OUTGOING and packet[6] == 17 and packet[42:44] == struct.pack('!H', 7412):
            out.write(struct.pack('!I', len(packet)) + packet)
'''


def packets_of_a_setup(recorded):
    """How many recorded packets were for one host; the others ask who is there."""
    data, count = recorded.read_bytes(), 0
    while len(data) > 28:
        size, = struct.unpack('!I', data[:4])
        count += data[28] == 0xfe
        data = data[4 + size:]
    return count


def ends(move, cables):
    """The names of hosts and interfaces that a sentence names."""
    return {(NAMES[host], interface) for cable in cables for host, interface in (cable[:2], cable[2:])
            if f"{NAMES[host]}'s {interface}" in move}


# --- hosts and cables ---

@pytest.mark.hosts
def test_a_ring_without_a_process_on_the_asked_host():
    with discoveries(3) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        hosts.cable(1, 'b2', 2, 'c1')
        hosts.cable(2, 'c2', 0, 'a2')
        hosts.start(1, 'b1,b2')
        hosts.start(2, 'c1,c2')
        done = hosts.run(0, '--json', 'discover', '--interfaces', 'a1,a2')
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)
        assert found['finding'] == 'fits' and found['dims'] == [3] and found['settled']
        own = next(host for host in found['hosts'] if host['self'])
        assert {host['name'] for host in found['hosts']} == {own['name'], 'beta', 'gamma'}
        assert len(found['cables']) == 3 and all(cable['mutual'] for cable in found['cables'])
        done = hosts.run(0, 'discover')
        assert done.returncode == 3 and '--interfaces' in done.stderr


@pytest.mark.hosts
def test_an_address_that_comes_late_is_waited_for():
    """The kernel gives an interface its address some time after the carrier."""
    with discoveries(2) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        hosts.cable(0, 'a2', 1, 'b2')
        hosts[0].run('sh', '-c', 'echo 1 >/proc/sys/net/ipv6/conf/a2/disable_ipv6')
        hosts.start(0, 'a1,a2')
        hosts.start(1, 'b1,b2')
        hosts.wait_reachable(0, 'beta')
        found = json.loads(hosts.discover(0, '--wait', '4').stdout)
        assert not found['settled'] and len(found['cables']) == 1
        hosts[0].run('sh', '-c', 'echo 0 >/proc/sys/net/ipv6/conf/a2/disable_ipv6')
        found = json.loads(hosts.discover(0).stdout)
        assert found['settled'] and len(found['cables']) == 2


@pytest.mark.hosts
def test_crossed_cables_of_a_torus_are_named(tmp_path):
    with discoveries(9) as hosts:
        cables = hosts.torus(3, 3, seed=7)
        for number in range(9):
            hosts.start(number, ALL)
        path, again = tmp_path / 'cluster.ini', tmp_path / 'hosts.json'
        done = hosts.discover(4, '--output', path)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)
        assert found['finding'] == 'fits' and found['dims'] == [3, 3] and len(found['cables']) == 18
        assert [node['host'] for node in found['nodes']][0] == 'alpha'
        assert 'dims = 3x3' in path.read_text()
        assert hosts.discover(0, '--cluster', path).returncode == 0
        written = path.read_text()
        own = next(host for host in found['hosts'] if host['self'])['id']
        assert f'id = {own}\n' in written and written.count('\nid = ') == 1 and written.count('; found with the id ') == 8
        merged = json.loads(hosts.discover(0, '--output', path).stdout)
        assert [change for change in merged['changes'] if 'alpha has the id' in change] == merged['changes']
        assert re.sub(r'(?m)^id = .*\n', '', path.read_text()) == re.sub(r'(?m)^id = .*\n', '', written)
        again.write_text(done.stdout)
        assert run([find_program('torusctl'), 'discover', '--from', again, '--dims', '3x3'], 30).returncode == 0
        assert run([find_program('torusctl'), 'discover', '--from', again, '--dims', '9'], 30).returncode == 1
        # The far ends of two cables are swapped.
        (a, at_a, b, at_b), (c, at_c, d, at_d) = cables[0], next(cable for cable in cables
                                                                  if not {*cables[0][::2]} & {*cable[::2]})
        hosts.pull(a, at_a)
        hosts.pull(c, at_c)
        hosts.cable(a, at_a, d, at_d)
        hosts.cable(c, at_c, b, at_b)

        def is_seen():
            neighbours = [heard['host'] for at in hosts.host(4, NAMES[a])['interfaces'] if at['name'] == at_a
                          for heard in at['heard']]
            return neighbours == [NAMES[d]]
        wait_for(is_seen, 60, lambda: hosts.log(4))
        done = hosts.discover(4, '--cluster', path)
        found = json.loads(done.stdout)
        assert done.returncode == 1 and found['finding'] == 'near' and len(found['moves']) == 1, found['moves']
        crossed = {(NAMES[a], at_a), (NAMES[b], at_b), (NAMES[c], at_c), (NAMES[d], at_d)}
        named = ends(found['moves'][0], cables)
        assert len(named) == 2 and named <= crossed, found['moves']
        assert sum(cable['problem'] == 'is wrong here' for cable in found['cables']) == 2
        assert hosts.discover(4, '--output', tmp_path / 'none.ini').returncode == 1
        assert not (tmp_path / 'none.ini').exists()


@pytest.mark.hosts
def test_interfaces_that_are_down_are_set_up_or_shown():
    with discoveries(2) as hosts:
        hosts.cable(0, 'a1', 1, 'b1', up=False)
        hosts.start(0, 'a1,a9')
        free = json.loads(hosts.discover(0).stdout)['free']
        assert [(one['interface'], 'is down' in one['state']) for one in free] == [('a1', True)]
        wait_logged(lambda: hosts.log(0), 'ip link set a1 up')
        assert hosts.end(0) == 0
        hosts.start(0, 'a1', command='/bin/false')
        hosts.start(1, 'b1', command='/bin/false')
        hosts.wait_reachable(0, 'beta')
        # The interface is removed, and created again.
        hosts.pull(0, 'a1')
        wait_for(lambda: not (hosts.host(0, 'beta') or {'reachable': False})['reachable'], 60)
        hosts.cable(0, 'a1', 1, 'b1', up=False)
        hosts.wait_reachable(0, 'beta')


@pytest.mark.hosts
def test_an_interface_that_its_operator_set_down_stays_down(command):
    with discoveries(2) as hosts:
        def is_up():
            return 'UP' in json.loads(hosts[0].run('ip', '-json', 'link', 'show', 'a1'))[0]['flags']

        def state():
            return next((one['state'] for one in json.loads(hosts.discover(0, '--wait', '0.1').stdout)['free']
                         if one['interface'] == 'a1'), '')

        def looks_again(interface):
            """The process has looked at all interfaces since another one appeared."""
            hosts.cable(0, interface, 1, interface)
            wait_for(lambda: any(at['name'] == interface for at in hosts.host(0, 'alpha')['interfaces']), 60)
        hosts.cable(0, 'a1', 1, 'b1', up=False)
        hosts.start(0, 'a1,a2,a3,a4', command=command[0])
        wait_for(is_up, 60)
        hosts[0].ip('link set a1 down')
        wait_for(lambda: 'is down' in state(), 60, state)
        looks_again('a2')
        hosts.reload(0)
        looks_again('a3')
        assert not is_up() and hosts.host(0, 'alpha')['accepts_setups'], 'the host is new'
        # A host that was set up sets nothing up when discovery starts again.
        (hosts.state(0) / 'set-up').touch()
        hosts.end(0)
        hosts.start(0, 'a1,a2,a3,a4', command=command[0])
        looks_again('a4')
        assert not is_up() and 'is down' in state()


@pytest.mark.hosts
def test_a_port_of_a_bridge_is_named():
    with discoveries(2) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        subprocess.run([*hosts[0].enter(), 'mount', '-t', 'sysfs', 'none', '/sys'], check=True)  # that of this host
        hosts.start(0, 'a1')
        hosts.start(1, 'b1')
        hosts.wait_reachable(0, 'beta')
        hosts[0].ip('link add br7 type bridge')
        hosts[0].ip('link set a1 master br7')
        hosts[0].ip('link set br7 up')
        wait_for(lambda: any('is a port of br7' in one['state'] for one in
                             json.loads(hosts.discover(0, '--wait', '0.1').stdout)['free']), 60, lambda: hosts.discover(0).stdout)


def segment(hosts, closet, name, *ends):
    """Joins interfaces, given as (host, interface), by a bridge on one more host: all of them hear each other."""
    hosts[closet].ip(f'link add {name} type bridge')
    hosts[closet].ip(f'link set {name} up')
    for number, (host, interface) in enumerate(ends):
        hosts.cable(closet, f'{name}-{number}', host, interface)
        hosts[closet].ip(f'link set {name}-{number} master {name}')


@pytest.mark.hosts
def test_functions_of_one_port_and_a_lan_are_no_cables_of_their_own():
    """Each cable of a ring has two interfaces at each end, and all hosts are at a LAN as well."""
    with discoveries(4) as hosts:
        for a in range(3):
            b = (a + 1) % 3
            segment(hosts, 3, f'cable{a}', (a, 'ea'), (a, 'ea2'), (b, 'eb'), (b, 'eb2'))
        segment(hosts, 3, 'lan', (0, 'lan'), (1, 'lan'), (2, 'lan'))
        for number in range(3):
            hosts.start(number, 'ea,ea2,eb,eb2,lan')

        def heard():
            return [len({one['host'] for one in at['heard']}) for name in NAMES[:3]
                    for at in (hosts.host(0, name) or {'interfaces': []})['interfaces']]
        wait_for(lambda: len(heard()) == 15 and sum(heard()) >= 18, 60, heard)
        done = hosts.discover(0)
        found = json.loads(done.stdout)
        assert done.returncode == 0 and found['finding'] == 'fits' and found['dims'] == [3], found['network']
        assert sorted((one['host'], one['interface'], one['taken']) for one in found['twins']) == [
            (name, f'e{end}2', f'e{end}') for name in NAMES[:3] for end in 'ab']
        assert [(one['host'], one['interface']) for one in found['shared']] == [(name, 'lan') for name in NAMES[:3]]
        assert sum(cable['problem'] == '' for cable in found['cables']) == 3
        text = hosts.run(0, 'discover', '--discover-socket', hosts.socket(0)).stdout
        assert 'is another function of the port of ea, which is taken' in text and 'hears several hosts: a switch' in text
        assert 'ea2' not in text.partition('interfaces that are left out')[0], text
        # The cluster file may name the other function.
        cluster = hosts.folder / 'cluster.ini'
        hosts.discover(0, '--output', cluster)
        cluster.write_text(cluster.read_text().replace('= eb\n', '= eb2\n', 1))
        assert hosts.discover(0, '--cluster', cluster).returncode == 0


def test_hosts_at_a_switch_only(tmp_path):
    path = tmp_path / 'hosts.json'
    path.write_text(json.dumps({'hosts': [
        {'name': name, 'interfaces': [{'name': 'lan', 'heard': [{'host': other, 'interface': 'lan'} for other in 'abcd'
                                                                if other != name]}]} for name in 'abcd']}))
    done = run([find_program('torusctl'), 'discover', '--from', path], 20)
    assert done.returncode == 1 and 'hears several, as at a switch, so that there is no cable' in done.stdout, done.stdout
    assert done.stdout.count('hears several hosts: a switch or a LAN, no cable') == 4, done.stdout


@pytest.mark.hosts
def test_a_user_without_rights_and_one_process_a_host():
    with discoveries(2) as hosts, open_folder() as folder:
        hosts.cable(0, 'a1', 1, 'b1')
        hosts.folder.chmod(0o777)
        hosts.start(0, 'a1')
        done = hosts.run(0, 'discover', '--interfaces', 'a1')
        assert done.returncode == 1 and 'another discovery process' in done.stderr
        torusctl, _ = copy_programs(folder, 'torusctl', 'torusd-discover')
        nobody = subprocess.run([*hosts[1].enter(), *as_user(65534), *torusctl, '--json', 'discover', '--interfaces', 'b1'],
                                capture_output=True, text=True)
        assert nobody.returncode == 0, nobody.stderr
        assert {host['name'] for host in json.loads(nobody.stdout)['hosts']} > {'alpha'}, nobody.stderr


@pytest.mark.hosts
def test_a_signal_at_any_moment_of_the_start():
    with discoveries(2) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        assert_ends_well([*hosts[0].enter(), find_program('torusd-discover'), '--interfaces', 'a1', '--name', 'alpha',
                          '--discover-socket', hosts.socket(0)], signal.SIGTERM)
        assert not hosts.socket(0).exists()


# --- setups ---

@pytest.fixture
def command(tmp_path):
    """A command for setups that appends its word and its input to a file."""
    script, runs = tmp_path / 'command', tmp_path / 'runs'
    script.write_text(f'#!/bin/sh\nread -r line\necho "$1 $2 $line" >>{runs}\necho "took $line"\n'
                      'echo trouble >&2\nexit 7\n')
    script.chmod(0o755)
    runs.touch()
    return f'{script} word', runs


def make_key(path):
    subprocess.run([find_program('torusctl'), 'key', 'generate', path], check=True, capture_output=True)
    return path


@pytest.mark.hosts
def test_setups_travel_over_hosts_between(command, tmp_path):
    with discoveries(3) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        hosts.cable(1, 'b2', 2, 'c1')
        hosts.start(0, 'a1')
        hosts.start(1, 'b1,b2')
        hosts.start(2, 'c1', command=command[0])
        hosts.wait_reachable(0, 'gamma', accepts_setups=True)
        reply = hosts.send_setup(0, 'gamma', 'first\n' + 'x' * 200_000)
        assert reply == {'status': 7, 'output': 'took first\n', 'errors': 'trouble\n'}
        assert hosts.send_setup(0, 'gamma', 'second\n', apply=False)['status'] == 7
        assert command[1].read_text() == 'word apply first\nword show second\n'
        assert hosts.send_setup(0, 'beta', 'third\n')['code'] == REFUSED
        assert hosts.send_setup(2, 'gamma', 'own\n')['output'] == 'took own\n'


@pytest.mark.hosts
def test_a_host_with_a_key_refuses_setups_without_it_and_replays(command, tmp_path):
    key, packets = make_key(tmp_path / 'key'), tmp_path / 'packets'
    with discoveries(2) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        hosts.start(0, 'a1')
        hosts.start(1, 'b1', command=command[0], key=key)
        assert hosts.wait_reachable(0, 'beta')['trust'] == 'other key'
        refused = hosts.send_setup(0, 'beta', 'no key\n')
        assert refused['code'] == REFUSED and 'cluster key' in refused['text']
        assert hosts.end(0) == 0
        hosts.start(0, 'a1', key=key)
        hosts.wait_reachable(0, 'beta', trust='proved')
        recorder = subprocess.Popen([*hosts[1].enter(), sys.executable, '-c', RECORD, 'b1', packets],
                                    stdout=subprocess.PIPE, text=True)
        try:
            assert recorder.stdout.readline() == 'records\n'
            assert hosts.send_setup(0, 'beta', 'with key\n', key=key)['status'] == 7
            wait_for(lambda: packets_of_a_setup(packets) >= 3)  # it begins, brings the bytes, and ends
        finally:
            recorder.kill()
            recorder.communicate()
        hosts.end(0, signal.SIGKILL)
        subprocess.run([*hosts[0].enter(), sys.executable, '-c', REPLAY, 'a1', packets], check=True)
        hosts.start(0, 'a1', key=key)
        hosts.wait_reachable(0, 'beta', trust='proved')
        wait_for(lambda: hosts.send_setup(0, 'beta', 'again\n', key=key).get('status') == 7, 60)
        assert command[1].read_text() == 'word apply with key\nword apply again\n'


@pytest.mark.hosts
def test_the_first_setup_brings_the_key(tmp_path):
    key, installed, script = make_key(tmp_path / 'key'), tmp_path / 'installed', tmp_path / 'install'
    script.write_text(f'#!/bin/sh\numask 077\ncat >{installed}\n')
    script.chmod(0o755)
    with discoveries(2) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        settings = tmp_path / 'torusd.ini'
        hosts.start(0, 'a1', key=key)
        hosts.start(1, 'b1', command=script, config=settings)
        assert hosts.wait_reachable(0, 'beta', dims=None, rank=None)['trust'] == 'open'
        settings.write_text(f'[node]\ndims = 4x4\nrank = 5\nkey_file = {installed}\n')
        assert hosts.send_setup(0, 'beta', key.read_text())['status'] == 0
        hosts.wait_reachable(0, 'beta', trust='proved', dims='4x4', rank=5)
        installed.write_bytes(make_key(tmp_path / 'other').read_bytes())
        hosts.reload(1)
        hosts.wait_reachable(0, 'beta', trust='other key')


def open_again(hosts, number):
    return run([find_program('torusd-setup'), '--open', *hosts.local(number), '--key-file', hosts.folder / 'no key',
                '--second-key-file', hosts.folder / 'no key'], 20)


@pytest.mark.hosts
def test_a_host_that_was_set_up_stays_closed_without_its_key(command):
    with discoveries(2) as hosts:
        settings, key = hosts.folder / 'torusd.ini', make_key(hosts.folder / 'key of its own')
        options = {'config': settings, 'command': command[0]}

        def is_closed():
            hosts.wait_reachable(0, 'beta', accepts_setups=False)
            refused = hosts.send_setup(0, 'beta', 'closed\n')
            return refused['code'] == REFUSED and 'accepts no setups' in refused['text']
        hosts.cable(0, 'a1', 1, 'b1')
        hosts.start(0, 'a1')
        hosts.start(1, 'b1', **options)
        hosts.wait_reachable(0, 'beta', accepts_setups=True)
        settings.write_text(f'dims = 2\nrank = 1\nkey_file = {key}\n')
        hosts.reload(1)
        hosts.wait_reachable(0, 'beta', trust='other key')
        assert hosts.send_setup(0, 'beta', 'keyed\n')['code'] == REFUSED
        # The key is gone for a moment, as it is when its disk is not mounted yet.
        away = key.rename(hosts.folder / 'away')
        hosts.reload(1)
        assert is_closed()
        hosts.end(1)
        hosts.start(1, 'b1', **options)
        assert is_closed()
        wait_logged(lambda: hosts.log(1), f'key file {key}: No such file')
        away.rename(key)
        hosts.wait_reachable(0, 'beta', trust='other key')  # without a signal
        assert hosts.send_setup(0, 'beta', 'keyed\n')['code'] == REFUSED
        # Nothing is left of the configuration, but the host remembers.
        refused = open_again(hosts, 1)
        assert refused.returncode == 1 and str(settings) in refused.stderr
        settings.unlink()
        hosts.reload(1)
        assert is_closed()
        opened = open_again(hosts, 1)
        assert opened.returncode == 0, opened.stderr
        hosts.reload(1)
        hosts.wait_reachable(0, 'beta', accepts_setups=True)
        assert hosts.send_setup(0, 'beta', 'open\n')['status'] == 7
        assert command[1].read_text() == 'word apply open\n'


@pytest.mark.hosts
def test_the_identity_of_a_host_stays_on_its_machine(command):
    with discoveries(2) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        hosts.start(0, 'a1', command=command[0])
        hosts.start(1, 'b1', command=command[0])
        first = hosts.wait_reachable(0, 'beta')['id']
        assert hosts.id(1) == first
        wait_for(lambda: hosts.log(1).count(first) == 2)
        hosts.end(1, signal.SIGKILL)
        hosts.start(1, 'b1', command=command[0])
        hosts.wait_reachable(0, 'beta', id=first)
        (hosts.state(1) / 'set-up').touch()
        hosts.end(1)
        # A copy of the disk in another machine: its identity is another one, and it was never set up.
        identity = hosts.state(1) / 'identity'
        assert identity.stat().st_mode & 0o777 == 0o600
        identity.write_text(re.sub('machine = ..', 'machine = 00', identity.read_text()))
        hosts.start(1, 'b1', command=command[0])
        second = wait_for(lambda: next((host['id'] for host in json.loads(hosts.discover(0, '--wait', '0.1').stdout)['hosts']
                                        if host['id'] not in (first, hosts.id(0))), None), 60)
        assert second == hosts.id(1)
        assert not (hosts.state(1) / 'set-up').exists()
        wait_logged(lambda: hosts.log(1), 'belongs to another machine')
        hosts.end(1)
        assert hosts.id(1) == ''
        identity.write_text('secret = 12\n')
        damaged = open_again(hosts, 1)
        assert damaged.returncode == 1 and f'{identity} is damaged' in damaged.stderr


@pytest.mark.hosts
def test_torusd_setup_comes_later_and_ends(tmp_path):
    """Discovery waits for it; a setup of a host whose torusd-setup ends is refused, and the next one is applied."""
    with discoveries(2) as hosts:
        hosts.cable(0, 'ea', 1, 'ea')
        hosts.start(0, 'ea')
        hosts.launch(1, 'torusd-discover', '--interfaces', 'ea', '--name', 'beta', '--discover-socket', hosts.socket(1),
                     '--setups', hosts.setups(1))
        wait_logged(lambda: hosts.log(1), 'torusd-setup does not serve')
        assert not hosts.answers(1)
        options = '--socket', hosts.setups(1), *hosts.local(1), '--key-file', hosts.folder / 'no key', \
            '--second-key-file', hosts.folder / 'no key', '--command'
        sleeper = tmp_path / 'sleeper'
        sleeper.write_text('#!/bin/sh\nexec sleep infinity\n')
        sleeper.chmod(0o755)
        hosts.launch(1, 'torusd-setup', *options, sleeper)
        hosts.wait_reachable(0, 'beta', accepts_setups=True)
        sent = hosts.begin_setup(0, 'beta', 'x')
        wait_logged(lambda: hosts.log(1), 'a setup has arrived')
        sleeping = int(re.search(r'runs \(process (\d+)\)', hosts.log(1))[1])
        hosts.processes[1]['torusd-setup'].send_signal(signal.SIGTERM)
        assert wait(hosts.processes[1]['torusd-setup'], Patience(20)) == 0
        end = json.loads(communicate(sent, Patience(60))[0].splitlines()[-1])
        assert end['code'] == REFUSED and 'torusd-setup has ended there' in end['text'], end
        os.kill(sleeping, signal.SIGKILL)  # it goes on by itself
        hosts.launch(1, 'torusd-setup', *options, '/bin/true')
        wait_for(lambda: hosts.send_setup(0, 'beta', 'x').get('status') == 0, 60)


@pytest.mark.hosts
def test_who_may_speak_to_torusd_setup():
    with discoveries(1) as hosts, open_folder() as folder:
        hosts.start(0, 'ea', command='/bin/true')
        hosts.folder.chmod(0o777)
        hosts.setups(0).chmod(0o777)
        discover, _ = copy_programs(folder, 'torusd-discover', 'torusctl')
        stranger = subprocess.run([*as_user(65534), *discover, '--id', '--setups', hosts.setups(0)], capture_output=True,
                                  text=True)
        assert stranger.returncode == 1 and 'torusd-setup does not answer' in stranger.stderr and not stranger.stdout
        assert re.fullmatch('[0-9a-f]{32}', hosts.id(0))


@pytest.mark.hosts
def test_the_asker_of_a_setup_goes_away(tmp_path):
    """The setup goes on, and the next one gets its own answer."""
    script, pipe = tmp_path / 'command', tmp_path / 'go on'
    script.write_text(f'#!/bin/sh\nread -r line\necho "$line" >>{tmp_path}/runs\nread -r word <"{pipe}"\necho "took $line"\n')
    script.chmod(0o755)
    os.mkfifo(pipe)
    (tmp_path / 'runs').touch()
    with discoveries(2) as hosts:
        hosts.cable(0, 'a1', 1, 'b1')
        hosts.start(0, 'a1', command=script)
        hosts.start(1, 'b1')
        hosts.wait_reachable(1, 'alpha', accepts_setups=True)
        first = hosts.begin_setup(0, 'alpha', 'first\n')
        wait_for(lambda: (tmp_path / 'runs').read_text() == 'first\n')
        first.kill()
        first.communicate()
        second = hosts.begin_setup(1, 'alpha', 'second\n')
        busy = hosts.send_setup(0, 'alpha', 'third\n')
        assert busy['code'] == BUSY, busy
        pipe.write_text('go\n')
        wait_for(lambda: (tmp_path / 'runs').read_text() == 'first\nsecond\n')
        pipe.write_text('go\n')
        assert json.loads(second.communicate()[0].splitlines()[-1])['output'] == 'took second\n'
        assert hosts.end(0) == 0


@pytest.mark.hosts
def test_from_bare_hosts_to_their_configuration():
    """torusctl discover writes the cluster file, and torusctl init configures all hosts over the cables."""
    with discoveries(4) as hosts:
        roots = [hosts.root(number) for number in range(4)]
        for number in range(4):
            hosts.cable(number, 'ea', (number + 1) % 4, 'eb')
        for number in range(4):
            hosts.start_for_setups(number, 'ea,eb')
        for name in NAMES[1:4]:
            hosts.wait_reachable(0, name)
        cluster = hosts.folder / 'cluster.ini'
        found = hosts.discover(0, '--output', cluster)
        assert found.returncode == 0, found.stdout + found.stderr
        init = '--json', 'init', cluster, '--links', '--discover-socket', hosts.socket(0), '--no-wait', '--yes'
        refused = hosts.run(0, *init)
        assert refused.returncode == 1 and '--trust-cables' in refused.stderr and 'torusd-discover --id' in refused.stderr
        assert not any((root / 'etc' / 'torusd').exists() for root in roots)
        # One host fails after others have been configured, as it cannot write its key. The same command goes on.
        obstacle = roots[2] / 'etc' / 'torusd' / 'cluster.key.torusd-new'
        obstacle.mkdir(parents=True)
        failed = hosts.run(0, *init, '--trust-cables')
        ids = {host['name']: host['id'] for host in json.loads(hosts.discover(0).stdout)['hosts']}
        assert all(f'id = {ids[name]}\n' in cluster.read_text() for name in NAMES[:4])
        assert failed.returncode == 1 and f'{NAMES[2]}: ' in failed.stderr and str(obstacle.parent) in failed.stderr
        assert (roots[1] / 'etc' / 'torusd' / 'cluster.key').exists()
        obstacle.rmdir()
        done = hosts.run(0, *init)
        assert done.returncode == 0, done.stdout + done.stderr
        for number, root in enumerate(roots):
            hosts.wait_reachable(0, NAMES[number], trust='proved')
            settings = (root / 'etc' / 'torusd' / 'torusd.ini').read_text()
            assert 'dims = 4\n' in settings and 'eb]:7411' in settings
            assert 'gamma' in (root / 'etc' / 'hosts').read_text()
        hosts.wait_reachable(2, 'alpha', trust='proved')
        again = hosts.run(0, *init)
        assert again.returncode == 0 and 'up to date' in again.stdout, again.stdout + again.stderr


@pytest.mark.hosts
def test_no_key_goes_to_a_name(tmp_path):
    """A stranger on a free interface has the name of a host of the cluster, which is off."""
    secrets, script = tmp_path / 'secrets', tmp_path / 'thief'
    script.write_text(f'#!/bin/sh\ncat >>{secrets}\necho {{}}\n')
    script.chmod(0o755)
    with discoveries(3) as hosts:
        hosts.cable(0, 'ea', 1, 'ea')
        hosts.cable(0, 'ec', 2, 'ea')
        for number in range(2):
            hosts.start_for_setups(number, 'ea,ec')
        cluster = hosts.folder / 'cluster.ini'
        cluster.write_text('[cluster]\ndims = 2m\n\n; the first one\n[alpha]\n+0 = ea\n[beta]\n-0 = ea ; a cable\n')
        init = 'init', cluster, '--links', '--discover-socket', hosts.socket(0), '--no-wait', '--yes'
        hosts.wait_reachable(0, 'beta')
        done = hosts.run(0, *init, '--trust-cables')
        assert done.returncode == 0, done.stdout + done.stderr
        written = cluster.read_text()
        assert '; the first one' in written and written.count('id = ') == 2
        hosts.end(1)
        for name in 'BETA', 'beta', 'beta.example.org':
            cluster.write_text(written)
            hosts.start(2, 'ea', command=script, named=name)
            wait_for(lambda name=name: {host['name'] for host in json.loads(hosts.discover(0, '--wait', '0.1').stdout)['hosts']} == {
                'alpha', name}, 60)
            for more in (), ('--dry-run',), ('--new-key',), ('--trust-cables',):
                done = hosts.run(0, *init, *more)
                assert done.returncode == 1, (name, more, done.stdout + done.stderr)
                assert 'does not have the id' in done.stderr, (name, more, done.stderr)
            # A cluster file that does not have the id yet: the stranger would have to be confirmed.
            cluster.write_text(re.sub('id = .*\n', '', written))
            for more in (), ('--dry-run',), ('--new-key',):
                done = hosts.run(0, *init, *more)
                assert done.returncode == 1 and 'not confirmed' in done.stderr, (name, more, done.stderr)
            done = hosts.run(0, *init, '--trust-cables')
            assert done.returncode == 1 and 'for the first setup of a cluster' in done.stderr, (name, done.stderr)
            hosts.end(2)
        assert not secrets.exists()


@pytest.mark.hosts
def test_an_id_is_confirmed_on_a_terminal():
    with discoveries(2) as hosts:
        hosts.cable(0, 'ea', 1, 'ea')
        for number in range(2):
            hosts.start_for_setups(number, 'ea')
        cluster = hosts.folder / 'cluster.ini'
        cluster.write_text('[cluster]\ndims = 2m\n[alpha]\n+0 = ea\n[beta]\n-0 = ea\n')
        identity = hosts.wait_reachable(0, 'beta')['id']
        command = [*hosts[0].enter(), find_program('torusctl'), 'init', str(cluster), '--links', '--discover-socket',
                   str(hosts.socket(0)), '--no-wait']
        status, said = on_a_terminal(command, 'n')
        assert status == 1 and f'beta             {identity}' in said and 'Are these ids right?' in said, said
        assert 'id = ' not in cluster.read_text() and not (hosts.root(1) / 'etc' / 'torusd').exists()
        status, said = on_a_terminal(command, 'y', 'y')
        assert status == 0, said
        assert f'[beta]\n-0 = ea\nid = {identity}\n' in cluster.read_text()
        assert (hosts.root(1) / 'etc' / 'torusd' / 'cluster.key').exists()


@pytest.mark.hosts
def test_what_a_host_answers_cannot_write_on_the_terminal(tmp_path):
    script = tmp_path / 'command'
    script.write_text("""#!/bin/sh
cat >/dev/null
printf '{"error":{"text":"bad\\\\u001b[2J\\\\u202e"}}'
exit 1
""")
    script.chmod(0o755)
    with discoveries(2) as hosts:
        hosts.cable(0, 'ea', 1, 'ea')
        hosts.start_for_setups(0, 'ea')
        hosts.start(1, 'ea', command=script)
        hosts.wait_reachable(0, 'beta')
        cluster = hosts.folder / 'cluster.ini'
        cluster.write_text('[cluster]\ndims = 2m\n[alpha]\n+0 = ea\n[beta]\n-0 = ea\n')
        done = hosts.run(0, 'init', cluster, '--links', '--discover-socket', hosts.socket(0), '--no-wait', '--yes',
                         '--trust-cables')
        assert done.returncode == 1 and 'beta: bad?[2J???' in done.stderr, repr(done.stderr)
        assert '\x1b' not in done.stderr + done.stdout and '\u202e' not in done.stderr + done.stdout


# --- the programs ---

@pytest.mark.parametrize('options, text', (
    ((), '--interfaces is missing'),
    (('--interfaces', 'lo'), 'has no cable'),
    (('--interfaces', 'a b'), 'neither all nor a list'),
    (('--interfaces', 'e1', '--name', 'a/b'), 'not the name of a host'),
    (('--interfaces', 'e1', '--setups', '/x', '--key-file', '/y'), 'exclude each other'),
))
def test_invalid_options(tmp_path, options, text):
    done = run([find_program('torusd-discover'), '--discover-socket', tmp_path / 'socket', *options], 20)
    assert done.returncode == 2 and text in done.stderr


@pytest.mark.parametrize('text', ('', '[]', '{}', '{"hosts": 3}', '{"hosts": [{"name": "a/b"}]}',
                                  '{"hosts": [{"name": "a", "interfaces": [{}]}]}',
                                  '{"hosts": [{"name": "a", "interfaces": [{"name": "e", "heard": [{}]}]}]}'))
def test_files_that_are_no_hosts(tmp_path, text):
    path = tmp_path / 'hosts.json'
    path.write_text(text)
    done = run([find_program('torusctl'), '--json', 'discover', '--from', path], 20)
    assert done.returncode == 1 and str(path) in json.loads(done.stdout)['error']['text']


def test_hosts_from_a_file(tmp_path):
    """A ring of four."""
    def host(name, *heard):
        return {'name': name, 'interfaces': [
            {'name': f'e{i}', 'heard': [{'host': other, 'interface': at}]} for i, (other, at) in enumerate(heard)]}
    path = tmp_path / 'hosts.json'
    path.write_text(json.dumps({'hosts': [
        host('a', ('d', 'e1'), ('b', 'e0')), host('b', ('a', 'e1'), ('c', 'e0')),
        host('c', ('b', 'e1'), ('d', 'e0')), host('d', ('c', 'e1'), ('a', 'e0'))]}))
    done = run([find_program('torusctl'), '--json', 'discover', '--from', path], 20)
    assert done.returncode == 0 and json.loads(done.stdout)['dims'] == [4]
    text = run([find_program('torusctl'), 'discover', '--from', path, '--output', '-'], 20).stdout
    assert 'dims = 4\n' in text and '[d]\nrank = ' in text
    cluster = tmp_path / 'cluster.ini'
    cluster.write_text(text)
    compare = [find_program('torusctl'), 'discover', '--from', path, '--cluster', cluster]
    assert run(compare, 20).returncode == 0
    for before, after, says in (('= e1', '= lan0', r'\w has port [+-]0 at lan0 in the file, and at e1 here'),
                                ('[c]', '[x]', r'rank \d is x in the file, and c here'),
                                ('rank = 2\n', f'rank = 2\nid = {"7" * 32}\n', rf'\w has the id {"7" * 32} in the file')):
        cluster.write_text(text.replace(before, after, 1))
        differs = run(compare, 20)
        assert differs.returncode == 1 and re.search(says, differs.stdout), differs.stdout
    network = json.loads(done.stdout)['network']
    picture = run([find_program('torusctl'), 'discover', '--from', path], 20).stdout
    assert f'\n{network}\n' in picture and '  a -- b -- c -- d --\n' in picture, picture
    drawn = ElementTree.fromstring(run([find_program('torusctl'), 'discover', '--from', path, '--svg', '-'], 20).stdout)
    texts = {''.join(text.itertext()) for text in drawn.iter('{http://www.w3.org/2000/svg}text')}
    assert {'a', 'b', 'c', 'd', 'e0', 'e1'} <= texts, texts
    done = run([find_program('torusctl'), '--json', 'discover', '--from', path, '--exclude', 'e0'], 20)
    assert done.returncode == 1 and json.loads(done.stdout)['finding'] != 'fits'
