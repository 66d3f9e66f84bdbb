"""Files that commands and the daemon read: endless files, files of other kinds, and files from other systems."""

import json
import os
import re
import subprocess
import sys

import pytest
from torus_net import CHECKOUT, counted, find_program, patience, plural

HOSTS = '[a]\n+0 = e0\n-0 = e1\n[b]\n+0 = e0\n-0 = e1\n'
GIB = 1 << 30


def run(program, *arguments, **options):
    """Runs a command. An endless input fails by this timeout."""
    return patience.run([find_program(program), *map(str, arguments)], 120, **options)


def torusctl(*arguments, **options):
    return run('torusctl', *arguments, **options)


# What reads a file: its name in errors, and the command.
READERS = {
    'a configuration': lambda file: ('torusd', '--config', file),
    'a file of hosts': lambda file: ('torusctl', 'ip-routes', '--dims', '2', '--hosts', file, '--to', 'out'),
    'a schedule': lambda file: ('torusctl', 'plan', '--import', file),
    'a schedule, priced': lambda file: ('torusctl', 'predict', '--schedule', file),
}


@pytest.fixture(params=READERS)
def read(request, tmp_path):
    """read(file): the error of the command that refuses a file, and the name of its kind."""
    def refused(file):
        done = run(*READERS[request.param](file), cwd=tmp_path)
        assert done.returncode in (1, 2), done
        said = re.sub(r'\A\S+: waiting for data from .*\n', '', done.stderr)  # on a busy machine
        assert said.startswith(f'{READERS[request.param](file)[0]}: {file}'), said
        assert not (tmp_path / 'out').exists()
        return said, request.param.partition(',')[0]
    return refused


def test_endless_files_are_refused(read, tmp_path):
    said, kind = read('/dev/zero')
    assert f'line 1 has a NUL byte, so this is not {kind}' in said
    with open(tmp_path / 'sparse', 'w') as file:
        file.truncate(10 * GIB)
    said, kind = read('sparse')
    assert f'MiB that {kind} can have' in said and 'longer than the ' in said
    said, kind = read('.')
    assert f'a folder cannot be read as {kind}' in said
    said, kind = read('/proc/self/mem')
    assert 'Input/output error' in said
    said, kind = read('missing')
    assert 'No such file or directory' in said


def test_pipes_are_read_up_to_the_limit(read, tmp_path):
    os.mkfifo(tmp_path / 'pipe')
    with subprocess.Popen(['sh', '-c', 'exec yes "# a comment" >pipe'], cwd=tmp_path) as writer:
        said, kind = read('pipe')
        assert f'MiB that {kind} can have' in said
        assert patience.wait(writer, patience.Patience(60)) != 0  # nobody reads it any more


def test_other_encodings_and_formats_are_named(read, tmp_path):
    (tmp_path / 'wide').write_text(HOSTS, encoding='utf-16')
    said, kind = read('wide')
    assert f'this is UTF-16, and {kind} must be UTF-8' in said
    (tmp_path / 'packed').write_bytes(b'\x1f\x8b\x08\0')
    said, kind = read('packed')
    assert f'this is packed by gzip (unpack it with gunzip), not {kind}' in said


@pytest.mark.parametrize('text,format', [
    ('num_ranks 2\n\nrank 0 {\nl1: send 8b to 1 tag 0 nic 0\n}\n', 'a GOAL schedule'),
    ('<svg xmlns="http://www.w3.org/2000/svg"/>\n', 'an SVG picture'),
    ('<?xml version="1.0"?>\n<!-- <algo> -->\n<machines/>\n',
     'XML with <machines> as its outermost element'),
    ('{"nodes":3}\n', 'JSON of another kind'),
    ('{\n  "schedule": 1,\n  "dims": "2"\n}\n', 'JSON with objects of several lines'),
    ('[\n  {}\n]\n', 'a JSON array'),
    ('torusd-key-1 00\n', 'a cluster key'),
])
def test_text_of_another_kind_is_named(read, tmp_path, text, format):
    (tmp_path / 'file').write_text(text)
    assert f'this is {format}' in read('file')[0]


