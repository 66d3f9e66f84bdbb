"""What the kernel does with packets to other hosts, not what torus-routed has set: policy rules, other tables, lower metrics,
and firewalls, in `torusctl routes` and `torusctl doctor`, with commands that mend it."""

import json

import pytest
from support.routed import all_converged, give_ipv6, ping_all, with_routes
from support.waiting import wait_for

VPN = 'ip link add vpn0 type veth peer name vpn1; ip link set vpn0 up; ip link set vpn1 up; '

# What others do, to which hosts, and what is said of it.
DIVERSIONS = {
    'a rule of a VPN': (VPN + 'ip route add 10.128.0.0/9 dev vpn0 table 52; ip rule add pref 5270 lookup 52',
                        {1, 2, 3}, 'policy rule 5270 takes them to table 52, by vpn0'),
    'another table': (VPN + 'ip route add 10.0.0.0/8 dev vpn0 table 777; ip route add throw 10.0.0.0/16 table 777; ip rule add pref 100 lookup 777',
                        {1, 2, 3}, 'policy rule 100 takes them to table 777, by vpn0'),
    'the first rule': (VPN + 'ip route add 10.128.0.0/9 dev vpn0 table 9; ip rule add pref 1 not fwmark 7 lookup 9',
                       {1, 2, 3}, 'policy rule 1 takes them to table 9, by vpn0'),
    'a rule for what comes from here': (
        VPN + 'ip route add default dev vpn0 table 52; ip rule add pref 5 from 10.128.0.1 lookup 52',
        {1, 2, 3}, 'policy rule 5 takes them to table 52, by vpn0'),
    'a rule that refuses': ('ip rule add pref 40 to 10.128.0.3 prohibit', {2},
                            'policy rule 40 refuses them: Permission denied'),
    'a rule that drops': ('ip rule add pref 40 to 10.128.0.2/31 blackhole', {1, 2},
                          'policy rule 40 refuses them: Invalid argument'),
    'a lower metric': (VPN + 'ip route add 10.128.0.3/32 dev vpn0 metric 10', {2},
                       'another route of the main table takes them, with the metric 10, by vpn0'),
    'no metric': (VPN + 'ip route add 10.128.0.3/32 dev vpn0', {2},
                  'another route of the main table takes them, with the metric 0, by vpn0'),
    'an address of this host': (VPN + 'ip addr add 10.128.0.2/32 dev vpn0', {1},
                                'the address belongs to this host, too (vpn0)'),
}


def routes(torus):
    return torus.ip_hosts.routes(0)


def diverted(torus):
    return {route['node'] for route in routes(torus)['routes'] if route['state'] == 'diverted'}


def finding(torus):
    """What doctor says about the IP routes of host 0: the worst, and how to mend it."""
    done = torus.ctl(0, '--json', 'doctor', timeout=60)
    found = [one for one in json.loads(done.stdout)['findings']
             if one['check'] == 'ip routes' and one['severity'] == 'error']
    return found[0] if found else None


@pytest.mark.parametrize('what', DIVERSIONS)
def test_what_takes_packets_elsewhere_is_named_with_its_remedy(mininet, what):
    command, hosts, says = DIVERSIONS[what]
    torus = with_routes(mininet)
    assert diverted(torus) == set() and routes(torus)['problem'] is None
    torus.node(0).run('sh', '-ec', command)
    report = routes(torus)
    assert diverted(torus) == hosts
    assert says in report['problem'], report['problem']
    for route in report['routes']:
        assert (says in route['why']) == (route['node'] in hosts)
    said = finding(torus)
    assert f'does not use its routes to {len(hosts)} other machine' in said['what'] and says in said['what'], said
    # Each command mends one cause.
    for _ in range(3):
        mend = next((route['mend'] for route in routes(torus)['routes'] if route['mend']), None)
        if mend is None:
            break
        assert mend.startswith('sudo ip ') and mend in routes(torus)['problem']
        torus.node(0).run('sh', '-ec', mend.removeprefix('sudo '))
    assert diverted(torus) == set() and routes(torus)['problem'] is None
    wait_for(lambda: finding(torus) is None)  # facts are kept for a moment
    ping_all(torus)


def test_a_rule_that_takes_a_cable_down_is_named(mininet):
    """The cables have IPv4 addresses; a VPN takes everything."""
    torus = with_routes(mininet)
    torus.node(0).run('sh', '-ec', VPN + 'ip route add default dev vpn0 table 52; ip rule add pref 5270 lookup 52')

    def found():
        done = json.loads(torus.ctl(0, '--json', 'doctor', timeout=60).stdout)['findings']
        return [one for one in done if one['check'] == 'links' and 'policy rule 5270 takes them' in one['what']]
    wait_for(found)
    said = found()[0]['mend']
    assert said.endswith(': sudo ip rule add pref 5269 to 10.0.0.1/32 lookup main')
    torus.node(0).run('sh', '-ec', said.split(': sudo ')[1])
    wait_for(lambda: torus.links(0)['links'][0]['state'] == 'up')


def test_ipv6_is_asked_for_too(mininet):
    torus = mininet('2m')
    give_ipv6(torus, 'default', 'lo')
    torus.set_ip_routes(prefix6='fd12:3456:789a::')
    all_converged(torus)
    assert diverted(torus) == set(), routes(torus)
    torus.node(0).run('ip', '-6', 'rule', 'add', 'pref', '30', 'to', 'fd12:3456:789a::/48', 'prohibit')
    route, = routes(torus)['routes']
    assert route['state'] == 'diverted' and 'policy rule 30 refuses them' in route['why']
    torus.node(0).run('sh', '-ec', route['mend'].removeprefix('sudo '))
    assert diverted(torus) == set()


def test_a_firewall_is_seen_or_not(mininet):
    torus = mininet('2m')
    torus.node(0).run('nft', 'add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; '
                      'policy drop; }')
    torus.set_ip_routes()
    all_converged(torus)
    wait_for(lambda: 'drops packets that this host should forward' in routes(torus)['firewall'],
             what=lambda: routes(torus)['firewall'])
    wait_for(lambda: 'no policy drops what is forwarded' in torus.ip_hosts.routes(1)['firewall'])
