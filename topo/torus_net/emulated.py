"""A torus in Mininet: a network namespace per node and a cable per link, without switches or a
controller.

Used in two ways: MininetTorus builds the network itself, quickly; `mn --custom topo/torus.py` builds
it from TorusTopo with Mininet's own links and their options. In both cases a TorusHost configures its
interfaces, and its daemon runs from the time when all hosts are ready until the hosts are removed.
"""

import atexit
import os
import subprocess
import sys

from . import interrupts
from .addresses import MOST_LINKS, link_address, port_address
from .cable import Cables
from .geometry import UsageError, port_word
from .ip_hosts import IpHosts
from .limit import Cable, make_limit
from .mininet_api import Host, Intf, Link, Mininet, Topo, lg
from .obstacle import mininet_obstacle
from .processor import Shares, parse_share
from .process import Daemon, RunFolder, TorusError, stop_all
from .rate import MININET_MAX_MBIT, parse_mbit
from .torus import Node, Torus
from .words import counted, plural

NOBODY = '02:00:00:00:00:01'  # no interface has this hardware address


def host_name(rank):
    return f'n{rank}'


def interface_name(rank, port):
    """At most 15 characters: "n1023-minus0", "n12-0to3"."""
    return f'{host_name(rank)}-{port_word(port)}'


class TorusTopo(Topo):
    """`torus,4,8`, `torus,4x8`, `torus,3,4,5`; a size with `m` ("4m") does not wrap.

    More parameters for `mn`: bin, memory, data_root (several separated by ":"), keep_logs, bw, which
    limits links as `--link tc,bw=...` does, and burst or cable=1, as the launcher's options.
    """

    def build(self, *sizes, torus=None, bin=None, memory=None, data_root=None, keep_logs=None,
              bw=None, burst=None, cable=False):
        if torus is None:
            roots = str(data_root).split(':') if data_root is not None else ()
            torus = MininetTorus('x'.join(map(str, sizes)) or '4x4', bin=bin, memory=memory, bw=bw,
                                 burst=burst, cable=bool(cable), data_roots=roots,
                                 keep_logs=keep_logs)
            torus.adopted = True
        self.torus = torus
        geometry = torus.geometry
        for rank in range(geometry.nodes):
            self.addHost(host_name(rank), cls=TorusHost, rank=rank, torus=torus)
        limit = {} if torus.limit is None else {'cls': TorusLink, 'limit': torus.limit}
        for link in geometry.links:
            (a, a_port), (b, b_port) = link.ends
            self.addLink(host_name(a), host_name(b), port1=a_port.number, port2=b_port.number,
                         intfName1=interface_name(a, a_port), intfName2=interface_name(b, b_port),
                         **limit)


