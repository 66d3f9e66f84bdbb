"""The pages of torusctl plan --html and torusctl report --html in a browser: all controls, keys and clicks, at the widths
of a screen and of a telephone, light and dark, and for people who see or move less well."""

import json
import subprocess

import pytest
from support import traces
from support.browser import Browser, Keys, needs_browser
from support.waiting import wait_for
from torus_net import LoopbackTorus
from torus_net.process import find_program

pytestmark = needs_browser
MIDDLE = 'return (LEFT + document.getElementById("lines").clientWidth) / 2'  # of the time
VIEWS = [pytest.param(width, dark, id=('dark ' if dark else '') + name)
         for width, name in [(1280, 'screen'), (390, 'telephone')] for dark in [False, True]]
DAMAGED = '4x4 without some'
# Options of the plan, and what else can be compared.
TORI = {'4x4': (['--dims', '4x4', '--algorithm', 'at2'], 'stream'),
        '8x8': (['--dims', '8x8', '--algorithm', 'at2'], 'dim'),
        '3x4x5': (['--dims', '3x4x5', '--algorithm', 'dim'], 'direct'),
        'complete:5': (['--dims', 'complete:5'], None),
        DAMAGED: (['--dims', '4x4', '--without', '3:+0,7'], None)}


def plan(*options):
    result = subprocess.run([find_program('torusctl'), 'plan', *map(str, options)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope='module')
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture(scope='module')
def pages(tmp_path_factory):
    """pages('4x4'): the page of a plan, made once."""
    folder, made = tmp_path_factory.mktemp('pages'), {}

    def make(dims, compare=None):
        if (dims, compare) not in made:
            path = made[dims, compare] = folder / f'{len(made)}.html'
            plan(*TORI[dims][0], '--html', path, *(['--compare', compare] if compare else []))
        return made[dims, compare]
    return make


@pytest.mark.parametrize('width,dark', VIEWS)
@pytest.mark.parametrize('dims', TORI)
def test_an_animation_is_for_everybody(browser, pages, dims, width, dark):
    browser.open(pages(dims, TORI[dims][1]), width, dark)
    browser.check()
    browser.click('forward')
    for show in 'load', 'total', 'blocks':
        browser.choose('show', show)
    browser.check()


@pytest.mark.parametrize('dims', TORI)
def test_an_animation_plays(browser, pages, dims):
    browser.open(pages(dims))
    steps = browser.run('return panels[0].schedule.steps.length')
    canvas = browser.run('return panels[0].canvas')
    at = lambda: browser.run('return player.at')  # noqa: E731
    first = browser.pixels(canvas)
    assert first[1] > 4 and at() == 0 and f' 1 of {steps}' in browser.run('return panels[0].title.textContent')
    browser.click('forward')
    assert at() == 1 and browser.pixels(canvas)[0] != first[0]
    browser.press(Keys.ARROW_RIGHT)
    assert at() == min(2, steps)
    browser.press(Keys.ARROW_LEFT)
    browser.click('back')
    assert at() == 0 and browser.pixels(canvas)[0] == first[0]
    browser.click('last')
    assert at() == steps and browser.run('return panels[0].title.textContent') == 'The end'
    # All blocks are where they belong: nobody holds a block for another node.
    assert browser.run('return panels[0].held.every((s, n) => [...s].every((b) => panels[0].schedule.destination(b) === n))')
    nodes = browser.run('return torus.node_count') - (dims == DAMAGED)
    assert browser.run('return panels[0].held.reduce((n, s) => n + s.size, 0)') == nodes * (nodes - 1) * browser.run(
        'return panels[0].data.segments')
    browser.click('first')
    assert at() == 0
    browser.slide('position', 500)
    assert 0 < at() < steps
    browser.note_texts('play')  # an animation goes on while a test asks, and may end
    browser.press(' ')
    browser.choose('speed', 8)
    wait_for(lambda: browser.noted_texts('play') == ['Stop', 'Play'], what=lambda: browser.noted_texts('play'))
    assert at() == steps and not browser.run('return player.playing')
    assert browser.run('const button = document.getElementById("play"); button.click(); const playing = player.playing;'
                       'button.click(); return [playing, player.playing];') == [True, False]
    browser.choose('by', 'time')
    browser.click('last')
    end = browser.text('clock')
    browser.run('document.getElementById("rate").value = 10; document.getElementById("rate").dispatchEvent(new Event("change"))')
    assert browser.text('clock') != end
    browser.check()


@pytest.mark.parametrize('dims', TORI)
def test_nodes_of_an_animation_are_chosen(browser, pages, dims):
    browser.open(pages(dims))
    nodes = browser.run('return torus.node_count')
    for rank in {0, nodes // 2, nodes - 1}:
        x, y = browser.run('const v = panels[0].view, p = torus.place[arguments[0]];'
                           'return [p[0] * v.scale + v.left, p[1] * v.scale];', rank)
        browser.click_at(browser.run('return panels[0].canvas'), x, y)
        assert browser.run('return player.node') == rank
        assert browser.run('return document.getElementById("node").value') == str(rank)
        each = (nodes - 1 - (dims == DAMAGED)) * browser.run('return panels[0].data.segments')
        assert f'holds {each} ' in browser.text('node-text')
    browser.choose('node', 1)
    assert browser.run('return player.node') == 1
    browser.choose('only', 2)
    browser.click('forward')
    browser.check()


WINDOWS = [(1280, 800), (1024, 768)]


@pytest.mark.parametrize('size', WINDOWS, ids=lambda size: f'{size[0]}x{size[1]}')
@pytest.mark.parametrize('dims,compare', [('4x4', None), ('4x4', 'stream'), ('8x8', None), ('8x8', 'dim')])
def test_a_torus_and_its_controls_are_above_the_fold(browser, pages, dims, compare, size):
    browser.open(pages(dims, compare), *size[:1], height=size[1])
    steps = browser.run('return panels[0].schedule.steps.length')
    for _ in range(steps + 1):
        boxes = browser.run('return [...document.querySelectorAll("#schedules canvas, .step, .controls")].map((e) => {'
                            'const b = e.getBoundingClientRect(); return [b.top, b.bottom]; })')
        assert all(top >= 0 and bottom <= size[1] for top, bottom in boxes), boxes
        controls = boxes[-1]
        assert all(bottom <= controls[0] + 1 for _, bottom in boxes[:-1]), boxes
        browser.run('stepBy(1)')
    assert browser.run('return panels[0].view.scale * 2 * NODE_RADIUS') > 12  # pixels of a node


def test_a_page_fills_the_screen(browser, pages):
    browser.open(pages('4x4'))
    scale = browser.run('return panels[0].view.scale')
    browser.press('f')
    wait_for(lambda: browser.run('return document.fullscreenElement?.id === "stage"'), what='F does not fill the screen')
    wait_for(lambda: browser.text('full') == 'Leave full screen')
    assert browser.run('return [document.getElementById("play"), panels[0].canvas].every((e) =>'
                       'e.getBoundingClientRect().bottom <= innerHeight)')
    browser.press(Keys.ARROW_RIGHT)
    assert browser.run('return player.at') == 1
    browser.click('full')
    wait_for(lambda: browser.run('return document.fullscreenElement === null'), what='the button does not leave')
    wait_for(lambda: browser.run('return panels[0].view.scale') == scale)
    browser.check()


@pytest.mark.parametrize('dims', TORI)
def test_each_step_has_a_sentence(browser, pages, dims):
    """What moves, why, and what has arrived, which is counted here from the messages."""
    browser.open(pages(dims))
    wrong = browser.run("""
        const {schedule} = panels[0], wrong = [];
        schedule.steps.forEach((step, i) => {
            const held = schedule.before(i + 1), text = wordsOf(panels[0], i)[1];
            const there = held.reduce((n, set, node) => n + [...set].filter((b) => schedule.destination(b) === node).length, 0);
            const moved = step.messages.reduce((n, m) => n + m.blocks.length, 0);
            if (!text.startsWith(`${moved} of ${schedule.all} `) || text.split('. ').length < 3
                || !text.endsWith(there === schedule.all ? 'Then all have arrived.'
                    : `Then ${there} have arrived, and ${schedule.all - there} are on their way.`)) wrong.push(text);
        });
        return wrong;""")
    assert not wrong, wrong
    assert browser.run('return panels[0].why.textContent') == browser.run('return wordsOf(panels[0], 0)[1]')
    if dims in ('4x4', '8x8'):
        assert 'parities of their destination' in browser.run('return panels[0].why.textContent')


@pytest.mark.parametrize('dims', ['4x4', '8x8', '3x4x5', '2mx2mx2mx2m', '16x2', '12', '16x16', '32x32'])
def test_each_destination_has_a_colour_or_none_has(browser, tmp_path, dims):
    page = tmp_path / 'page.html'
    plan('--dims', dims, '--algorithm', 'dim', '--source', 0, '--html', page)
    for dark in False, True:
        browser.open(page, dark=dark)
        nodes, colours = browser.run("""
            const seen = new Set(), g = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
            for (let n = 0; n < torus.node_count; n++) {
                g.fillStyle = colourOfNode(torus, n);
                g.fillRect(0, 0, 1, 1);
                seen.add(g.getImageData(0, 0, 1, 1).data.join());
            }
            return [torus.node_count, seen.size];""")
        assert colours == (nodes if nodes <= 256 else 1)
        assert ('too many for a colour' in browser.text('lead')) == (nodes > 256)


def test_what_is_down_is_drawn(browser, pages):
    """Dashed and red: both directions of a link, and a node; and said."""
    browser.open(pages(DAMAGED))
    assert 'dashed and red is down' in browser.text('lead')
    assert browser.run('return [...downNodes]') == [7]
    ends = browser.run('return [...downChannels].map((c) => [torus.channels[c][0], torus.channels[c][6]])')
    assert [3, '+0'] in ends and [7, '-0'] in ends and [6, '+1'] in ends and len(ends) == 8
    canvas = browser.run('return panels[0].canvas')
    drawn = browser.pixels(canvas)
    browser.run('downNodes.clear(); downChannels.clear(); drawAll()')
    assert browser.pixels(canvas) != drawn
    browser.open(pages('4x4'))
    assert 'down' not in browser.text('lead') and browser.run('return downNodes.size + downChannels.size') == 0


def test_focus_is_visible(browser, pages):
    browser.open(pages('4x4'))
    assert browser.has_visible_focus() >= 12


@pytest.mark.parametrize('fault,words', [
    ('document.getElementById("back").removeAttribute("aria-label"); document.getElementById("back").textContent = ""', 'has no name'),
    ('document.getElementById("lead").style.color = "#bbbbbb"', 'has a contrast of'),
    ('document.documentElement.lang = ""', 'no language'),
    ('document.querySelector("h2").outerHTML = "<h4>a</h4>"', 'skips a level'),
    ('panels[0].canvas.removeAttribute("role")', 'has no role'),
    ('document.getElementById("holds").removeAttribute("tabindex"); document.getElementById("holds").style.height = "9px"',
     'no key reaches it'),
    ('document.getElementById("lead").style.cssText = "min-width: 2000px; max-width: none"', 'pixels wide'),
    ('console.error("an error")', 'an error')])
def test_faults_of_a_page_are_seen(browser, pages, fault, words):
    browser.open(pages('4x4'))
    browser.run(fault)
    with pytest.raises(AssertionError, match=words):
        browser.check()


# --- reports ---

@pytest.fixture(scope='module')
def reports(tmp_path_factory):
    """reports('4x4'): the page of a traced exchange; with `down`, without this node's trace."""
    folder, made = tmp_path_factory.mktemp('reports'), {}

    def make(dims, down=None):
        if (dims, down) not in made:
            path, trace = folder / f'{len(made)}.html', folder / 'trace.json'
            with LoopbackTorus(dims) as torus:
                torus.json(0, 'exchange', '--block-size', '32KiB', '--repeat', 5, '--trace', trace)
                if down is not None:
                    torus.node(down).kill()
                    torus.wait_broken()
                    torus.ctl(0, 'trace', trace, check=True)
                torus.ctl(0, 'report', trace, '--html', path, check=True)
                made[dims, down] = path, traces.read(trace)
                if down is not None:
                    torus.node(down).start()
        return made[dims, down]
    return make


@pytest.mark.parametrize('width,dark', VIEWS)
@pytest.mark.parametrize('dims,down', [('4x4', None), ('3x3', 5), ('complete:5', None),
                                       pytest.param('8x8', None, marks=pytest.mark.slow),
                                       pytest.param('3x4x5', None, marks=pytest.mark.slow)])
def test_a_report_is_for_everybody(browser, reports, dims, down, width, dark):
    page, trace = reports(dims, down)
    browser.open(page, width, dark)
    browser.check()
    first = browser.run('return document.querySelector("#findings p").textContent')
    assert first == browser.run('return DATA.findings[0].text') and first.endswith('.')
    assert trace['torusd']['id'] in browser.text('title')
    nodes = len(trace['torusd']['nodes'])
    assert f'{nodes - (down is not None)} of {nodes}' in browser.text('figures')
    bars = browser.run('return [...document.querySelectorAll("#went .bar")].map((b) => b.getAttribute("aria-label"))')
    assert len(bars) == 1 + nodes - (down is not None) and all(' %' in bar for bar in bars)


def test_a_report_plays(browser, reports):
    page, _ = reports('4x4')
    browser.open(page)
    torus, lines = browser.find('torus'), browser.find('lines')
    browser.slide('at', 0)
    start = browser.pixels(torus)[0]
    browser.slide('at', 500)
    assert browser.pixels(torus)[0] != start
    browser.note_texts('play')
    browser.click('play')
    browser.slide('at', 1000)
    assert browser.noted_texts('play')[0] == 'Stop' and browser.text('play') == 'Play'
    all_lines = browser.pixels(lines)
    browser.choose('node', 3)
    assert browser.pixels(lines)[0] != all_lines[0] and browser.run('return lines.length') == 4
    x, y = browser.run('return [torus.place[9][0] * view.scale + view.left, torus.place[9][1] * view.scale]')
    browser.click_at(torus, x, y)
    assert browser.run('return page.node') == 9
    browser.click_at(lines, browser.run(MIDDLE), 18)
    assert 'node 9' in browser.text('under') and 'Mbit/s' in browser.text('under')
    browser.check()
    assert browser.has_visible_focus() >= 5


def test_texts_of_a_trace_are_no_html(browser, reports, tmp_path):
    _, trace = reports('4x4')
    evil, page = '<img src=x onerror="document.title=0"></script><b>', tmp_path / 'page.html'
    changed = json.loads(json.dumps(trace))
    for node in changed['torusd']['nodes']:
        node['name'] = evil
    changed['torusd'].update(id=evil, states=[evil] * 9, run={'operation': evil, 'algorithm': evil, 'seconds': 1})
    (tmp_path / 'trace').write_text(json.dumps(changed))
    result = subprocess.run([find_program('torusctl'), 'report', tmp_path / 'trace', '--html', page], text=True,
                            capture_output=True)
    assert result.returncode == 0, result.stderr
    browser.open(page)
    browser.choose('node', 3)
    browser.click_at(browser.find('lines'), browser.run(MIDDLE), 18)
    browser.check()
    assert browser.run('return document.querySelectorAll("img, p b, h1 b").length') == 0
    assert evil in browser.text('title') and evil in browser.text('under')


@pytest.mark.parametrize('width,dark', VIEWS)
def test_a_bench_is_plotted(browser, shared, tmp_path, width, dark):
    torus, page = shared('2x2'), tmp_path / 'bench.html'
    result = torus.ctl(0, '--json', 'bench', '--sizes', '0,1,1KiB,16KiB', '--repeat', 2, '--html', page, check=True)
    results = json.loads(result.stdout)['results']
    names = {one['algorithm'] for one in results}
    browser.open(page, width, dark)
    browser.check()
    count = 'return document.querySelectorAll(arguments[0]).length'
    assert browser.run(count, '#plot polyline') == len(names)
    assert browser.run(count, '#plot path title') == 3 * len(names)  # an empty block has no place in it
    assert browser.run(count, '#table tbody tr') == 4
    assert browser.run('return [...document.querySelectorAll("#table td")].filter((d) => d.textContent.endsWith("*")).length') >= 4
    assert browser.run('return [...document.querySelectorAll("#plot text")].every((t) => t.getBoundingClientRect().height >= 10)')
    assert browser.run('return [...document.querySelectorAll("#plot text[text-anchor=end]")].length') >= 2
    before = browser.run('return document.getElementById("plot").innerHTML')
    browser.choose('show', 'rate')
    assert browser.run('return document.getElementById("plot").innerHTML') != before
    browser.choose('show', 'seconds')
    for nearly in 1.1, 5, 9.7, 100:  # all values are alike
        browser.run('done.forEach((r) => { r.seconds = arguments[0]; }); plot()', nearly)
        assert browser.run('return [...document.querySelectorAll("#plot text[text-anchor=end]")].length') >= 2
    browser.choose('only', 'direct')
    assert browser.run(count, '#plot .quiet-line') == len(names) - 1
    browser.check()
    assert torus.ctl(0, 'bench', '--sizes', 1, '--repeat', 1, '--html', '-').stdout.startswith('<!DOCTYPE html>')
