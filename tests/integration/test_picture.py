"""torusctl plan --svg: the arrows are the messages of the routes, and files are complete."""

import collections
import json
import os
import re
import stat

import pytest
from support.pictures import SVG, Picture, Schedule, check_arrow, check_thickness, has_class, plan, points, torusctl
from torus_net import CHECKOUT
from torus_net.patience import run
from torus_net.process import find_program

SHAPES = [
    ('4x4', 'at2'), ('8x8', 'at2'), ('8', 'ar'), ('7', 'ar'), ('2', 'ar'), ('7', 'direct'), ('1x5', 'direct'),
    ('4m', 'direct'), ('4x4', 'pair-s4'), ('2x2', 'pair'), ('3x5', 'a2'), ('3mx4', 'a2'), ('5x4m', 'dim'),
    ('4x6', 'at2-1port'), ('8x8', 'cccube'), ('2x3x4', 'tree'), ('5x3x3', 'direct'), ('3x3x2x2', 'dim-s2'),
    ('2x2x2x2x2', 'cccube-q2'), ('2x1x2x2x2x2x2m', 'direct'), ('5x5', 'yangwang'), ('4x4m', 'saadschultz'),
]
LARGE = ('8x8', '5x3x3', '2x1x2x2x2x2x2m')


@pytest.mark.parametrize(('dims', 'algorithm'), [
    # the same arrows, but more of them
    pytest.param(dims, algorithm, marks=[pytest.mark.slow, pytest.mark.full] * (dims in LARGE))
    for dims, algorithm in SHAPES])
def test_arrows_are_the_messages(dims, algorithm):
    schedule = Schedule(dims, algorithm)
    picture = Picture(plan(dims, algorithm, '--svg', '-'))
    assert sorted(picture.centre) == list(range(schedule.geometry.nodes))
    assert len(set(picture.centre.values())) == schedule.geometry.nodes
    assert list(picture.steps) == sorted(schedule.steps)
    for step, messages in schedule.steps.items():
        assert picture.blocks(step) == messages
        assert picture.captions[step][0].startswith(f'{len(messages)} message')
        for message, (_, body) in picture.steps[step].items():
            check_arrow(picture, message, body)
    check_thickness(picture)


@pytest.mark.slow
@pytest.mark.parametrize(('dims', 'algorithm'), [
    pytest.param(dims, algorithm, marks=[pytest.mark.full] * (dims in LARGE)) for dims, algorithm in SHAPES])
def test_contention_is_marked(dims, algorithm):
    schedule = Schedule(dims, algorithm)
    picture = Picture(plan(dims, algorithm, '--svg', '-'))
    inner = [dim for dim, size in enumerate(schedule.geometry.sizes) if size > 1][-2:]
    for step in schedule.steps:
        crossings = schedule.crossings(step)
        bands = 0
        for (node, (dim, direction)), count in crossings.items():
            at, size = schedule.geometry.coordinates(node)[dim], schedule.geometry.sizes[dim]
            cut = dim in inner and at == (size - 1 if direction > 0 else 0)  # then a band at both sides
            bands += (1 + cut) * (count > 1)
        assert len(picture.bands[step]) == bands
        said = [text for text in picture.captions[step] if text.startswith('contention')]
        most = max(crossings.values())
        assert said == ([f'contention: up to {most} messages on a channel'] if most > 1 else [])


def test_arcs_that_share_a_channel_lie_apart():
    picture = Picture(plan('7', 'direct', '--svg', '-'))
    schedule = Schedule('7', 'direct')
    heights = {}
    for message, (_, body) in picture.steps[2].items():
        line = next(p for p in body.iter(f'{SVG}path') if has_class(p, 'l'))
        heights[message] = min(y for _, y in points(line))
    for a in heights:
        for b in heights:
            if a != b and set(schedule.channels(a)) & set(schedule.channels(b)):
                assert heights[a] != heights[b]


@pytest.mark.parametrize(('dims', 'algorithm', 'extra'), [
    ('4x4', 'stream', []), ('4x6m', 'stream', []), ('3x3x3', 'stream', []), ('8x8', 'at2', ['--load'])])
def test_load_of_the_channels(dims, algorithm, extra):
    picture = Picture(plan(dims, algorithm, '--svg', '-', *extra))
    assert list(picture.steps) == ['Load of the channels']
    assert picture.blocks('Load of the channels') == dict(Schedule(dims, algorithm).load())
    check_thickness(picture)


def test_steps_of_a_streaming_schedule():
    picture = Picture(plan('4x4', 'stream', '--svg', '-', '--steps', '1-2'))
    schedule = Schedule('4x4', 'stream')
    assert {step: picture.blocks(step) for step in picture.steps} == {s: schedule.steps[s] for s in (1, 2)}


