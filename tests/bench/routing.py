"""How long a ping every 10 ms gets no answer after a cut, and how many are lost when the link returns: torus-routed
beside OSPF of FRR and of BIRD, both with BFD, and babeld, on the same emulated torus, one after the other."""

import argparse
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / 'topo')]

from torus_net import MininetTorus  # noqa: E402
from torus_net.patience import Patience  # noqa: E402

ADDRESS = '10.128.0.{}'
HOST = '''set -e
ip link add torus0 type veth peer name torus0-peer
ip link set torus0-peer up
ip addr add {address}/32 dev torus0
ip link set torus0 up
cd /proc/sys/net
echo 1 >ipv4/ip_forward
echo 1 >ipv4/fib_multipath_hash_policy
for i in all {interfaces}; do echo 0 >ipv4/conf/$i/rp_filter; done
for i in {interfaces}; do
    echo 0 >ipv6/conf/$i/disable_ipv6
    ip -6 addr add fe80::{rank}/64 dev $i nodad
done
'''


class Routed:
    """torus-routed, as --ip-routes of the launcher starts it."""

    name = 'torus-routed'

    def __init__(self, torus, folder):
        self.torus = torus
        torus.set_ip_routes()

    def lines(self):
        return 1  # "ip_routes = yes", the default, in the one file of the cluster

    def stop(self):
        self.torus.ip_hosts.stop()
        self.torus.ip_hosts = None


class Other:
    """A routing daemon on every host. Subclasses say how it is configured and started."""

    def __init__(self, torus, folder):
        self.torus, self.folder, self.processes, self.texts = torus, folder, [], []
        for node in torus.nodes:
            interfaces = [node.interface(port.name) for port in torus.geometry.ports(node.rank)]
            address = ADDRESS.format(node.rank + 1)
            node.host.run('sh', '-s', stdin=HOST.format(address=address, rank=node.rank + 1, interfaces=' '.join(interfaces)))
            for name, text, command in self.programs(node.rank, address, interfaces):
                (folder / f'{node.rank}.{name}').write_text(text)
                self.texts.append(text)
                with open(folder / f'{node.rank}.{name}.log', 'w', encoding='utf-8') as log:
                    self.processes.append(subprocess.Popen([*node.host.enter(), *command], stdin=subprocess.DEVNULL,
                                                           stdout=log, stderr=log))

    def lines(self):
        """Lines of configuration a host."""
        return round(sum(len(text.splitlines()) for text in self.texts) / len(self.torus.nodes))

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()


class Babeld(Other):
    name = 'babeld'

    def programs(self, rank, address, interfaces):
        text = ''.join(f'interface {name} type wired link-quality false hello-interval 0.5 update-interval 2\n'
                       for name in interfaces)
        text += f'redistribute local ip {address}/32 allow\nredistribute local deny\n'
        yield 'babeld', text, ['babeld', '-l', '-I', str(self.folder / f'{rank}.pid'), '-S',
                               str(self.folder / f'{rank}.state'), '-c', str(self.folder / f'{rank}.babeld')]


class Bird(Other):
    name = 'bird'

    def programs(self, rank, address, interfaces):
        cables = ''.join(f'    interface "{name}" {{ type ptp; hello 1; dead 4; check link on; bfd on; }};\n' for name in interfaces)
        text = f'''router id {address};
protocol device {{ scan time 1; }}
protocol kernel {{ ipv4 {{ export all; }}; merge paths on; }}
protocol bfd {{ interface "*" {{ min rx interval 50 ms; min tx interval 50 ms; multiplier 3; }}; }}
protocol ospf v2 {{
  ecmp yes;
  ipv4 {{ import all; export none; }};
  area 0 {{
    interface "torus0" {{ stub; }};
{cables}  }};
}}
'''
        yield 'bird', text, ['bird', '-f', '-c', str(self.folder / f'{rank}.bird'), '-s',
                             str(self.folder / f'{rank}.ctl')]


class Frr(Other):
    name = 'frr'

    def programs(self, rank, address, interfaces):
        cables = ''.join(f'''interface {name}
 ip ospf area 0
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
 ip ospf bfd 3 50 50
''' for name in interfaces)
        text = f'''interface torus0
 ip ospf area 0
{cables}router ospf
 ospf router-id {address}
 passive-interface torus0
 timers throttle spf 0 50 500
'''
        folder = self.folder / f'frr{rank}'
        folder.mkdir()
        for path in self.folder, folder:
            path.chmod(0o777)
        common = ['-u', 'frr', '-g', 'frr', '--vty_socket', str(folder), '-z', str(folder / 'zserv')]
        for program, own in ('zebra', ''), ('bfdd', ''), ('ospfd', text):
            more = ['--bfdctl', str(folder / 'bfdd.sock')] if program == 'bfdd' else []
            yield program, own, [f'/usr/lib/frr/{program}', '-f', str(self.folder / f'{rank}.{program}'), '-i',
                                 str(folder / f'{program}.pid'), *common, *more]
            time.sleep(0.2)  # zebra makes the socket that the others need


