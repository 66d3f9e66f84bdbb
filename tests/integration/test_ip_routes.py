"""torusctl ip-routes: its scripts, their effects on hosts, and that they remove everything again."""

import json
import os
import re
import shutil
import subprocess
from collections import deque

import pytest
from support.launcher import bench  # noqa: F401
from support.routed import ping_all
from torus_net import Geometry, find_program
from torus_net.geometry import Port


def torusctl(*arguments, **options):
    return subprocess.run([find_program('torusctl'), *map(str, arguments)], capture_output=True,
                          text=True, **options)


def write_hosts(path, geometry, interface=lambda rank, port: f'eth{port.number}'):
    lines = []
    for rank in range(geometry.nodes):
        lines += [f'[h{rank}]', f'rank = {rank}']
        lines += [f'{port.name} = {interface(rank, port)}' for port in geometry.ports(rank)]
    path.write_text('\n'.join(lines) + '\n')
    return path


def write_scripts(folder, dims, *options, **hosts):
    """Returns the folder with the scripts."""
    file = write_hosts(folder / 'hosts.ini', Geometry(dims), **hosts)
    done = torusctl('ip-routes', '--dims', dims, '--hosts', file, '--to', folder / 'out', *options)
    assert done.returncode == 0, done.stderr
    return folder / 'out'


# --- the scripts ---

def links_of(geometry, without=()):
    """{(rank, port): rank} of the cables that work."""
    broken = set()
    for rank, name in without:
        for port in geometry.ports(rank) if name is None else [geometry.port(rank, name)]:
            broken |= {end for end in geometry.link(rank, port).ends}
    return {(rank, port): geometry.neighbour(rank, port) for rank in range(geometry.nodes)
            for port in geometry.ports(rank) if (rank, port) not in broken}


def distances(links, start):
    found, todo = {start: 0}, deque([start])
    while todo:
        at = todo.popleft()
        for (rank, _), there in links.items():
            if rank == at and there not in found:
                found[there] = found[at] + 1
                todo.append(there)
    return found


ROUTE = re.compile(r'route add (\S+)/32 via (\S+) dev eth(\d+) onlink src (\S+) proto 84')


@pytest.mark.parametrize('dims,without', [
    ('3x3', ()), ('1x4', ()), ('2', ()), ('2x2x2', ()), ('5m', ()), ('4x3m', ((0, '+0'), (7, '-1'))),
    ('1x4', ((1, '+1'), (3, '+1'))), ('2x3', ((0, '+0'), (4, None)))])
