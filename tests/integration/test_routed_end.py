"""A torus-routed that was killed and has no successor leaves nothing behind either: the next one cleans up if it cannot
start, and the unit does if none is started."""

import os
import re
import subprocess

import pytest
from support.routed import converged, state_of, stop_routed, with_routes
from torus_net import CHECKOUT
from torus_net.patience import Patience, wait

UNIT = CHECKOUT / 'scripts' / 'packaging' / 'systemd' / 'torus-routed.service'


def test_one_that_cannot_start_removes_what_was_left(mininet):
    torus = mininet('4')
    before = state_of(torus.node(1))
    torus.set_ip_routes()
    hosts = torus.ip_hosts
    stop_routed(torus, 1)
    assert state_of(torus.node(1)) != before
    addresses = hosts.routes_socket(1).parent.parent / 'addresses'
    good = addresses.read_text()
    addresses.write_text('nonsense\n')
    hosts.start_routed(1)
    assert wait(hosts.routed[1], Patience(10)) == 1
    assert state_of(torus.node(1)) == before
    addresses.write_text(good)
    hosts.start_routed(1)
    converged(torus, 1)


def test_a_second_one_leaves_the_first_one_alone(mininet, tmp_path):
    """This holds with a folder of its own, too, and when it only cleans up."""
    torus = with_routes(mininet)
    kept = state_of(torus.node(1))
    command = torus.ip_hosts.commands[1]
    for more in [], ['--state', tmp_path / 'other'], ['--down'], ['--down', '--state', tmp_path / 'other']:
        second = subprocess.run([*command, *more], capture_output=True, text=True)
        assert second.returncode == 1 and 'another torus-routed runs in this network namespace' in second.stderr
        assert state_of(torus.node(1)) == kept


def test_no_link_is_followed_in_its_folder(mininet, tmp_path):
    torus = with_routes(mininet, '2')
    hosts = torus.ip_hosts
    hosts.routed[1].terminate()
    assert wait(hosts.routed[1], Patience(20)) == 0
    without, victim = state_of(torus.node(1)), tmp_path / 'victim'
    for name in 'lock', 'interface', 'settings':
        state = tmp_path / f'state of {name}'
        state.mkdir()
        victim.write_text('precious')
        (state / name).symlink_to(victim)
        refused = subprocess.run([*hosts.commands[1], '--state', state], capture_output=True, text=True)
        assert refused.returncode == 1 and f'{state}/{name}' in refused.stderr, refused.stderr
        assert victim.read_text() == 'precious' and state_of(torus.node(1)) == without
    refused = subprocess.run([*hosts.commands[1], '--state', victim], capture_output=True, text=True)
    assert refused.returncode == 1 and f'{victim} is not a folder' in refused.stderr
    # The folder itself is one where systemd gives torus-routed a user of its own.
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'link').symlink_to(tmp_path / 'folder')
    done = subprocess.run([*hosts.commands[1], '--state', tmp_path / 'link', '--down'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def settings(name):
    return re.findall(rf'^{name}=(.*)$', UNIT.read_text(), re.M)


def test_the_unit_starts_it_again_without_end():
    assert settings('Restart') == ['on-failure'] and settings('StartLimitIntervalSec') == ['0']
    assert settings('RuntimeDirectoryPreserve') == ['restart']  # the next one needs the previous settings


@pytest.mark.parametrize('result,status,cleans', [
    ('success', '0', False),     # it has cleaned up by itself
    ('signal', 'KILL', False),   # the next one takes the routes over
    ('exit-code', '1', False),   # it has cleaned up, and the next one tries again
    ('success', 'TERM', True),   # it was stopped before it could take over or remove anything
    ('exit-code', '2', True),    # invalid options: there is no next one
    ('timeout', 'KILL', True)])  # 'systemctl stop' took too long
def test_the_unit_cleans_up_when_there_is_no_next_one(tmp_path, result, status, cleans):
    program = tmp_path / 'torus-routed'
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/called\n')
    program.chmod(0o755)
    script = re.fullmatch("/bin/sh -c '(.*)'", settings('ExecStopPost')[0])[1].replace('$$', '$')
    assert '/usr/sbin/torus-routed' in script
    subprocess.run(['/bin/sh', '-c', script.replace('/usr/sbin/torus-routed', str(program))], check=True,
                   env={**os.environ, 'SERVICE_RESULT': result, 'EXIT_STATUS': status})
    assert (tmp_path / 'called').exists() == cleans
    assert not cleans or (tmp_path / 'called').read_text() == '--down\n'