SYSTEMS = {system.name: system for system in (Routed, Frr, Bird, Babeld)}


class Pings:
    """Pings every 10 ms from node 0."""

    def __init__(self, torus, to):
        self.process = subprocess.Popen([*torus.node(0).host.enter(), 'ping', '-D', '-i', '0.01', '-W', '1',
                                         ADDRESS.format(to + 1)], stdout=subprocess.PIPE, text=True)

    def end(self):
        """(longest time without an answer in ms, how many were lost, whether one ran out of hops)"""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate()[0]
        times = [float(t) for t in re.findall(r'^\[(\d+\.\d+)\] \d+ bytes', said, re.M)]
        sent, received = map(int, re.search(r'(\d+) packets transmitted, (\d+) received', said).groups())
        longest = max((b - a for a, b in zip(times, times[1:])), default=0)
        return 1000 * longest, sent - received, 'xceeded' in said


def answers(torus, to):
    return subprocess.run([*torus.node(0).host.enter(), 'ping', '-c', '1', '-W', '1', ADDRESS.format(to + 1)],
                          stdout=subprocess.DEVNULL).returncode == 0


def wait_for(condition, what):
    patience = Patience(60)
    while not condition():
        if patience.over:
            sys.exit(f'routing-bench: {what}')
        time.sleep(0.2)


def processor_seconds(processes):
    total = 0
    for process in processes:
        fields = Path(f'/proc/{process.pid}/stat').read_text().rpartition(')')[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / 100


def measure(name, options):
    with tempfile.TemporaryDirectory(prefix='routing') as folder, MininetTorus(options.dims, bw=options.bw) as torus:
        to = torus.geometry.neighbour(0, torus.geometry.port(0, '+0'))
        system = SYSTEMS[name](torus, Path(folder))
        try:
            wait_for(lambda: answers(torus, to), f'{name}: no routes')
            time.sleep(options.rest)
            processes = torus.ip_hosts.routed if name == Routed.name else system.processes
            before = processor_seconds(processes)
            time.sleep(5)
            idle = (processor_seconds(processes) - before) / 5 / len(torus.nodes)
            cuts, lost, loops = [], [], 0
            for _ in range(options.repeats):
                pings = Pings(torus, to)
                time.sleep(0.3)
                torus.link_down(0, '+0')
                time.sleep(1)
                wait_for(lambda: answers(torus, to), f'{name}: no way around the cut')
                outage, _, looped = pings.end()
                cuts.append(outage)
                time.sleep(options.rest)
                pings = Pings(torus, to)
                time.sleep(0.3)
                torus.link_up(0, '+0')
                time.sleep(options.rest)
                _, count, looped_again = pings.end()
                lost.append(max(0, count - 1))  # one may be on its way at the end
                loops += looped + looped_again
            return {'system': name, 'dims': options.dims, 'bw': options.bw, 'outage_ms': round(statistics.median(cuts)),
                    'outage_most_ms': round(max(cuts)), 'lost_at_return': statistics.median(lost),
                    'lost_at_return_most': max(lost), 'loops': loops, 'lines_a_host': system.lines(),
                    'idle_processor': round(idle, 5)}
        finally:
            system.stop()


def main():
    parser = argparse.ArgumentParser(
        prog='routing-bench', description='Measures how long hosts do not reach each other after a cut, and what is '
        'lost when the link returns: torus-routed beside FRR, BIRD and babeld. Needs root, and the packages frr, bird2 '
        'and babeld.')
    parser.add_argument('dims', nargs='?', default='4', help='dimensions (default: 4)')
    parser.add_argument('--bw', metavar='MBIT', help='rate of each link (default: no limit)')
    parser.add_argument('--repeats', type=int, default=20, help='cuts (default: 20)')
    parser.add_argument('--rest', type=float, default=7, metavar='SECONDS',
                        help='how long nothing happens between a cut and a return (default: 7; OSPF waits 5 between two news of one router)')
    parser.add_argument('--systems', default=','.join(SYSTEMS), help=f'some of {",".join(SYSTEMS)} (default: all)')
    options = parser.parse_args()
    names = options.systems.split(',')
    for name in names:
        if name not in SYSTEMS:
            parser.error(f'argument --systems: "{name}" is none of {", ".join(SYSTEMS)}')
    for name in names:
        print(json.dumps(measure(name, options)), flush=True)


if __name__ == '__main__':
    main()