@pytest.mark.parametrize(('dims', 'algorithm'), [('8x8', 'at2'), ('5x5', 'yangwang'), ('4x4', 'cccube'),
                                                 ('4x4m', 'atape'), ('8', 'ar')])
def test_blocks_of_one_source(dims, algorithm):
    picture = Picture(plan(dims, algorithm, '--svg', '-', '--source', '7'))
    schedule = Schedule(dims, algorithm, source=7)
    assert {step: picture.blocks(step) for step in picture.steps} == dict(schedule.steps)


def test_what_one_node_does():
    picture = Picture(plan('8x8', 'at2', '--node', '27', '--svg', '-'))
    schedule = Schedule('8x8', 'at2')
    for step, messages in schedule.steps.items():
        mine = {m: blocks for m, blocks in messages.items()
                if 27 in {m.end} | {node for node, _ in schedule.channels(m)}}
        assert picture.blocks(step) == mine
    node = picture.root.find(f'{SVG}defs/{SVG}g/{SVG}circle[@class="chosen"]')
    assert (float(node.get('cx')), float(node.get('cy'))) == picture.centre[27]


@pytest.mark.parametrize(('dims', 'algorithm', 'groups'), [
    ('8', 'ar', 2), ('4x4', 'at2', 2), ('8x8', 'at2', 8), ('8x8', 'pair', 4), ('3x5', 'a2', 1), ('5x4m', 'dim', 4)])
def test_nodes_of_one_shade_send_the_same(dims, algorithm, groups):
    picture = Picture(plan(dims, algorithm, '--svg', '-'))
    sends = collections.defaultdict(set)
    for step, messages in Schedule(dims, algorithm).steps.items():
        for message, blocks in messages.items():
            sends[message.start].add((step, message.port, message.hops, blocks))
    assert len(set(picture.shade.values())) == groups
    assert len({(picture.shade[rank], frozenset(sends[rank])) for rank in picture.shade}) == groups


@pytest.mark.parametrize('dims', ['3x4m', *(pytest.param(dims, marks=pytest.mark.slow) for dims in (
    '1', '1x1', '2m', '6', '4x4', '2x3x2'))])
def test_every_algorithm_gives_valid_files_that_need_nothing_else(dims):
    rows = json.loads(torusctl('--json', 'algorithms').stdout)['algorithms']
    drawn = 0
    for row in rows:
        done = torusctl('plan', '--dims', dims, '--algorithm', row['name'], '--svg', '-')
        if done.returncode == 2:
            assert row['name'].encode() in done.stderr and dims.encode() in done.stderr
            continue
        assert done.returncode == 0, done.stderr
        picture = Picture(done.stdout)
        assert picture.texts[0] == f'{row["name"]} on {dims}'
        assert done.stdout == plan(dims, row['name'], '--svg', '-')  # always the same bytes
        text = done.stdout.decode()
        assert set(re.findall(r'href="([^"]*)"', text)) == {'#torus'}
        assert not re.search(r'<script|<image|<foreignObject|@import|@font-face|url\(|nan|inf\b', text)
        drawn += 1
    assert drawn >= 5


def test_the_picture_in_the_readme_is_up_to_date():
    assert (CHECKOUT / 'client/cli/drawing/ar-8.svg').read_bytes() == plan('8', 'ar', '--svg', '-')


# ---- Files and options --------------------------------------------------------------------------

def test_the_report_is_printed_as_well(tmp_path):
    file = tmp_path / 'at2.svg'
    assert plan('4x4', 'at2', '--svg', file) == plan('4x4', 'at2')
    assert file.read_bytes() == plan('4x4', 'at2', '--svg', '-')
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask
    assert os.listdir(tmp_path) == ['at2.svg']


def test_a_file_is_replaced_where_links_lead(tmp_path):
    (tmp_path / 'there').mkdir()
    file, link = tmp_path / 'there' / 'a.svg', tmp_path / 'link.svg'
    file.write_text('old')
    file.chmod(0o640)
    link.symlink_to(file)
    plan('4x4', 'at2', '--svg', link)
    assert link.is_symlink() and b'<svg' in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / 'old.svg').write_text('old')
    for name in ('old.svg', 'new.svg'):
        done = run(['bash', '-c', 'trap "" XFSZ; ulimit -f 4; exec "$@"', '-', find_program('torusctl'),
                    'plan', '--dims', '8x8', '--svg', tmp_path / name])
        assert (done.returncode, done.stdout) == (1, '')
        assert f'cannot write {tmp_path / name}: File too large' in done.stderr
    assert os.listdir(tmp_path) == ['old.svg']
    assert (tmp_path / 'old.svg').read_text() == 'old'


@pytest.mark.parametrize(('file', 'says'), [
    ('missing/a.svg', 'No such file or directory'), ('.', 'Is a directory'), ('/dev/full', 'No space left')])