class TorusHost(Host):
    """A node: a namespace whose interfaces are the node's ports, and the daemon in it."""

    own_address = None  # where all other hosts reach it, if there are routes

    def IP(self, intf=None):
        """For Mininet's commands, such as pingall."""
        return self.own_address if intf is None and self.own_address else super().IP(intf)

    def defaultIntf(self):
        """Mininet's prompt replaces a host's name by the address of this interface."""
        found = super().defaultIntf()
        return found if self.own_address is None else _OwnAddress(found.name, self.own_address)

    def config(self, **params):
        """Called by Mininet when all links are there."""
        torus = self.params['torus']
        try:
            with interrupts.held():
                self._configure_network()
                torus.adopt(self)
        except (TorusError, UsageError, OSError) as e:
            if torus.adopted:  # after an Exception mn kills processes and removes files of others
                raise SystemExit(f'torus: {e}') from e
            raise
        return {}

    def read(self, size=1024):
        """Raises TorusError if the host's shell has exited. Mininet would wait for ever."""
        while not self.readbuf and not self.pollOut.poll(500):
            if self.shell.poll() is not None:
                raise TorusError(f'the shell of {self.name} exited unexpectedly')
        return super().read(size)

    def terminate(self):
        """Called by Mininet for one host after another. The first call stops all daemons."""
        stop_all([node.daemon for node in self.params['torus'].nodes])
        super().terminate()

    def _enter_share(self):
        torus = self.params['torus']
        return torus.shares.enter(self.params['rank']) if torus.shares else []

    def _enter_network(self):
        return ['nsenter', f'--net=/proc/{self.pid}/ns/net']

    def enter(self):
        """A command prefix that runs a command on this host: in its namespace, with its share of a processor."""
        return [*self._enter_share(), *self._enter_network()]

    def popen(self, *args, **options):
        """For Mininet's own commands."""
        return super().popen(*args, **{'mncmd': [*self._enter_share(), 'mnexec', '-da', str(self.pid)], **options})

    def run(self, *argv, stdin=None):
        """Runs a command of the launcher in this namespace; no share limits it. Returns its output; TorusError if it
        fails."""
        result = subprocess.run([*self._enter_network(), *argv], input=stdin, capture_output=True, text=True,
                                start_new_session=True)
        if result.returncode:
            raise TorusError(f'{self.name}: {" ".join(argv)}: '
                             f'{(result.stderr or result.stdout).strip()}')
        return result.stdout

    def _configure_network(self):
        torus, rank = self.params['torus'], self.params['rank']
        ip, tc, cables = ['link set lo up'], [], {}
        for port in torus.geometry.ports(rank):
            interface = self.intfs[port.number]
            check_interface_rate(interface)
            link = torus.geometry.link(rank, port)
            interface.ip, interface.prefixLen = str(link_address(link, port)), 31
            ip.append(f'addr add {interface.ip}/31 dev {interface.name}')
            limit = interface.limit if isinstance(interface, TorusIntf) else None
            if limit is not None:
                limit = limit.at(torus.rate(rank, port.name))
                ip += limit.ip_lines(interface.name)
                tc += limit.tc_lines(interface.name)
            if isinstance(limit, Cable):
                cables[interface.name] = limit.mbit
            ip.append(f'link set {interface.name} up')
            ip.append(self.neighbour_entry(port))
        # IPv6 would send packets of its own on the links; a kernel without IPv6 lacks these files.
        # TCP should not forget the capacity of a link while the link is idle.
        script = ('for i in all default; do echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done '
                  f'2>/dev/null\nset -e\necho 0 >/proc/sys/net/ipv4/tcp_slow_start_after_idle\n'
                  f'ip -batch - <<END\n' + '\n'.join(ip) + '\nEND\n')
        if tc:
            script += 'tc -batch - <<END\n' + '\n'.join(tc) + '\nEND\n'
        self.run('sh', '-s', stdin=script)
        if cables:
            torus.cables().attach(self.pid, cables)

    def neighbour_entry(self, port, mac=None):
        """The line for `ip -batch` that sets the neighbour's hardware address, so that ARP is not used."""
        interface = self.intfs[port.number]
        link = self.params['torus'].geometry.link(self.params['rank'], port)
        other = (interface.link.intf2 if interface.link.intf1 is interface else
                 interface.link.intf1)
        return (f'neigh replace {link_address(link, port.opposite)} lladdr {mac or other.mac} '
                f'dev {interface.name} nud permanent')


class _OwnAddress:
    """An interface of which only the address is used."""

    def __init__(self, name, address):
        self.name = name
        self.IP = self.updateIP = lambda: address

    def __str__(self):
        return self.name


class TorusIntf(Intf):
    """An interface, which its TorusHost configures together with the host's others."""

    def config(self, limit=None, **_params):
        self.limit = limit
        return {}


class TorusLink(Link):
    """A cable created by one command, directly between two namespaces."""

    def __init__(self, node1, node2, **params):
        params['intf'] = TorusIntf
        super().__init__(node1, node2, **params)

    @classmethod
    def makeIntfPair(cls, intfname1, intfname2, addr1=None, addr2=None, node1=None, node2=None,
                     deleteIntfs=True):
        command = ['ip', 'link', 'add', 'name', intfname1, 'address', addr1, 'netns',
                   str(node1.pid), 'type', 'veth', 'peer', 'name', intfname2, 'address', addr2,
                   'netns', str(node2.pid)]
        result = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
        if result.returncode:
            raise TorusError(f'{" ".join(command)}: {result.stderr.strip()}')

    def stop(self):
        """Nothing to do: the cable is removed with the namespaces."""


def check_interface_rate(interface):
    """TorusError if Mininet would ignore the rate of this interface, whatever its class."""
    rate = interface.params.get('bw')
    if rate is not None:
        try:
            return parse_mbit(rate, MININET_MAX_MBIT)
        except UsageError as e:
            raise TorusError(f'{interface.name}: {e}') from e
    return None


class _Net(Mininet):
    """Mininet that a signal cannot interrupt between creating something and recording it."""

    def addHost(self, *args, **params):
        with interrupts.held():
            return super().addHost(*args, **params)

    def addLink(self, *args, **params):
        with interrupts.held():
            return super().addLink(*args, **params)