def test_scripts_lead_by_shortest_ways(tmp_path, dims, without):
    geometry = Geometry(dims)
    options = ['--without', ','.join(f'{rank}:{name}' if name else str(rank) for rank, name in without)]
    out = write_scripts(tmp_path, dims, *(options if without else []))
    links = links_of(geometry, without)
    address = {rank: f'10.128.0.{rank + 1}' for rank in range(geometry.nodes)}
    ways = {}
    for rank in range(geometry.nodes):
        script = (out / f'h{rank}.sh').read_text()
        for to, gateway, number, source in ROUTE.findall(script):
            port = Port(int(number) // 2, '+-'[int(number) % 2])
            assert source == address[rank] and gateway == address[links[rank, port]]
            ways[rank, to] = links[rank, port]
        used = re.search(r"^interfaces='(.*)'$", script, re.M)[1].split()
        assert used == [f'eth{port.number}' for port in geometry.ports(rank) if (rank, port) in links]
    for rank in range(geometry.nodes):
        wanted = distances(links, rank)
        assert {to for at, to in ways if at == rank} == {address[to] for to in wanted if to != rank}
        for to, hops in wanted.items():
            at, crossed = rank, 0
            while at != to:
                at, crossed = ways[at, address[to]], crossed + 1
            assert crossed == hops
    names = (out / 'hosts').read_text()
    assert names == ''.join(f'{address[rank]} h{rank}\n' for rank in address)


def test_nodes_that_cannot_be_reached_are_said(tmp_path):
    write_hosts(tmp_path / 'hosts', Geometry('2x3m'))
    command = ['ip-routes', '--dims', '2x3m', '--hosts', tmp_path / 'hosts', '--to', tmp_path / 'out',
               '--without', '1:+1,4:+1']
    said = torusctl(*command)
    assert said.returncode == 0 and re.search(r'unreachable pairs +8$', said.stdout, re.M)
    assert said.stdout.splitlines()[-2:] == ['0, 1, 3, 4', '2, 5']
    assert '"unreachable":8' in torusctl('--json', *command).stdout


def test_defaults_and_own_addresses(tmp_path):
    (tmp_path / 'hosts').write_text('''
[*]
+0 = enp1s0 ; a comment
-0 = enp2s0
[beta]
rank = 1
address = 192.168.9.9
-0 = eno1 10.0.0.3
[alpha]
rank = 0
+0 = eth7 10.0.0.2
''')
    done = torusctl('ip-routes', '--dims', '2m', '--hosts', 'hosts', '--address', '10.9.9.9',
                    '--congestion', 'cubic', '--state', '/var/tmp', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / 'ip-routes'
    assert (out / 'hosts').read_text() == '10.9.9.9 alpha\n192.168.9.9 beta\n'
    assert ('route add 192.168.9.9/32 via 10.0.0.3 dev eth7 onlink src 10.9.9.9 proto 84 congctl cubic\n'
            in (out / 'alpha.sh').read_text())
    assert "interfaces='eno1'" in (out / 'beta.sh').read_text()
    assert "state='/var/tmp'" in (out / 'beta.sh').read_text()


PAIR = '[a]\nrank = 0\n+0 = e0\n-0 = e1\n[b]\nrank = 1\n+0 = e0\n-0 = e1\n'


@pytest.mark.parametrize('text,says', [
    ('', '0 of 2 hosts'),
    ('[a]\n+0 = e0\n-0 = e1\n', '1 of 2 hosts'),
    (PAIR + '[c]\nrank = 1\n', 'hosts:9: [c] is one host too many: the torus has 2 nodes'),
    (PAIR.replace('rank = 1', 'rank = 0'), 'hosts:6: [a] and [b] both have rank 0'),
    (PAIR.replace('rank = 1\n', ''), 'hosts:5: [b] has no rank'),
    (PAIR.replace('rank = 1', 'rank = 2'), "hosts:6: '2' is not a number from 0 to 1"),
    (PAIR.replace('-0 = e1\n[b]', '[b]'), 'hosts:1: [a] needs the interface of port -0'),
    (PAIR.replace('-0 = e1\n[b]', '-0 = e0\n[b]'), 'hosts:4: [a] has e0 at two ports'),
    (PAIR + '+1 = e4\n', 'hosts:9: the torus has no port "+1"'),
    (PAIR + '+0 = e4\n', 'hosts:9: port +0 of [b] is given twice'),
    (PAIR + 'color = red\n', 'hosts:9: unknown setting "color"'),
    (PAIR + 'address = 10.0.0\n', 'hosts:9: "10.0.0" is not an IPv4 address'),
    (PAIR + 'address = 10.128.0.1\n',
     'hosts:9: the address 10.128.0.1 is used twice, by [a] (--address) and by [b]'),
    (PAIR.replace('+0 = e0', '+0 = e0 10.128.0.2', 1), 'hosts:3: the address 10.128.0.2 is used twice'),
    (PAIR.replace('+0 = e0', '+0 = e0 10.1.0.2/24') + 'address = 10.1.0.3\n',
     'hosts:7: the address 10.1.0.2 is used twice, by [a] (line 3) and by [b]'),
    *((PAIR + f'address = {address}\n', f'hosts:9: {address} {problem}: no host can have it')
      for address, problem in (
          ('0.0.0.0', 'is not specified'), ('0.1.2.3', 'is not specified'),
          ('127.0.0.1', 'is a loopback address'), ('127.255.0.9', 'is a loopback address'),
          ('224.0.0.1', 'is a multicast address'), ('239.1.1.1', 'is a multicast address'),
          ('240.0.0.1', 'is reserved'), ('255.255.255.255', 'is the broadcast address'),
          ('10.9.9.0/24', 'is the address of that network'),
          ('10.9.9.255/24', 'is the broadcast address of that network'),
          ('10.9.9.4/30', 'is the address of that network'))),
    (PAIR.replace('-0 = e1\n[b]', '-0 = e1 255.255.255.255\n[b]'),
     'hosts:4: 255.255.255.255 is the broadcast address'),
    (PAIR + 'address = 10.9.9.1/33\n', 'hosts:9: "10.9.9.1/33": the prefix'),
    (PAIR + 'address = 010.9.9.1\n', 'hosts:9: "010.9.9.1" is not an IPv4 address'),
    (PAIR + 'address = 10.1.1.1\naddress = 10.1.1.2\n', 'hosts:10: address of [b] is given twice'),
    (PAIR + 'rank = 1\n', 'hosts:9: rank of [b] is given twice; the first is in line 6'),
    (PAIR.replace('+0 = e0', '+0 = lo', 1), 'hosts:3: lo is the loopback interface'),
    (PAIR.replace('+0 = e0', '+0 = lo:1 10.0.0.1', 1), 'hosts:3: lo:1 is the loopback interface'),
    ('[*]\n+0 = lo\n' + PAIR, 'hosts:2: lo is the loopback interface'),
    (PAIR.replace('+0 = e0', '+0 = torus0', 1), 'hosts:3: torus0 is the interface that the scripts create'),
    *((PAIR.replace('[a]', f'[{a}]').replace('[b]', f'[{b}]'),
       f'hosts:5: [{b}] is the same host as [{a}] in line 1')
      for a, b in (('a', 'a'), ('a', 'A'), ('nodeA', 'NODEa'), ('a.b', 'A.B.'), ('a', 'a.b'),
                   ('a.b', 'a'))),
    (PAIR.replace('[b]', '[localhost]'), 'hosts:5: "localhost" is every host\'s name for itself'),
    (PAIR.replace('[b]', '[10.0.0.1]'), 'hosts:5: "10.0.0.1" is an address'),
    ('[*]\n+0 = e1\n[*]\n' + PAIR, 'hosts:3: [*] occurs twice; the first is in line 1'),
    (PAIR.replace('+0 = e0', '+0 = e0; rm -rf /', 1), '"e0;" is not the name of an interface'),
    (PAIR.replace('+0 = e0', '+0 = interface-of-16c', 1), 'it has 16 letters, at most 15 are possible'),
    (PAIR.replace('[b]', '[b/../c]'), '"b/../c" is not the name of a host'),
    (PAIR.replace('[b]', f'[{"b" * 254}]'), 'is too long: 254 of at most 253 letters'),
    ('+0 = e0\n' + PAIR, 'hosts:1: a setting before the first [HOST]'),
    ('[*]\nrank = 1\n' + PAIR, 'hosts:2: [*] has ports'),
    ('[*]\n+0 = e1 10.0.0.1\n' + PAIR, 'hosts:2: [*] cannot have addresses'),
    (PAIR + 'what is this\n-5 = 3\n', 'hosts:9: neither "name = value" nor "[section]"'),
])
def test_mistakes_in_the_file(tmp_path, text, says):
    (tmp_path / 'hosts').write_text(text)
    done = torusctl('ip-routes', '--dims', '2', '--hosts', 'hosts', cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr
    assert not (tmp_path / 'ip-routes').exists()


def test_names_and_addresses_that_are_alike_but_not_the_same(tmp_path):
    long = 'b' * 60 + '.example'
    (tmp_path / 'hosts').write_text(f'''
      [a.x]
      +0 = e0 10.1.0.1/31
      -0 = e1 10.1.0.0/31
[{long}]
+0 = E1 10.1.1.254/24
-0 = e1 10.1.1.1/24
''')
    done = torusctl('ip-routes', '--dims', '2', '--hosts', 'hosts', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / 'ip-routes' / f'{long}.sh').exists()
    assert (tmp_path / 'ip-routes' / 'hosts').read_text() == f'10.128.0.1 a.x\n10.128.0.2 {long}\n'


@pytest.mark.parametrize('arguments,says', [
    (['--hosts', 'hosts'], '--dims is missing'),
    (['--dims', '2'], '--hosts is missing'),
    (['--dims', '2', '--hosts', 'nothing'], 'nothing: No such file'),
    (['--dims', '2', '--hosts', '.'], '.: a folder cannot be read as a file of hosts'),
    (['--dims', '2', '--hosts', 'hosts', '--without', '2'], "--without: '2': a torus of 2 has the nodes 0 to 1"),
    (['--dims', '2', '--hosts', 'hosts', '--without', '0:+1'], "--without: '0:+1': node 0 of a torus of 2 has no link at that port"),
    (['--dims', '2', '--hosts', 'hosts', '--address', 'x'], '"x" is not an IPv4 address'),
    (['--dims', '2', '--hosts', 'hosts', '--address', '127.0.0.1'], 'not addresses of hosts'),
    (['--dims', '2', '--hosts', 'hosts', '--address', '223.255.255.255'], 'not addresses of hosts'),
    (['--dims', '2', '--hosts', 'hosts', '--address', '126.255.255.255'], 'not addresses of hosts'),
    (['--dims', '2', '--hosts', 'hosts', '--congestion', 'a b'], 'name of a congestion control'),
    (['--dims', '2', '--hosts', 'hosts', '--state', "/tmp/'"], 'not an absolute path'),
    (['--dims', '80x80', '--hosts', 'hosts'], '6400 nodes are too many'),
])
def test_mistakes_in_the_options(tmp_path, arguments, says):
    (tmp_path / 'hosts').write_text(PAIR)
    done = torusctl('ip-routes', *arguments, cwd=tmp_path)
    assert done.returncode in (1, 2) and says in done.stderr


# --- effects ---

# Everything that the scripts may change. The kernel needs some time to notice the carrier of a new cable.
SHOW = ('{ ip -o link | sed "s/ qlen.*//"; ip -o addr; ip route show table all; ip neigh; } | '
        'sed "s/NO-CARRIER,//; s/,LOWER_UP//; s/ linkdown//; s/ state [A-Z]* / /"; '
        'cd /proc/sys/net && grep -rs . ipv4 | sort')


def state_of(node):
    return node.run('sh', '-c', SHOW)


@pytest.mark.full
@pytest.mark.mininet
@pytest.mark.parametrize('dims,dead', [('3x3', None), ('1x4', None), ('3x3m', '4:+1')])
def test_every_pair_pings_and_no_trace_is_left(mininet, tmp_path, dims, dead):
    torus = mininet(dims)
    if dead:
        rank, _, port = dead.partition(':')
        torus.link_down(int(rank), port)
    out = write_scripts(tmp_path, dims, '--state', tmp_path, *(['--without', dead] if dead else []),
                        interface=lambda rank, port: torus.node(rank).interface(port.name))

    def run_all(action):
        for node in torus.nodes:
            node.run('env', f'TORUS_HOST=h{node.rank}', 'sh', str(out / f'h{node.rank}.sh'), action)

    before = [state_of(node) for node in torus.nodes]
    run_all('up')
    run_all('check')
    ping_all(torus, addresses=[f'10.128.0.{rank + 1}' for rank in range(len(torus.nodes))])
    for node in torus.nodes:
        settings = node.run('sysctl', '-n', 'net.ipv4.ip_forward', 'net.ipv4.conf.all.rp_filter',
                            'net.ipv4.conf.all.send_redirects')
        assert settings.split() == ['1', '0', '0']
    run_all('down')
    for node in torus.nodes:
        assert state_of(node).splitlines() == before[node.rank].splitlines()


@pytest.mark.mininet
@pytest.mark.parametrize('harm,says', [
    ('ip route del 10.128.0.3 proto 84', 'for 10.128.0.3 ('),
    ('ip link set n0-plus1 down; ip link set n0-plus1 up', 'for 10.128.0.2 10.128.0.3 ('),
    ('ip link del torus0', 'the interface torus0 is missing'),
    ('sysctl -qw net.ipv4.ip_forward=0', 'forwards no packets'),
    ('sysctl -qw net.ipv4.conf.all.arp_ignore=1', 'net.ipv4.conf.all.arp_ignore must be 0'),
    ('sysctl -qw net.ipv4.conf.n0-plus1.rp_filter=1', 'net.ipv4.conf.n0-plus1.rp_filter must be 0')])
def test_check_tells_what_is_missing(mininet, tmp_path, harm, says):
    torus = mininet('1x4')
    node = torus.node(0)
    out = write_scripts(tmp_path, '1x4', '--state', tmp_path,
                        interface=lambda rank, port: torus.node(rank).interface(port.name))
    script = ['env', 'TORUS_HOST=h0', 'sh', str(out / 'h0.sh')]
    node.run(*script, 'up')
    assert node.run(*script, 'check') == ''
    node.run('sh', '-c', harm)
    done = subprocess.run([*node.enter(), *script, 'check'], capture_output=True, text=True)
    assert done.returncode == 1 and says in done.stderr, done.stderr
    node.run(*script, 'up')
    assert node.run(*script, 'check') == ''
    node.run(*script, 'down')


@pytest.mark.mininet
def test_cables_without_addresses_and_unusual_settings(mininet, tmp_path):
    """Neighbours ask for the nodes' addresses. Other interfaces keep the settings that they had."""
    torus = mininet('2x2')
    geometry = torus.geometry
    out = write_scripts(tmp_path, '2x2', '--state', tmp_path,
                        interface=lambda rank, port: torus.node(rank).interface(port.name))
    addresses = [f'10.128.0.{rank + 1}' for rank in range(4)]

    def run(node, action):
        return node.run('env', f'TORUS_HOST=h{node.rank}', 'sh', str(out / f'h{node.rank}.sh'), action)

    for node in torus.nodes:
        for port in geometry.ports(node.rank):
            node.run('ip', 'addr', 'flush', 'dev', node.interface(port.name))
        node.run('sh', '-c', 'cd /proc/sys/net/ipv4/conf; echo 1 >all/rp_filter; echo 2 >lo/rp_filter; '
                             'echo 0 >lo/send_redirects; echo 1 >all/arp_ignore; '
                             f'echo 1 >{node.interface("+0")}/forwarding')
    before = [state_of(node) for node in torus.nodes]
    for node in torus.nodes:
        assert run(node, 'check') == '' and state_of(node) == before[node.rank]
        run(node, 'up')
    ping_all(torus, addresses=addresses)
    conf = torus.node(0).run('sh', '-c', 'cd /proc/sys/net/ipv4/conf; cat all/rp_filter lo/rp_filter '
                             f'lo/send_redirects lo/arp_ignore {torus.node(0).interface("-1")}/rp_filter')
    assert conf.split() == ['0', '2', '1', '1', '0']
    renewed = write_scripts(tmp_path, '2x2', '--state', tmp_path, '--without', '3',
                            interface=lambda rank, port: torus.node(rank).interface(port.name))
    assert renewed == out
    for node in torus.nodes:
        run(node, 'up')
    ping_all(torus, addresses=addresses, missing={(rank, 3) for rank in range(3)})
    for node in torus.nodes:
        run(node, 'down')
    assert [state_of(node) for node in torus.nodes] == before
    assert not list(tmp_path.glob('torus-routes-*'))
    again = subprocess.run([*torus.node(0).enter(), 'env', 'TORUS_HOST=h0', 'sh', out / 'h0.sh', 'down'],
                           capture_output=True, text=True)
    assert again.returncode == 0 and 'nothing to undo' in again.stderr


@pytest.mark.mininet
@pytest.mark.parametrize('prepare,says', [
    ('ip link del eth0', 'there is no interface eth0'),
    ('ip link set eth1 down', 'the interface eth1 is down: ip link set eth1 up'),
    ('hostname other', 'this machine is other, the script is for h1'),
    ('ip addr add 10.128.0.1/32 dev lo', 'in use on this host: 10.128.0.1 of lo'),
    ('ip addr add 10.128.3.4/16 dev eth1', "has a route to addresses of nodes: '10.128.0.0/16 dev eth1"),
    ('ip link add torus0 type veth peer name x', 'an interface torus0 exists already'),
    ('rmdir "$state"', 'cannot write to the folder'),
    ('sed -i "s/dev eth[01] onlink/dev eth9 onlink/" $out/h1.sh', 'everything is as it was before'),
])
def test_what_is_in_the_way(tmp_path, prepare, says):
    """The script says what to do, and changes nothing. IPv6 is off, because it gives new interfaces addresses of their
    own after a while."""
    (tmp_path / 'state').mkdir()
    out = write_scripts(tmp_path, '2', '--state', tmp_path / 'state')
    script = f'''
hostname h1.example.org
for i in all default; do echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done 2>/dev/null
ip link add eth0 type veth peer name peer0; ip link add eth1 type veth peer name peer1
for i in lo eth0 eth1 peer0 peer1; do ip link set $i up; done
state={tmp_path}/state out={out}
{prepare}
before=$({SHOW})
sh $out/h1.sh up; echo "status $?"
[ "$before" = "$({SHOW})" ] && echo unchanged'''
    done = subprocess.run(['unshare', '--net', '--uts', 'sh', '-c', script], capture_output=True, text=True)
    assert says in done.stderr, done.stderr
    assert done.stdout == 'status 1\nunchanged\n'
    assert not list(tmp_path.glob('state/*'))


def test_not_as_root(tmp_path):
    out = write_scripts(tmp_path, '2')
    nobody = ['setpriv', '--reuid', '65534'] if os.geteuid() == 0 else []
    text = (out / 'h1.sh').read_text()
    for action in 'up', 'down', 'check':
        done = subprocess.run([*nobody, 'sh', '-s', action], input=text, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr == f'h1.sh: run it as root: sudo sh h1.sh {action}\n'


# --- the launcher ---

@pytest.mark.mininet
def test_the_launcher_makes_hosts(bench):
    done = bench.run('1x3', '--ip-routes', '--quiet', '--run',
                     'hostname; ping -c 1 -W 5 n2 | grep -o "1 received"; $TORUS_AGENT -x n2 hostname; '
                     '$TORUS_AGENT n2 torusctl status | grep "^node "; '
                     'torusctl --json status | grep -o \'"rank":[0-9]*\'; exit 7')
    assert done.stdout.split('\n') == ['n0', '1 received', 'n2', 'node         2', '"rank":0', '']
    assert done.returncode == 7


@pytest.mark.mininet
def test_hosts_have_the_working_directory_of_the_launcher(bench):
    """So that ./program is found on all of them."""
    done = bench.run('1x2', '--ip-routes', '--quiet', '--run', 'pwd -P; $TORUS_AGENT n1 pwd -P')
    assert done.stdout.splitlines() == [os.getcwd()] * 2, done.stderr


@pytest.mark.mininet
def test_programs_on_hosts(bench):
    done = bench.run('3m', '--ip-routes', '--without', '1:+0', '--quiet', '--run-each',
                     'echo $(hostname) $(ping -c 1 -W 1 n1 | grep -c "1 received")')
    assert sorted(done.stdout.splitlines()) == ['0: n0 1', '1: n1 1', '2: n2 0'], done.stderr


@pytest.mark.mininet
def test_the_prompt_reaches_all_hosts(bench):
    done = bench.run('1x3', '--ip-routes', '--quiet', text='pingall\n')
    assert '0% dropped (6/6 received)' in done.stdout + done.stderr


@pytest.mark.parametrize('arguments', [['2x2', '--loopback', '--ip-routes'], ['2x2', '--without', '1']])
def test_contradictions(bench, arguments):
    assert bench.run(*arguments).returncode == 2


# --- mpi-env ---

def test_options_for_mpiexec(tmp_path):
    """The preload is in the folder of libtorus; other preloads are kept."""
    program = find_program('torusctl')
    needed = subprocess.run(['ldd', program], capture_output=True, text=True, check=True).stdout
    shutil.copy(re.search(r'libtorus\S* => (\S+)', needed)[1], tmp_path / 'libtorus.so.1')
    environment = {'LD_LIBRARY_PATH': str(tmp_path), 'PATH': os.environ['PATH'],
                   'ASAN_OPTIONS': 'verify_asan_link_order=0'}  # a sanitized torusctl preloads nothing

    def said(*arguments, **more):
        done = torusctl('mpi-env', *arguments, env={**environment, **more})
        return done.returncode, (done.stdout or done.stderr).splitlines()

    assert said('mpich')[0] == 1 and 'libtorus-mpich.so is not in' in said('mpich')[1][0]
    for library in 'mpich', 'openmpi':
        (tmp_path / f'libtorus-{library}.so').touch()
    assert said('mpich') == (0, [f'-genv LD_PRELOAD {tmp_path}/libtorus-mpich.so'])
    assert said('openmpi', '--oversubscribed', '--interface', 'eno3', '--socket', '/run/%h') == (0, [
        f'-x LD_PRELOAD={tmp_path}/libtorus-openmpi.so', '-x TORUS_SOCKET=/run/%h', '--mca pml ob1',
        '--mca btl tcp,vader,self', '--mca btl_tcp_if_include eno3', '--mca oob_tcp_if_include eno3',
        '--oversubscribe', '--bind-to none', '--mca mpi_yield_when_idle 1'])
    kept = said('mpich', LD_PRELOAD=f'{tmp_path}/libtorus.so.1', TORUS_SOCKET='/x.sock')
    assert kept == (0, [f'-genv LD_PRELOAD {tmp_path}/libtorus-mpich.so:{tmp_path}/libtorus.so.1',
                        '-genv TORUS_SOCKET /x.sock'])
    # Other preloads may be separated by spaces.
    kept = said('mpich', LD_PRELOAD=f'{tmp_path}/libtorus.so.1 {tmp_path}/libtorus.so.1')
    assert kept == (0, [f'-genv LD_PRELOAD {tmp_path}/libtorus-mpich.so:' +
                        ':'.join(2 * [f'{tmp_path}/libtorus.so.1'])])
    # Installed, the preloads are in a folder of their own.
    (tmp_path / 'torus').mkdir()
    for library in 'mpich', 'openmpi':
        (tmp_path / f'libtorus-{library}.so').rename(tmp_path / 'torus' / f'libtorus-{library}.so')
    assert said('mpich') == (0, [f'-genv LD_PRELOAD {tmp_path}/torus/libtorus-mpich.so'])
    assert said('mpich2')[0] == said()[0] == said('mpich', '--interface', 'a b')[0] == 2


@pytest.mark.parametrize('library,before', [('mpich', ['-genv', 'TORUS_SOCKET', '']),
                                            ('openmpi', ['-x', 'TORUS_SOCKET='])])
@pytest.mark.parametrize('socket', [b"/run/the torus/it's", b'/run/\xff\xfe', b'/run/$HOME/*', b'/run/a"b\\'])
def test_options_with_paths_of_all_kinds(tmp_path, library, before, socket):
    """A shell reads unusual paths correctly. JSON cannot contain bytes that are not text, and shows them as "?"."""
    shutil.copy(re.search(r'libtorus\S* => (\S+)', subprocess.run(
        ['ldd', find_program('torusctl')], capture_output=True, text=True, check=True).stdout)[1],
        tmp_path / 'libtorus.so.1')
    (tmp_path / f'libtorus-{library}.so').touch()

    def said(*more, folder=tmp_path):
        return subprocess.run([find_program('torusctl'), *more, '--socket', socket, 'mpi-env', library],
                              capture_output=True, env={'LD_LIBRARY_PATH': str(folder), 'PATH': os.environ['PATH'],
                                                        'ASAN_OPTIONS': 'verify_asan_link_order=0'})

    done = said()
    assert done.returncode == 0, done.stderr
    read = subprocess.run(['/bin/sh', '-c', b'printf "%s\\n" ' + done.stdout.replace(b'\n', b' ')],
                          capture_output=True, check=True).stdout.split(b'\n')[:-1]
    *first, last = before
    words = [word.encode() for word in first] + [last.encode() + socket]
    assert any(read[at:at + len(words)] == words for at in range(len(read))), read
    shown = json.loads(said('--json').stdout)['options']
    assert ' '.join(first + [last]) + socket.decode(errors='replace').replace('\ufffd', '?') in shown
    # LD_PRELOAD cannot name such a folder.
    spaced = tmp_path / 'a b'
    spaced.mkdir()
    for name in 'libtorus.so.1', f'libtorus-{library}.so':
        (tmp_path / name).rename(spaced / name)
    done = said(folder=spaced)
    assert done.returncode == 1 and b'a path in LD_PRELOAD cannot have a space' in done.stderr, done


@pytest.mark.mininet
def test_next_hops_have_weights(mininet, tmp_path):
    torus = mininet('4')
    out = write_scripts(tmp_path, '4', '--state', tmp_path, '--rate', '0:+0=0.1',
                        interface=lambda rank, port: torus.node(rank).interface(port.name))

    def run(node, action):
        return node.run('env', f'TORUS_HOST=h{node.rank}', 'sh', str(out / f'h{node.rank}.sh'), action)

    before = [state_of(node) for node in torus.nodes]
    for node in torus.nodes:
        run(node, 'up')
        assert run(node, 'check') == ''
    node, show = torus.node(0), ('ip', 'route', 'show', '10.128.0.2', 'proto', '84')
    weights = {name: int(weight) for name, weight in re.findall(r'dev (\S+) weight (\d+)', node.run(*show))}
    assert 3 * weights[node.interface('+0')] < weights[node.interface('-0')]
    assert node.run('sysctl', '-n', 'net.ipv4.fib_multipath_hash_policy') == '1\n'
    ping_all(torus, addresses=[f'10.128.0.{rank + 1}' for rank in range(4)])
    route = node.run(*show).replace('\n', ' ').replace(' src', ' proto 84 src', 1)
    for harm, says in ((f'ip route replace {re.sub("weight [0-9]+", "weight 7", route, count=1)}', 'for 10.128.0.2 ('),
                       ('sysctl -qw net.ipv4.fib_multipath_hash_policy=0', 'fib_multipath_hash_policy must be 1')):
        node.run('sh', '-c', harm)
        done = subprocess.run([*node.enter(), 'env', 'TORUS_HOST=h0', 'sh', out / 'h0.sh', 'check'],
                              capture_output=True, text=True)
        assert done.returncode == 1 and says in done.stderr, done.stderr
        run(node, 'up')
        assert run(node, 'check') == ''
    for node in torus.nodes:
        run(node, 'down')
    assert [state_of(node) for node in torus.nodes] == before