def test_where_no_file_can_be(tmp_path, file, says):
    done = torusctl('plan', '--dims', '4x4', '--svg', tmp_path / file)
    assert (done.returncode, done.stdout) == (1, b'')
    assert says in done.stderr.decode()


def test_standard_output_that_cannot_be_written():
    with open('/dev/full', 'wb') as full:
        done = run([find_program('torusctl'), 'plan', '--dims', '8x8', '--svg', '-'], stdout=full)
    assert done.returncode == 1 and 'No space left' in done.stderr


@pytest.mark.parametrize(('arguments', 'code', 'says'), [
    (['--dims', '4x4', '--steps', '1'], 2, '--steps is for a picture: give its file with --svg FILE'),
    (['--dims', '4x4', '--source', '1'], 2, '--source is for a picture'),
    (['--dims', '4x4', '--load'], 2, '--load is for a picture'),
    (['--dims', '4x4', '--svg', '-', '--routes'], 2, '--svg and --routes: give one or the other'),
    (['--dims', '4x4', '--steps', '0', '--routes'], 2, '--steps and --routes: give one or the other'),
    (['--dims', '4x4', '--svg', '-', '--source', '16'], 2, "--source: '16' is not a number from 0 to 15"),
    (['--dims', '4x4', '--svg', '-', '--node', '16'], 2, "--node: '16' is not a number from 0 to 15"),
    *[(['--dims', '4x4', '--svg', '-', '--steps', steps], 2, 'its steps are 0 to 3')
      for steps in ('4', '0-4', '2-1', '-', '1-', '-1', 'x', '', '1-2-3', '0' * 40, '1,2')],
    (['--dims', '1', '--svg', '-', '--steps', '0'], 2, 'the schedule has no steps'),
])
def test_refusals(arguments, code, says):
    done = torusctl('plan', *arguments)
    assert (done.returncode, done.stdout) == (code, b'')
    assert says in done.stderr.decode()


# ---- What is left out ---------------------------------------------------------------------------

@pytest.mark.parametrize(('dims', 'steps', 'more', 'part', 'first', 'last'), [
    ('64x32', '31-33', [], '(0-31, 0-31) are drawn, 1024 of 2048', 0, 1023),
    ('64x32', '31-33', ['--node', '2047'], '(32-63, 0-31) are drawn, 1024 of 2048', 1024, 2047),
    ('48x48', '46-48', ['--source', '1176'], '(8-39, 8-39) are drawn, 1024 of 2304', 392, 1911),
    ('16x16x8', '127-128', [], '(0-7, 0-15, 0-7) are drawn, 1024 of 2048', 0, 1023),
])
def test_a_part_of_a_large_torus(dims, steps, more, part, first, last):
    done = torusctl('plan', '--dims', dims, '--algorithm', 'direct', '--svg', '-', '--steps', steps, *more)
    assert done.returncode == 0 and b'what it leaves out' in done.stderr
    picture = Picture(done.stdout)
    assert f'Only nodes {part}. Arrows from and to other nodes are cut off at the frame.' in picture.texts
    assert len(picture.centre) == 1024 and min(picture.centre) == first and max(picture.centre) == last
    for step in picture.steps.values():
        for message, (_, body) in step.items():
            assert message.start in picture.centre or message.end in picture.centre
            check_arrow(picture, message, body)


def test_all_messages_of_the_part_are_drawn():
    """In step 0 of at2 every node sends to its four neighbours, and 32 + 32 messages enter the part."""
    picture = Picture(plan('64x32', 'at2', '--svg', '-', '--steps', '0'))
    assert len(picture.steps[0]) == 4 * 1024 + 64


def test_load_of_a_part():
    """Every channel of the part, and every channel that leads into it, has a load."""
    picture = Picture(plan('64x32', 'at2', '--svg', '-', '--load'))
    whole = json.loads(torusctl('plan', '--dims', '64x32', '--algorithm', 'at2', '--json').stdout)
    (_, load), = picture.steps.items()
    assert len(load) == 4 * 1024 + 64
    assert max(blocks for blocks, _ in load.values()) <= whole['transmission']


@pytest.mark.slow
def test_steps_that_do_not_fit_are_left_out():
    done = torusctl('plan', '--dims', '16x16', '--algorithm', 'direct', '--svg', '-')
    assert done.returncode == 0 and b'what it leaves out' in done.stderr
    picture = Picture(done.stdout)
    assert 'Only steps 0 to 77 of 0 to 254 are drawn: more arrows do not fit into a picture.' in picture.texts
    assert sorted(picture.steps) == list(range(78))
    assert sum(len(step) for step in picture.steps.values()) <= 40000
    for choice in (['--steps', '0-77'], ['--source', '0'], ['--node', '0'], ['--load']):
        done = torusctl('plan', '--dims', '16x16', '--algorithm', 'direct', '--svg', '-', *choice)
        assert done.returncode == 0 and done.stderr == b''