def test_what_torusctl_writes_itself_is_named(tmp_path):
    for name, arguments in (('a GOAL schedule', ['--export', 'goal']), ('an SVG picture', ['--svg', '-']),
                            ('JSON of another kind', ['--json'])):
        (tmp_path / 'file').write_text(torusctl('plan', '--dims', '3', *arguments).stdout)
        for dims in [], ['--dims', '3']:
            done = torusctl('plan', '--import', 'file', *dims, cwd=tmp_path)
            assert done.returncode == 1
            assert f'file: this is {name}, which cannot be read as a schedule' in done.stderr


@pytest.mark.parametrize('bytes_of', [
    lambda text: b'\xef\xbb\xbf' + text.replace('\n', '\r\n').encode(),
    lambda text: '\n'.join(f'  \t{line} ' for line in text.split('\n')).encode()])
def test_marks_line_ends_and_indented_lines_are_understood(tmp_path, bytes_of):
    file = tmp_path / 'file'
    file.write_bytes(bytes_of(HOSTS))
    assert torusctl('ip-routes', '--dims', '2', '--hosts', file, '--to', tmp_path / 'out').returncode == 0
    file.write_bytes(bytes_of(torusctl('plan', '--dims', '3', '--export', 'torusd').stdout))
    done = torusctl('--json', 'plan', '--import', file)
    assert done.returncode == 0 and json.loads(done.stdout)['startups'] == 2
    file.write_bytes(bytes_of('[node]\ndims = 2x2\nrank = 4\n'))
    assert run('torusd', '--config', file).stderr == 'torusd: rank 4 does not exist: torus 2x2 has ranks 0 to 3\n'
    file.write_bytes(bytes_of('[node]\ndims = 2x2\n\ncolor = 4\n'))
    assert f'{file}:4: unknown setting "color"' in run('torusd', '--config', file).stderr


def test_xml_with_a_mark_and_line_ends(tmp_path):
    xml = torusctl('plan', '--dims', '3', '--export', 'msccl').stdout
    (tmp_path / 'xml').write_bytes(b'\xef\xbb\xbf\r\n' + xml.replace('\n', '\r\n').encode())
    done = torusctl('--json', 'plan', '--import', tmp_path / 'xml', '--dims', '3')
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('whose,text', [
    ('ForestColl', '<Algo nchunkspernode="1">' + ''.join(
        f'<tree root="{a}" nchunks="1"><send src="{a}" dst="{b}" path="{a},{b}"/></tree>' for a, b in ('01', '10')) + '</Algo>'),
    ('TE-CCL', json.dumps({'6-Flows': [f'Chunk 0 from {a} traveled over {a}->{b} in epoch 0' for a, b in ('01', '10')]},
                          indent=2))])
def test_allgathers_of_other_programs(tmp_path, whose, text):
    (tmp_path / 'file').write_text(text)
    done = torusctl('--json', 'plan', '--import', tmp_path / 'file', '--dims', '2m')
    said = json.loads(done.stdout)
    assert done.returncode == 0 and (said['operation'], said['startups'], said['transmission']) == ('allgather', 1, 1)
    done = torusctl('plan', '--import', tmp_path / 'file')
    assert done.returncode == 2 and f"file: {whose}'s format does not contain the torus: give --dims" in done.stderr


@pytest.mark.parametrize('program,arguments', [
    ('torusd', ('--dims', '1x1', '--rank', '4', '--config')),
    ('torusctl', ('ip-routes', '--dims', '2', '--hosts'))])
def test_what_is_waited_for_is_said(tmp_path, program, arguments):
    os.mkfifo(tmp_path / 'pipe')
    with subprocess.Popen([find_program(program), *arguments, 'pipe'], cwd=tmp_path, text=True,
                          stderr=subprocess.PIPE) as waiting:
        assert waiting.stderr.readline() == f'{program}: waiting for data from pipe\n'
        (tmp_path / 'pipe').write_text('; nothing but a comment\n')
        said = waiting.stderr.read()
        assert patience.wait(waiting, patience.Patience(60)) == 2 and ('rank 4 does not exist' in said or '0 of 2 hosts' in said)


