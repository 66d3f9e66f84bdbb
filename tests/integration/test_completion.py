"""Completions of torusctl and torusd in bash and zsh: they offer the commands, options and values that exist."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.helps import commands, printed
from torus_net import CHECKOUT, find_program, patience

sys.path.append(str(CHECKOUT / 'scripts'))
from completion import model, values  # noqa: E402

TORUSCTL = Path(find_program('torusctl'))
BUILD = TORUSCTL.parent
FOLDER = BUILD / 'completions'

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason='this build has no completions')

BASH = r'''
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_"$1"
printf '%s\n' "${COMPREPLY[@]}"
'''
# Each completion that compadd gets is printed, and the function ends as if there were none.
ZSH = r'''
zmodload zsh/zpty
zpty shell zsh -f -i
type() { zpty -w shell "$1" }
wait_for() { local text; while zpty -r shell text; do [[ $text = *$1* ]] && return; done; return 1 }
type "PS1= PROMPT= RPS1=; stty columns 400; unsetopt zle_bracketed_paste; autoload -Uz compinit"
type "fpath=($1 \$fpath); compinit -u -D"
type "compadd() { local -a reply; builtin compadd -O reply \"\$@\"; print -rl -- '<'\${^reply}'>'; false }"
type "complete_it() { print -r -- BEGIN; _main_complete; print -r -- END; zle -I; BUFFER= }"
type "zle -C complete_it complete-word complete_it; bindkey '^I' complete_it; print -r -- RE''ADY"
wait_for READY
zpty -w -n shell "$2"$'\t'
all=''
while zpty -r shell text; do all+=$text; [[ $text = *END* ]] && break; done
print -r -- "$all"
zpty -d shell
'''


def in_bash(*line):
    """What bash offers for the last word of a line."""
    done = subprocess.run(['bash', '--norc', '-c', BASH, 'bash', FOLDER / 'bash' / line[0], *line], check=True,
                          capture_output=True, text=True)
    assert done.stderr == ''
    return done.stdout.split()


def in_zsh(*line):
    """What zsh offers for the last word of a line. zsh shows options only for a word that begins like one."""
    if not shutil.which('zsh'):
        pytest.skip('zsh is not installed')
    done = patience.run(['zsh', '-f', '-c', ZSH, 'zsh', FOLDER / 'zsh', ' '.join(line)],
                        env={'PATH': os.environ['PATH'], 'TERM': 'dumb', 'HOME': '/nonexistent'})
    assert done.returncode == 0, done
    found = dict.fromkeys(re.findall(r'<([^<>\s]+)>', done.stdout))
    return [word for word in found if line[-1].startswith('-') or not word.startswith('-')]


@pytest.fixture(params=[in_bash, in_zsh], ids=['bash', 'zsh'])
def offered(request):
    return request.param


def algorithms(operation):
    return {row['name'] for row in json.loads(printed(TORUSCTL, '--json', 'algorithms'))['algorithms']
            if row['operation'] == operation}


def test_commands(offered):
    assert offered('torusctl', '') == commands()


def test_a_command_that_has_begun(offered):
    assert offered('torusctl', 'ex') == ['exchange']
    assert offered('torusctl', '--json', 'ex') == ['exchange']


def test_options_in_bash():
    """Those of each command, and those of all commands."""
    for command in commands():
        explained = re.findall(r'^  (--[a-z-]+)', printed(TORUSCTL, 'help', command), re.M)
        assert set(in_bash('torusctl', command, '--')) == set(explained), command


def test_options(offered):
    explained = re.findall(r'^  (--[a-z-]+)', printed(TORUSCTL, 'help', 'exchange'), re.M)
    found = {option.rstrip('=') for option in offered('torusctl', 'exchange', '--')}
    assert found == set(explained) and len(found) > 10


def test_algorithms(offered):
    assert set(offered('torusctl', 'exchange', '--algorithm', '')) == {'auto'} | algorithms('exchange')
    assert set(offered('torusctl', 'allgather', '--algorithm', '')) == {'auto'} | algorithms('allgather')


def test_values(offered):
    assert offered('torusctl', 'exchange', '--mode', 'str') == ['streaming']
    assert set(offered('torusctl', 'exchange', '--on-failure', '')) == {'fail', 'shrink', 'wait'}
    assert offered('torusctl', 'plan', '--export', 'm') == ['msccl']
    assert offered('torusd', '--rank', '1', '--log-level', 'd') == ['debug']
    assert set(offered('torusd', '--encrypt', '')) == {'yes', 'no'}


def test_arguments(offered):
    assert set(offered('torusctl', 'key', '')) == {'generate', 'id'}
    assert offered('torusctl', 'mpi-env', 'open') == ['openmpi']
    assert offered('torusctl', 'help', 'ex') == ['exchange']


def test_value_behind_an_equals_sign():
    """bash makes words of the option, of the equals sign, and of the value."""
    assert in_bash('torusctl', 'exchange', '--mode', '=', 'step') == ['stepped']
    assert set(in_bash('torusctl', 'exchange', '--mode', '=')) == {'stepped', 'streaming'}


def test_lists():
    assert in_bash('torusctl', 'bench', '--algorithms', 'at2,str') == ['at2,stream']


def test_files(tmp_path):
    (tmp_path / 'plan.json').touch()
    (tmp_path / 'plans').mkdir()
    assert sorted(in_bash('torusctl', 'plan', '--import', f'{tmp_path}/pl')) == [
        f'{tmp_path}/plan.json', f'{tmp_path}/plans']
    assert in_bash('torusctl', 'exchange', '--from', f'{tmp_path}/pl') == [f'{tmp_path}/plans']
    assert in_bash('torusctl', 'key', 'id', f'{tmp_path}/plan.') == [f'{tmp_path}/plan.json']


def test_nothing_is_offered():
    assert in_bash('torusctl', 'plan', '--dims', '') == in_bash('torusctl', 'nothing', '') == []


def test_options_of_torusd(offered):
    explained = set(re.findall(r'^  (--[a-z-]+)', printed(find_program('torusd'), '--help'), re.M))
    assert {option.rstrip('=') for option in offered('torusd', '--')} == explained


def test_torusrun(offered):
    """The options of torusctl run, and those of all commands."""
    explained = set(re.findall(r'^  (--[a-z-]+)', printed(TORUSCTL, 'help', 'run'), re.M))
    assert {option.rstrip('=') for option in offered('torusrun', '--')} == explained


def test_known_values_are_explained():
    """The help of an option or of its command names each value that the completion offers for it."""
    ctl = json.loads(printed(BUILD / 'client' / 'torusctl_tables'))
    rows = {(command['name'], row['name']): row['help'] for command in ctl['commands'] for row in command['options']}
    daemon = json.loads(printed(BUILD / 'daemon' / 'torusd_tables'))['options']
    rows.update({('torusd', f'--{row["option"]}'): row['help'] for row in daemon})
    for place, value in values.OPTIONS.items():
        known = set(re.findall(r'[\w-]+', rows[place]))
        ends = re.findall(r'u?int8 to u?int64', rows[place])  # "int8 to int64" are four
        assert ends or set(value.words) <= known, place
    for place in values.ALGORITHM_OPTIONS:
        assert place in rows


@pytest.mark.parametrize('text, expected', [
    ('one of \'torusctl algorithms\' (default: auto)', 'one of \'torusctl algorithms\''),
    ('exchange files: send\nFOLDER/5', 'exchange files'),
    ('the rows of 4x8, 0,2 for planes', 'the rows of 4x8, 0,2 for planes'),
])
def test_summaries(text, expected):
    assert model.summary(text) == expected
