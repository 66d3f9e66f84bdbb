"""Routing daemons on the hosts of an emulated torus: torus-routed, OSPF of FRR and of BIRD, both with BFD, and
babeld. Their timers are the shortest that their manuals advise, and they use the carrier of the cables."""

import shutil
import subprocess
import time

from torus_net import TorusError, interrupts
from torus_net.ip_hosts import IpHosts
from torus_net.patience import Patience

# What all systems get. TCP is the same for all of them.
PREPARE = '''cd /proc/sys/net/ipv4
echo {congestion} >tcp_congestion_control
echo 0 >tcp_early_retrans
'''
# What torus-routed sets by itself. A pulled cable takes no addresses away, but "ip link set down" does.
HOST = '''set -e
ip link add torus0 type veth peer name torus0-peer
ip link set torus0-peer up
ip addr add {address}/32 dev torus0
ip link set torus0 up
cd /proc/sys/net
echo 1 >ipv4/ip_forward
echo 1 >ipv4/fib_multipath_hash_policy
[ ! -e ipv4/fib_multipath_hash_seed ] || echo {rank} >ipv4/fib_multipath_hash_seed
for i in all {interfaces}; do echo 0 >ipv4/conf/$i/rp_filter; done
for i in {interfaces}; do
    echo 1 >ipv6/conf/$i/keep_addr_on_down
    echo 0 >ipv6/conf/$i/disable_ipv6
    ip -6 addr add fe80::{rank}/64 dev $i nodad
done
'''


class Hosts(IpHosts):
    """Hosts with names and addresses, as launchers of MPI need them. Others make the routes."""

    def _start_routed(self, without, congestion):
        pass

    def _await_routes(self):
        pass


class Routed:
    """torus-routed, as --ip-routes of the launcher starts it."""

    name = 'torus-routed'

    def __init__(self, net, folder):
        self.net = net
        net.torus.set_ip_routes()

    @property
    def processes(self):
        return self.net.torus.ip_hosts.routed

    def lines(self):
        return 1  # "ip_routes = yes", the default, in the one file of the cluster

    def stop(self):
        self.net.torus.ip_hosts.undo()


class Other:
    """A routing daemon on every host. Subclasses say how it is configured and started."""

    def __init__(self, net, folder):
        self.net, self.folder, self.processes, self.texts = net, folder, [], []
        torus = net.torus
        torus.ip_hosts = Hosts(torus)
        stages = {}
        for node in torus.nodes:
            interfaces = [node.interface(port.name) for port in net.geometry.ports(node.rank)]
            address = net.own_address(node.rank)
            node.run('sh', '-s', stdin=HOST.format(address=address, rank=node.rank + 1,
                                                   interfaces=' '.join(interfaces)))
            for stage, program in enumerate(self.programs(node.rank, address, interfaces)):
                executable = program[2][0]
                if not shutil.which(executable):
                    raise TorusError(f'{executable} is missing')
                stages.setdefault(stage, []).append((node, *program))
        for _, programs in sorted(stages.items()):
            self._start(programs)

    def _start(self, programs):
        for node, name, text, command, _ in programs:
            (self.folder / f'{node.rank}.{name}').write_text(text)
            self.texts.append(text)
            with interrupts.held(), open(self.folder / f'{node.rank}.{name}.log', 'w', encoding='utf-8') as log:
                self.processes.append(subprocess.Popen(
                    [*node.host.enter(), 'setpriv', '--pdeathsig', 'TERM', *command], stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log))
        patience = Patience(20)
        for node, name, _, _, socket in programs:
            while socket is not None and not socket.exists():
                if patience.over:
                    raise TorusError(f'{name} of node {node.rank} does not start: '
                                     f'{(self.folder / f"{node.rank}.{name}.log").read_text()[-500:]}')
                time.sleep(0.02)

    def programs(self, rank, address, interfaces):
        """(name, configuration, command, socket that it makes for the next one or None) of each program."""
        raise NotImplementedError

    def lines(self):
        """Lines of configuration a host."""
        return round(sum(len(text.splitlines()) for text in self.texts) / len(self.net.torus.nodes))

    def stop(self):
        with interrupts.held():
            for process in reversed(self.processes):
                process.terminate()
            for process in self.processes:
                process.wait()


class Babeld(Other):
    """Hellos come every half second. The metrics of cables do not vary, so they need no smoothing (-M 0)."""

    name = 'babeld'

    def programs(self, rank, address, interfaces):
        text = 'link-detect true\n' + ''.join(
            f'interface {name} type wired link-quality false hello-interval 0.5 update-interval 2\n'
            for name in interfaces)
        text += f'redistribute local ip {address}/32 allow\nredistribute local deny\n'
        text += f'install ip 10.128.0.0/16 pref-src {address}\n'
        yield 'babeld', text, ['babeld', '-M', '0', '-I', str(self.folder / f'{rank}.pid'), '-S',
                               str(self.folder / f'{rank}.state'), '-c', str(self.folder / f'{rank}.babeld')], None


class Bird(Other):
    """Routes are computed again every second ("tick"), which is the least that BIRD accepts."""

    name = 'bird'

    def programs(self, rank, address, interfaces):
        cables = ''.join(f'    interface "{name}" {{ type ptp; hello 1; dead 4; check link on; bfd on; }};\n'
                         for name in interfaces)
        text = f'''router id {address};
protocol device {{ scan time 1; }}
protocol kernel {{
  ipv4 {{ export filter {{ krt_prefsrc = {address}; accept; }}; }};
  merge paths on;
}}
protocol bfd {{ interface "*" {{ min rx interval 50 ms; min tx interval 50 ms; multiplier 3; }}; }}
protocol ospf v2 {{
  ecmp yes;
  tick 1;
  ipv4 {{ import all; export none; }};
  area 0 {{
    interface "torus0" {{ stub; }};
{cables}  }};
}}
'''
        yield 'bird', text, ['bird', '-f', '-c', str(self.folder / f'{rank}.bird'), '-s',
                             str(self.folder / f'{rank}.ctl')], None


class Frr(Other):
    name = 'frr'

    def programs(self, rank, address, interfaces):
        cables = ''.join(f'''interface {name}
 ip ospf area 0
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
 ip ospf bfd
 ip ospf bfd profile fast
''' for name in interfaces)
        ospf = f'''interface torus0
 ip ospf area 0
{cables}router ospf
 ospf router-id {address}
 passive-interface torus0
 timers throttle spf 0 50 500
'''
        zebra = f'''ip protocol ospf route-map SOURCE
route-map SOURCE permit 10
 set src {address}
'''
        bfd = '''bfd
 profile fast
  detect-multiplier 3
  receive-interval 50
  transmit-interval 50
'''
        folder = self.folder / f'frr{rank}'
        folder.mkdir()
        for path in self.folder, folder:
            path.chmod(0o777)
        common = ['-u', 'frr', '-g', 'frr', '--vty_socket', str(folder), '-z', str(folder / 'zserv')]
        for program, own, socket in (('zebra', zebra, folder / 'zserv'), ('bfdd', bfd, folder / 'bfdd.sock'),
                                     ('ospfd', ospf, None)):
            more = ['--bfdctl', str(folder / 'bfdd.sock')] if program == 'bfdd' else []
            yield program, own, [f'/usr/lib/frr/{program}', '-f', str(self.folder / f'{rank}.{program}'), '-i',
                                 str(folder / f'{program}.pid'), *common, *more], socket


SYSTEMS = {system.name: system for system in (Routed, Frr, Bird, Babeld)}