class MininetNode(Node):
    """A node in its own namespace; `host` is Mininet's object for it."""

    def __init__(self, torus, rank, daemon, addresses, host):
        super().__init__(torus, rank, daemon, addresses)
        self.host = host

    def interface(self, port_name):
        return interface_name(self.rank, self.torus.geometry.port(self.rank, port_name))

    def enter(self):
        hosts = self.torus.ip_hosts
        return hosts.enter(self.rank) if hosts is not None else self.host.enter()

    def run(self, *argv, stdin=None):
        """Runs a command in the node's namespace. Returns its output."""
        return self.host.run(*argv, stdin=stdin)

    def counters(self):
        """The interfaces' counters by port ("+0", and "lo"): tx and rx bytes and packets."""
        names = {self.interface(port.name): port.name
                 for port in self.torus.geometry.ports(self.rank)}
        result = {}
        with open(f'/proc/{self.host.pid}/net/dev') as lines:
            for line in lines:
                interface, colon, figures = line.partition(':')
                if not colon:
                    continue
                figures = list(map(int, figures.split()))
                interface = interface.strip()
                result[names.get(interface, interface)] = {
                    'rx_bytes': figures[0], 'rx_packets': figures[1],
                    'tx_bytes': figures[8], 'tx_packets': figures[9]}
        return result