def test_a_command_may_be_the_file(tmp_path):
    """As in bash: --import <(...)."""
    command = f'"{find_program("torusctl")}" plan --dims 3 --export torusd'
    done = patience.run(['bash', '-c', f'{command} | "{find_program("torusctl")}" plan --import /dev/stdin && '
                         f'"{find_program("torusctl")}" plan --import <({command})'], 120)
    assert done.returncode == 0 and done.stdout.count('verified') == 2, done


# --- sizes ---

@pytest.mark.parametrize('command,says', [
    (['plan', '--dims', '1024x1024'], 'the routes of at2 on 1024x1024 have about 1.7e+10 legs and hops'),
    (['plan', '--dims', '1024x1024', '--algorithm', 'atape'], 'too many to follow'),
    (['plan', '--dims', '1024x1024', '--node', '5'], 'too many to follow'),
    (['plan', '--dims', '1024x1024', '--svg', 'out'], 'too many to follow'),
    (['plan', '--dims', '1024x1024', '--routes'], 'too many to follow'),
    *((['plan', '--dims', '1024x1024', '--export', format], 'too many to follow')
      for format in ('torusd', 'goal', 'msccl')),
    (['plan', '--dims', '1024x1024', '--without', '3:+0'], 'more than the limit of 128 MiB'),
    (['plan', '--dims', '1025x1024'], 'has more than 1048576 nodes'),
    (['plan', '--dims', '99999999999999999999'], 'has more than 1048576 nodes'),
    (['simulate', '--dims', '1024x1024'], 'too many to follow'),
    (['simulate', '--network', 'ring:2048'], 'at most 1024 can be simulated'),
    (['simulate', '--banyan', '2048'], 'not a number from 0 to 1024'),
    (['ip-routes', '--dims', '1024x1024', '--hosts', '/dev/zero'], 'routes can be written for up to 4096 nodes'),
])
def test_what_is_too_large_is_refused(tmp_path, command, says):
    done = torusctl(*command, cwd=tmp_path)
    assert done.returncode in (1, 2) and says in done.stderr and done.stdout == ''
    assert not list(tmp_path.iterdir())


