"""A daemon that runs as an ordinary user without capabilities, and the rights of users at its sockets."""

import grp
import os
import subprocess
from pathlib import Path

from support.errors import assert_refused
from support.users import DAEMON, STRANGER, as_user, needs_root, ring
from torus_net import find_program
from torus_net.patience import run


def system_groups():
    """Three that exist here: (name, number)."""
    found = [(g.gr_name, g.gr_gid) for g in grp.getgrall() if 0 < g.gr_gid < 1000]
    return found[:3]


@needs_root
def test_a_daemon_without_privileges():
    with ring() as torus:
        for rank, process in enumerate(torus.processes):
            status = dict(line.split(':', 1) for line in
                          Path(f'/proc/{process.pid}/status').read_text().splitlines() if ':' in line)
            assert status['Uid'].split() == [str(DAEMON)] * 4
            assert int(status['CapEff'], 16) == int(status['CapBnd'], 16) == 0
            source = torus.folder / f'data{rank}' / 'out'
            source.mkdir()
            for to in range(2):
                (source / str(to)).write_text(f'from {rank} to {to}')
        result = torus.ctl('exchange', '--from', f'{torus.folder}/data%r/out',
                           '--to', f'{torus.folder}/data%r/in')
        assert result.returncode == 0, result.stderr
        for rank in range(2):
            for source in range(2):
                arrived = torus.folder / f'data{rank}' / 'in' / str(source)
                assert arrived.read_text() == f'from {source} to {rank}'
                assert arrived.stat().st_uid == DAEMON
        result = torus.ctl('exchange', '--block-size', '100KiB', prefix=as_user(DAEMON))
        assert result.returncode == 0, result.stderr


@needs_root
def test_without_groups_the_socket_decides():
    """Runs a command as a user of the daemon's group, and as another user."""
    with ring() as torus:
        mode = torus.socket(0).stat().st_mode & 0o777
        assert mode == Path(f'{torus.socket(0)}.programs').stat().st_mode & 0o777 == 0o660
        for args in ('status',), ('exchange', '--block-size', '1'), ('calibrate', '--reset'):
            assert torus.ctl(*args, prefix=as_user(STRANGER, DAEMON)).returncode == 0
            result = torus.ctl('--json', *args, prefix=as_user(STRANGER))
            assert_refused(result, 'no daemon', 3)
            assert f'members of group {DAEMON} ' in result.stderr and 'Start torusd' not in result.stderr, result.stderr
        name, number = system_groups()[0]
        os.chown(torus.socket(0), -1, number)
        said = torus.ctl('status', prefix=as_user(STRANGER)).stderr
        assert f'members of the group {name} ' in said and f'usermod -aG {name} ' in said, said


NEEDS = {  # commands of torusctl, and the least access that they need
    ('status',): 0,
    ('links',): 0,
    ('exchange', '--explain', '--block-size', '1'): 1,
    ('exchange', '--block-size', '1'): 1,
    ('broadcast', '--root', '0', '--block-size', '1'): 1,
    ('calibrate', '--show'): 0,
    ('calibrate', '--reset'): 2,
}


@needs_root
def test_groups_say_who_may_do_what():
    groups = system_groups()
    settings = 'read_group', 'exchange_group', 'admin_group'
    options = [f'--{name.replace("_", "-")}={group[0]}' for name, group in zip(settings, groups)]
    with ring(*options) as torus:
        users = {None: as_user(STRANGER), **{i: as_user(STRANGER, groups[i][1]) for i in range(3)}}
        for has, prefix in users.items():
            for args, needed in NEEDS.items():
                result = torus.ctl('--json', *args, prefix=prefix)
                if has is not None and has >= needed:
                    assert result.returncode == 0, (has, args, result.stderr)
                else:
                    # A user without rights is told so before the daemon reads a request.
                    wanted = 0 if has is None else needed
                    assert_refused(result, 'refused')
                    assert f'{groups[wanted][0]} ({settings[wanted]})' in result.stderr, (has, args, result.stderr)
        result = torus.ctl('--json', 'copy', '/source', '--to', '/target', prefix=users[0])
        assert_refused(result, 'refused')
        assert f'{groups[1][0]} (exchange_group)' in result.stderr, result.stderr
        for prefix in (), as_user(DAEMON):  # root, and the daemon's own user
            for args in NEEDS:
                assert torus.ctl(*args, prefix=prefix).returncode == 0
        # One of many groups is enough, even if it is the first.
        many = as_user(STRANGER, *range(70000, 70100), groups[0][1])
        assert torus.ctl('status', prefix=many).returncode == 0
        first = ['setpriv', f'--reuid={STRANGER}', f'--regid={groups[1][1]}', '--clear-groups']
        assert torus.ctl('exchange', '--block-size', '1', prefix=first).returncode == 0
        # The group that allows the most counts, whichever comes first.
        both = ['setpriv', f'--reuid={STRANGER}', f'--regid={groups[0][1]}', f'--groups={groups[1][1]}']
        assert torus.ctl('exchange', '--block-size', '1', prefix=both).returncode == 0