class MininetTorus(Torus):
    """See Torus. `bw` is the limit of each link, in both directions.

    rates       {(rank, port name): limit} of what a node sends by a port, where that is not `bw`
    burst       bytes that pass a link at once after a pause, e.g. "1514" (default: as Mininet's links)
    cable       links carry one packet after another, and none at once
    cpu         the share of a processor that each thread of a host may use (default: no limit)
    cores       a host may use this many times `cpu`
    """

    kind = 'Mininet'
    max_mbit = MININET_MAX_MBIT

    def __init__(self, *args, burst=None, cable=False, rates=None, cpu=None, cores=1, **options):
        super().__init__(*args, **options)
        if len(self.geometry.links) > MOST_LINKS:
            raise UsageError(f'{self.geometry} has more links than 10.0.0.0/8 has subnets')
        self.limit = make_limit(self.bw, burst, cable)
        self.rates = dict(rates or {})
        self.cpu = None if cpu is None else parse_share(cpu)
        self.cores = cores
        if self.cpu is not None:
            self.daemons_per_processor = max(self.daemons_per_processor, 1 / (self.cpu * cores))
            self.slowness = max(self.slowness, 1 / self.cpu)
        self.shares = None  # of the processors, while the torus runs
        self.net = None
        self.ip_hosts = None  # see set_ip_routes()
        self._cables = None
        self.adopted = False  # the network belongs to `mn`, which also takes it down

    def _build(self):
        obstacle = mininet_obstacle()
        if obstacle:
            raise UsageError(obstacle)
        Mininet.inited = True  # else it changes kernel settings of the whole machine
        lg.setLogLevel('output')  # output of commands at the prompt, without progress
        if self.cpu is not None:
            self._share_processors()
        self.say(f'creating {counted(self.geometry.nodes, "namespace")} and '
                 f'{counted(len(self.geometry.links), "link")}')
        topo = TorusTopo(torus=self)
        self.net = _Net(topo=topo, link=TorusLink, controller=None, build=False)
        self.net.build()

    def _share_processors(self):
        wanted, present = self.cpu * self.cores * self.geometry.nodes, len(os.sched_getaffinity(0))
        if wanted > present:
            self.say(f'the shares of all hosts are {wanted:g} processors, but there {plural(present, "is", "are")} '
                     f'{present}: hosts that are busy at the same time get less')
        self.shares = Shares(self.cpu, self.cores, self.geometry.nodes)

    def stop(self, failed=False):
        if self.shares is not None:
            self.shares.lift()
        return super().stop(failed)

    def _tear_down(self):
        if self.ip_hosts is not None:
            self.ip_hosts.stop()
            self.ip_hosts = None
        if self.net is not None and not self.adopted:
            for host in self.net.hosts:
                host.terminate()
            self.net = None
        if self._cables is not None:
            self._cables.close()
            self._cables = None
        if self.shares is not None:
            self.shares.close()
            self.shares = None

    def set_ip_routes(self, without=None, congestion=None, prefix6=None):
        """Makes all nodes reachable by IP, as hosts with names: see IpHosts."""
        self.ip_hosts = IpHosts(self, without, congestion, prefix6)
        for node, address in zip(self.nodes, self.ip_hosts.addresses):
            node.host.own_address = address

    def enter(self):
        return [] if self.ip_hosts is None else self.ip_hosts.enter(0)

    def environment(self):
        more = {} if self.ip_hosts is None else self.ip_hosts.environment()
        return {**super().environment(), **more}

    def cables(self):
        if self._cables is None:
            self._cables = Cables(2 * len(self.geometry.links))
        return self._cables

    def adopt(self, host):
        """Adds a host whose network is ready. Under `mn`, the last host starts all daemons."""
        if self.run is None:
            self.run = RunFolder(self.keep_logs, self.data_roots)
            atexit.register(self._leave)
        rank = host.params['rank']
        if self.shares is not None:
            self.shares.add(rank, host.pid)
        if self.adopted and self.bw is None:
            rates = {check_interface_rate(interface) for interface in host.intfs.values()}
            self.bw = rates.pop() if len(rates) == 1 else None
            self.limit = make_limit(self.bw)
        addresses = {port.name: port_address(self.geometry, rank, port)
                     for port in self.geometry.ports(rank)}
        daemon = Daemon(rank, self.command(rank, addresses), self.run, self.wrap, host.enter())
        self.nodes.append(MininetNode(self, rank, daemon, addresses, host))
        if self.adopted and len(self.nodes) == self.geometry.nodes:
            for node in self.nodes:
                node.start()

    def _leave(self):
        """At the end of `mn`, whatever its reason: leaves no daemon and no folder behind."""
        for problem in self.stop():
            print(f'torus: {problem}', file=sys.stderr)
        if self.kept_logs:
            print(f'torus: logs in {self.kept_logs}', file=sys.stderr)

    # --- rates of links ---

    def rate(self, rank, port_name):
        """The limit in Mbit/s of what a node sends by a port; None without limits."""
        return self.rates.get((rank, self.geometry.port(rank, port_name).name), self.bw)

    def set_rate(self, rank, port_name, mbit):
        """Changes the limit of what a node sends by a port, while the torus runs."""
        if self.limit is None or self.adopted:
            raise UsageError('these links have no limit that can be changed: start the torus with torus.py --bw')
        mbit, node = parse_mbit(mbit, self.max_mbit), self.node(rank)
        limit, interface = self.limit.at(mbit), node.interface(port_name)
        node.run('tc', '-batch', '-', stdin='\n'.join(limit.change_lines(interface)) + '\n')
        if isinstance(limit, Cable):
            self.cables().attach(node.host.pid, {interface: mbit})
        self.rates[rank, port_name] = mbit

    # --- faults of links ---

    def link_down(self, rank, port_name):
        """Pulls the cable: both ends lose their carrier."""
        node = self.node(rank)
        node.run('ip', 'link', 'set', node.interface(port_name), 'down')

    def link_up(self, rank, port_name):
        node = self.node(rank)
        node.run('ip', 'link', 'set', node.interface(port_name), 'up')
        self._set_neighbours(rank, port_name)

    def link_mute(self, rank, port_name):
        """Keeps the carrier up, but neither end receives what the other sends."""
        self._set_neighbours(rank, port_name, NOBODY)

    def link_mute_one_way(self, rank, port_name):
        """The other end no longer receives what this end sends; this end still receives. link_unmute() ends it."""
        host = self.node(rank).host
        port = self.geometry.port(rank, port_name)
        host.run('ip', '-batch', '-', stdin=host.neighbour_entry(port, NOBODY) + '\n')

    def link_unmute(self, rank, port_name):
        self._set_neighbours(rank, port_name)

    def _set_neighbours(self, rank, port_name, mac=None):
        port = self.geometry.port(rank, port_name)
        there = self.geometry.neighbour(rank, port)
        for at, its_port in ((rank, port), (there, port.opposite)):
            host = self.node(at).host
            host.run('ip', '-batch', '-', stdin=host.neighbour_entry(its_port, mac) + '\n')


def rate_of_link_option(text):
    """Checks the bw of mn's option `--link tc,bw=...`; UsageError if Mininet would ignore it."""
    for part in text.split(',')[1:]:
        name, equals, value = part.partition('=')
        if equals and name == 'bw':
            return parse_mbit(value, MININET_MAX_MBIT)
    return None