def test_a_schedule_with_too_many_hops_is_refused(tmp_path):
    size = 131069
    (tmp_path / 'file').write_text(f'{{"schedule":1,"dims":"{size}m"}}\n')
    done = torusctl('plan', '--import', tmp_path / 'file')
    assert done.returncode == 1 and 'more than the limit of 1048576' in done.stderr
    with open(tmp_path / 'file', 'w') as file:
        file.write(f'{{"schedule":1,"dims":"{size}x2","period":[1,1]}}\n')
        for to in range(1, 2 * size):
            along, across = divmod(to, 2)
            legs = [[0, 0, 1, along] if along <= size // 2 else [0, 0, -1, size - along]] * (along > 0)
            legs += [[1, 1, 1, 1]] * across
            file.write(f'{{"src":0,"dst":{to},"legs":{json.dumps(legs, separators=(",", ":"))}}}\n')
    done = torusctl('plan', '--import', tmp_path / 'file')
    assert done.returncode == 1 and 'too many to follow' in done.stderr


@pytest.mark.full  # a million nodes
def test_algorithms_and_predict_answer_for_any_torus():
    rows = json.loads(torusctl('--json', 'algorithms', '--dims', '1024x1024').stdout)['algorithms']
    at2, = (row for row in rows if row['algorithm'] == 'at2')
    assert at2['accepts'] and 'too many to follow' in at2['refused'] and 'startups' not in at2
    times = json.loads(torusctl('--json', 'predict', '--dims', '1024x1024').stdout)['algorithms']
    assert {row['from'] for row in times} == {'formula'}


@pytest.mark.parametrize('command,what', [
    (['plan', '--dims', '64mx64m', '--algorithm', 'direct'], 'the routes of direct on 64mx64m'),
    (['plan', '--dims', '48x48', '--algorithm', 'direct', '--routes'], 'the routes of direct on 48x48'),
    (['simulate', '--dims', '24mx24m', '--algorithm', 'direct'], 'simulate'),
    (['ip-routes', '--dims', '64x64', '--hosts', 'hosts'], 'the (routes|scripts) of 4096 nodes')])
def test_long_work_reports_its_progress(tmp_path, command, what):
    if 'ip-routes' in command:
        (tmp_path / 'hosts').write_text('[*]\n+0=a\n-0=b\n+1=c\n-1=d\n'
                                        + ''.join(f'[h{rank}]\n' for rank in range(4096)))
    with subprocess.Popen([find_program('torusctl'), *command], cwd=tmp_path, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as working:
        said = working.stderr.readline()
        working.kill()
    assert re.fullmatch(fr'torusctl: still working on {what}: (\d+ %, )?\d+ s so far\n', said), said


def test_on_a_terminal_it_is_said_in_one_line():
    ours, theirs = os.openpty()
    with subprocess.Popen([find_program('torusctl'), 'plan', '--dims', '64mx64m', '--algorithm', 'direct'],
                          stdout=subprocess.DEVNULL, stderr=theirs) as working:
        os.close(theirs)
        said = b''
        while said.count(b'so far') < 3:
            said += os.read(ours, 4096)
        working.kill()
    os.close(ours)
    assert said.startswith(b'\rtorusctl: still working on ') and b'\n' not in said


# --- the launchers ---

def launcher(*command, **options):
    return patience.run([CHECKOUT / command[0], *command[1:]], 120, **options)


@pytest.mark.parametrize('command', [
    ['topo/torus.py', '1000x1000'], ['topo/torus.py', '1000x1000', '--loopback'],
    ['topo/vms.py', '1000x1000'], ['scripts/vm-up', '1000x1000'], ['scripts/vm-up', '17x17'],
    ['scripts/quickstart', '--dims', '1000x1000'], ['scripts/distributed-sort', '--dims', '1000x1000'],
    ['scripts/faults', '1000x1000'], ['scripts/chaos', '1000x1000'], ['scripts/chaos', '--vm', '17x17']])
def test_a_torus_that_cannot_be_started_is_refused_first(command, tmp_path):
    """Launchers refuse wrong options before they install, build or start anything."""
    tools = tmp_path / 'tools'
    tools.mkdir()
    for tool in 'apt-get', 'cmake', 'qemu-system-x86_64':
        (tools / tool).write_text('#!/bin/sh\nexec sleep 1000\n')
        (tools / tool).chmod(0o755)
    done = launcher(*command, env={**os.environ, 'PATH': f'{tools}:{os.environ["PATH"]}', 'TORUS_BIN': ''})
    assert done.returncode == 2 and re.search(r'has \d+ nodes; at most (4096|256) ', done.stderr), done
    assert done.stdout == ''


@pytest.mark.parametrize('arguments,says', [
    (['--timeout', 'nan'], '"nan" is not a number of seconds above 0'),
    (['--timeout', 'inf'], 'at most 1000000'), (['--timeout', '-1'], 'above 0'),
    (['--ram', '9' * 20], 'is not a whole number from 0 to 1048576'),
    (['--clock-step', '9' * 12], 'is not a whole number from -10000000 to 10000000'),
    (['--program', '/dev/zero'], '/dev/zero is not a program'),
    (['--program', 'huge'], 'huge is too large for a virtual machine: 10240 MiB of at most 256'),
    (['--program', 'pipe'], 'pipe is not a program')])
def test_numbers_and_files_of_the_launcher(tmp_path, arguments, says):
    with open(tmp_path / 'huge', 'w') as file:
        file.truncate(10 * GIB)
    os.mkfifo(tmp_path / 'pipe')
    for name in 'huge', 'pipe':
        (tmp_path / name).chmod(0o755)
    done = launcher('topo/vms.py', '2x2', *arguments, cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr, done


@pytest.mark.parametrize('text,says', [
    (None, 'standard input is longer than the 64 MiB that a result can have'),
    ('', 'is not a JSON object'), ('[' * 100000, 'is not a JSON object'),
    *((text, 'but not what torusctl --json exchange prints') for text in ('{}', '[]', '3', 'null'))],
    ids=lambda given: str(given)[:20])
def test_a_report_of_what_is_no_result(text, says):
    with open('/dev/zero') as endless:
        given = {'stdin': endless} if text is None else {'input': text}
        done = launcher(sys.executable, 'topo/torus_net/report.py', cwd=CHECKOUT, **given)
    assert done.returncode == 1 and says in done.stderr and 'Traceback' not in done.stderr


@pytest.mark.parametrize('algorithm, steps', [('at2', True), ('stream', False)])
def test_a_report_has_steps_only_of_a_stepped_exchange(shared, algorithm, steps):
    result = shared('2x3').ctl(0, '--json', 'exchange', '--algorithm', algorithm, '--block-size', '100')
    done = launcher(sys.executable, 'topo/torus_net/report.py', cwd=CHECKOUT, input=result.stdout)
    assert done.returncode == 0, done.stderr
    assert ('  steps  ' in done.stdout) == steps and 'None' not in done.stdout, done.stdout


# --- words ---

def test_one_of_them_has_the_word_for_one(shared):
    """Words for counts of one: node, byte, block, line, host."""
    done = launcher('topo/torus.py', '1', '--loopback', '--run', 'torusctl status',
                    env={**os.environ, 'TORUS_BIN': os.path.dirname(find_program('torusd'))})
    assert done.returncode == 0 and 'starting 1 daemon\n' in done.stderr
    assert '1 in loopback: 1 node and 0 links up after ' in done.stderr
    torus = shared('1')
    refused = torus.ctl(0, 'broadcast', '--root', '5', '--block-size', '1')
    assert 'node 5 is not in this torus, which has 1 node' in refused.stderr, refused.stderr
    assert 'coordinates "x": 1 number below its dimension' in run(
        'torusd', '--dims', '3', '--coordinates', 'x').stderr


def test_the_words_of_counts():
    assert [counted(n, 'node') for n in range(3)] == ['0 nodes', '1 node', '2 nodes']
    assert [plural(n, 'it is', 'they are') for n in range(3)] == ['they are', 'it is', 'they are']


@pytest.mark.parametrize('program', ['torusctl', 'torusd', 'torusd-discover', 'torusd-setup', 'torus-routed'])
def test_all_programs_read_options_alike(program):
    for arguments, says in (
            (['--hel'], 'unknown option --hel; did you mean --help?'),  # no abbreviations
            (['--socket-of-nobody', 'x'], 'unknown option --socket-of-nobody'),
            (['--version=yes'], '--version takes no value')):
        done = run(program, *arguments)
        assert (done.returncode, done.stdout) == (2, '') and done.stderr.startswith(f'{program}: {says}\n'), done
    assert run(program, '-h').stdout == run(program, '--help').stdout != ''


@pytest.mark.parametrize('program, option, value, says', [
    ('torusd-discover', '--log-level', 'loud', 'it is error, warning, info or debug'),
    ('torusd-discover', '--name', 'a b', 'not the name of a host: '),
    ('torusd-discover', '--interfaces', '', '0 interfaces are named'),
    ('torusd-setup', '--reader', 'nobody-of-all', 'there is no user "nobody-of-all"'),
    ('torusd-setup', '--command', '', '"" is not a command for setups'),
    ('torus-routed', '--interface', 'a/b', 'an interface has a name of at most 9 characters'),
    ('torus-routed', '--congestion', 'longer-than-15-is-wrong', 'the name has more than 15 characters')])
def test_values_of_options_are_checked(program, option, value, says):
    done = run(program, option, value)
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr.startswith(f'{program}: {option} {value}: {says}'), done
    missing = run(program, option)
    assert missing.returncode == 2 and missing.stderr.startswith(f'{program}: {option} needs a value: {option} ')