@needs_root
def test_programs_need_the_exchange_group():
    groups = system_groups()
    with ring(f'--exchange-group={groups[1][0]}') as torus:
        script = ('import socket, struct, sys\n'
                  's = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n'
                  f's.connect("{torus.socket(0)}.programs")\n'
                  's.settimeout(float(sys.argv[1]))\n'
                  'try:\n'
                  '    print(s.recv(1000)[32:].split(bytes(1))[0].decode())\n'
                  'except TimeoutError:\n'
                  '    print("welcome")\n')

        def answer(prefix, seconds):
            return run([*prefix, '/usr/bin/python3', '-c', script, str(seconds)]).stdout

        assert f'the group {groups[1][0]} (exchange_group)' in answer(as_user(STRANGER), 1000)
        assert answer(as_user(STRANGER, groups[1][1]), 1) == 'welcome\n'
        # Not named: the group of the daemon, for which here is only a number.
        result = torus.ctl('--json', 'status', prefix=as_user(STRANGER))
        assert_refused(result, 'refused')
        assert f'{DAEMON} (read_group)' in result.stderr
        assert torus.ctl('status', prefix=as_user(STRANGER, DAEMON)).returncode == 0
        # The administrators have the same group.
        assert torus.ctl('calibrate', '--reset', prefix=as_user(STRANGER, DAEMON)).returncode == 0
        assert torus.ctl('calibrate', '--reset', prefix=as_user(STRANGER, groups[1][1])).returncode


@needs_root
def test_a_user_without_rights_keeps_nobody_out():
    groups = system_groups()
    with ring(f'--read-group={groups[0][0]}') as torus:
        script = ('import socket, sys\n'
                  'crowd = []\n'
                  'for _ in range(600):\n'
                  '    s = socket.socket(socket.AF_UNIX)\n'
                  f'    s.connect("{torus.socket(0)}")\n'
                  '    crowd.append(s)\n'
                  'print(len(crowd), flush=True)\n'
                  'sys.stdin.read()\n')
        crowd = subprocess.Popen([*as_user(STRANGER), '/usr/bin/python3', '-c', script],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert crowd.stdout.readline() == '600\n'
            assert torus.ctl('status', prefix=as_user(STRANGER, groups[0][1])).returncode == 0
        finally:
            crowd.communicate('')


def test_a_group_that_does_not_exist(tmp_path):
    result = run([find_program('torusd'), '--dims', '1x1', '--rank', '0', '--read-group',
                  'no-such-group', '--control', tmp_path / 's', '--state-dir', tmp_path], 20)
    assert result.returncode == 1
    assert 'read_group: there is no group "no-such-group" on this system' in result.stderr


@needs_root
def test_files_of_several_users():
    """The rights of operating.md, for three users of a group that are neither root nor the daemon's user."""
    name, group = system_groups()[0]
    users = [STRANGER + 1 + i for i in range(3)]
    with ring('--exchange-group', name, '--output-mode', '2770', groups=[group]) as torus:
        data = f'{torus.folder}/data'
        for rank in range(2):
            os.chown(f'{data}{rank}', DAEMON, group)
            os.chmod(f'{data}{rank}', 0o2770)

        def shell(user, command, *groups):
            return run([*as_user(user, *groups), 'sh', '-ec', f'umask 027; {command}'])

        def exchange(user, *options):
            return torus.ctl('exchange', '--from', f'{data}%r/out-{user}', '--to', f'{data}%r/in-{user}',
                             *options, prefix=as_user(user, group))

        def check(user, text):
            for to in range(2):
                result = shell(user, f'cat {data}{to}/in-{user}/0 {data}{to}/in-{user}/1', group)
                assert result.stdout == f'{text} 0 {to}\n{text} 1 {to}\n', result.stderr

        for user in users:
            for rank in range(2):
                out = f'{data}{rank}/out-{user}'
                result = shell(user, f'mkdir {out}; for d in 0 1; do echo {user} {rank} $d >{out}/$d; done', group)
                assert result.returncode == 0, result.stderr
            result = exchange(user)
            assert result.returncode == 0, result.stderr
            check(user, user)
            assert shell(STRANGER, f'ls {data}0/in-{user}').returncode != 0
        for user in users:
            assert_refused(exchange(user, '--json'), 'refused')
            for rank in range(2):
                shell(user, f'for d in 0 1; do echo again {rank} $d >{data}{rank}/out-{user}/$d; done', group)
            result = exchange(user, '--replace')
            assert result.returncode == 0, result.stderr
            check(user, 'again')
            for rank in range(2):
                result = shell(user, f'rm -r {data}{rank}/in-{user} {data}{rank}/out-{user}', group)
                assert result.returncode == 0, result.stderr
        assert not [name for rank in range(2) for name in os.listdir(f'{data}{rank}')]


@needs_root
def test_a_users_own_folder_is_not_taken_away():
    """The daemon cannot make a folder that belongs to another user, and reports that before blocks move."""
    name, group = system_groups()[0]
    with ring('--exchange-group', name, groups=[group]) as torus:
        for rank in range(2):
            data = torus.folder / f'data{rank}'
            for folder in data / 'out', data / 'in':
                folder.mkdir()
                os.chown(folder, STRANGER, group)
                folder.chmod(0o2770)
            for to in range(2):
                (data / 'out' / str(to)).write_text('something')
        result = torus.ctl('--json', 'exchange', '--from', f'{torus.folder}/data%r/out', '--to',
                           f'{torus.folder}/data%r/in', prefix=as_user(STRANGER, group))
        assert_refused(result, 'refused')
        assert 'data0/in ' in result.stderr or 'data1/in ' in result.stderr
        for rank in range(2):
            assert (torus.folder / f'data{rank}' / 'in').stat().st_uid == STRANGER
