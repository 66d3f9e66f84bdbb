"""torusctl serve: who may see the page, what it is told, and what a browser shows of it."""

import re
import signal
import socket
import time
from contextlib import ExitStack, suppress

import pytest
from support.background import LongExchange
from support.browser import Browser, needs_browser
from support.cable import Cable
from support.serving import Served
from support.waiting import wait_for
from support.wire import DIALLER
from torus_net.patience import run


@pytest.fixture
def served(torus):
    with Served(torus) as page:
        yield page


# --- who may see it ---

def test_the_token_is_needed(served):
    assert len(served.token) == 32
    paths = '/', '/serve.js', '/style.css', '/events', '/history', '/doctor', '/nothing'
    for path in paths:
        for cookie in None, served.cookie + 'x', served.cookie[:-1], f'torus-{served.port}=', 'other=' + served.token:
            assert served.status(path, cookie=cookie) == 401, (path, cookie)
    assert served.status('/?token=' + served.token[::-1], cookie=None) == 401
    assert served.status('/serve.js?token=' + served.token, cookie=None) == 401
    response, text = served.ask('/?token=' + served.token, cookie=None)
    assert response.status == 200 and served.token not in text and 'url=/"' in text
    cookie, *attributes = response.headers['Set-Cookie'].split('; ')
    assert cookie == served.cookie and {'HttpOnly', 'SameSite=Strict', 'Path=/'} == set(attributes)
    assert [served.status(path, cookie='a=b; ' + cookie) for path in paths if path != '/events'] == \
        [200, 200, 200, 404, 202, 404]


def test_other_hosts_are_refused(served):
    for host in 'evil.example', f'evil.example:{served.port}', '127.0.0.1.evil.example', '10.0.0.1', '':
        assert served.status('/', Host=host) == 403, host
    for host in f'127.0.0.1:{served.port}', 'localhost', 'localhost:9999':
        assert served.status('/', Host=host) == 200, host


def test_it_only_shows(served):
    for method in 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH', 'TRACE', 'NONSENSE':
        for cookie in True, None:
            response, _ = served.ask('/', method, body=b'x' * 1000 if method == 'POST' else None, cookie=cookie)
            assert response.status == 405 and response.headers['Allow'] == 'GET', method


def test_headers_keep_others_out(served):
    for path in '/', '/serve.js', '/history', '/nothing':
        headers = served.ask(path)[0].headers
        assert "default-src 'none'" in headers['Content-Security-Policy']
        assert 'unsafe' not in headers['Content-Security-Policy']
        assert headers['X-Content-Type-Options'] == 'nosniff' and headers['X-Frame-Options'] == 'DENY'
        assert headers['Cache-Control'] == 'no-store' and headers['Referrer-Policy'] == 'no-referrer'
        assert 'Access-Control-Allow-Origin' not in headers
    page = served.ask('/')[1]
    assert ' on' not in ''.join(part.split('>')[0] for part in page.split('<')[1:]), 'an inline handler'
    assert '<script>' not in page and 'style=' not in page


def test_without_token_on_loopback_only(torus):
    with Served(torus, '--no-token') as page:
        assert page.token == '' and page.status('/', cookie=None) == 200
        assert page.status('/', cookie=None, Host='evil.example') == 403
    for options in (['--no-token', '--address', '0.0.0.0:0'], ['--token', 'short'], ['--address', 'example.org'],
                    ['--no-token', '--token', 'x' * 20]):
        assert torus.ctl(0, 'serve', *options).returncode == 2, options
    with Served(torus, '--token', 'x' * 20) as page:
        assert page.token == 'x' * 20 and page.status('/') == 200
        taken = torus.ctl(0, 'serve', '--address', f'127.0.0.1:{page.port}')
        assert taken.returncode == 1 and 'another port' in taken.stderr


def test_garbage_does_not_end_it(served):
    for sent in b'\0' * 100, b'GET\r\n\r\n', b'GET / HTTP/1.1\r\n' + b'A: ' + b'x' * 100_000 + b'\r\n\r\n', b'\xff\xfe\r\n\r\n':
        with socket.create_connection(('127.0.0.1', served.port), timeout=30) as connection:
            with suppress(OSError):  # it may close first
                connection.sendall(sent)
    for query in '?node=99999999', '?node=-1', '?node=16', '?node=0&port=4', '?node=0&port=31':
        assert served.status('/history' + query) in (200, 404)
    assert served.status('/') == 200


def test_strangers_keep_nobody_out(served):
    """More connections that never finish a request than there may be: all others are served, and these are ended."""
    with ExitStack() as stack:
        strangers = [stack.enter_context(socket.create_connection(('127.0.0.1', served.port))) for _ in range(150)]
        for stranger in strangers[-100:]:
            with suppress(OSError):
                stranger.sendall(b'GET / HTTP/1.1\r\nX: ')
        with served.events() as events:
            for _ in range(3):
                assert events.find('state') and served.status('/') == 200
            wait_for(lambda: all(has_ended(stranger) for stranger in strangers), 30)
            assert events.find('state')  # it has the token, and stays


def has_ended(connection):
    try:
        return connection.recv(1000, socket.MSG_DONTWAIT) == b''
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize('options', [(), ('--json',)])
def test_an_address_that_nobody_can_read(torus, options):
    command = [torus.torusctl, '--socket', torus.node(0).socket, *options, 'serve', '--address', '127.0.0.1:0']
    with open('/dev/full', 'wb') as full:
        done = run(command, stdout=full)
    assert done.returncode == 1 and 'cannot write the result' in done.stderr and 'Open' not in done.stderr


# --- what the page is told ---

def test_events_describe_the_torus(torus, served):
    with served.events() as events:
        assert events.response.headers['Content-Type'] == 'text/event-stream'
        shape = events.find('torus')
        assert shape['dims'] == '4x4' and len(shape['channels']) == len(shape['opposite']) == 64
        state = events.find('state')
        assert len(state['node']) == 16 and state['links'] == state['links_up'] == 32 and state['faults'] == []
        assert all(end[0] for end in state['end'])
        rates = events.find('state', lambda value: all(end[1] is not None for end in value['end']))
        assert all(end[7] > 0 for end in rates['end'])
    with served.events() as events:
        doctor = events.find('doctor')
        assert doctor['node_count'] == 16 and all(f['severity'] in ('not seen', 'hint', 'warning', 'error') for f in doctor['findings'])
    history = served.ask('/history?node=3&port=0')[1]
    assert '"series"' in history and history.count('"peak"') == 2


def test_nobody_is_asked_while_nobody_looks(torus, tmp_path):
    requests = [0]

    def count(data, role):
        requests[0] += role == DIALLER
        return data

    with Cable(torus.node(0).socket, tmp_path / 'relay', count) as cable, Served(torus, control=cable.address) as served:
        assert served.status('/') == 200
        before = requests[0]
        with served.events() as events:
            times = [events.find('state')['at'] for _ in range(4)]
            assert times[3] - times[0] > 2000  # three seconds, less what the first survey took longer
            assert requests[0] >= before + 8  # status and survey

        def quiet():
            known = requests[0]
            time.sleep(2.5)  # there would be a survey
            return requests[0] == known
        wait_for(quiet, what='there are still surveys')


def test_an_exchange_is_told_with_progress(torus, served):
    with LongExchange(torus, rank=3) as client, served.events() as events:
        def found(state):
            runs = [run for run in state['runs'] if run['id'] == client.id]
            return runs and runs[0]['rate'] and runs[0]['left'] and runs[0]['state'] == 'running'
        state = events.find('state', found)
        run = next(run for run in state['runs'] if run['id'] == client.id)
        assert run['kind'] == 'exchange' and run['what'] == 'at2' and 0 < run['part'] < 1 and not run['ended']
        assert run['root'].endswith('(node 3)') and state['capacity'] > 0


def test_a_node_that_is_lost_is_told_and_found_again(torus, served):
    with served.events() as events:
        events.find('state')
        torus.node(7).kill()
        try:
            lost = events.find('state', lambda state: state['node'][7][1] != '')
            assert any(fault['node'] == 7 and '(node 7)' in fault['text'] for fault in lost['faults'])
        finally:
            torus.node(7).start()
        events.find('state', lambda state: state['node'][7][1] == '' and state['links_up'] == 32)


def test_it_waits_for_the_daemon_that_it_asks(torus, served):
    with served.events() as events:
        state = events.find('state')
        torus.node(0).kill()
        try:
            lost = events.find('lost')
            assert lost['why'] and lost['since'] >= state['at']
        finally:
            torus.node(0).start()
        assert events.find('state', lambda value: value['at'] > lost['since'])['node'][0][1] == ''


@pytest.mark.memory
def test_slow_readers_cost_little(served):
    """As many pages as allowed are open and do not read; one more is refused."""
    def memory():
        with open(f'/proc/{served.process.pid}/status', encoding='utf-8') as file:
            return int(next(line for line in file if line.startswith('VmRSS')).split()[1])

    with served.events() as first:
        first.find('state')
        request = f'GET /events HTTP/1.1\r\nHost: localhost\r\nCookie: {served.cookie}\r\n\r\n'.encode()
        others = [socket.create_connection(('127.0.0.1', served.port)) for _ in range(31)]
        try:
            for other in others:
                other.sendall(request)
                assert other.recv(12) == b'HTTP/1.1 200'
            response, text = served.ask('/events')
            assert response.status == 503 and '32' in text
            assert served.status('/') == 200
            before = memory()
            for _ in range(3):
                first.find('state')
            assert memory() - before < 4096
        finally:
            for other in others:
                other.close()
    wait_for(lambda: served.status('/history') in (200, 404))
    wait_for(lambda: _can_watch(served), what='closed pages still count')


def _can_watch(served):
    with served.events() as events:
        return events.response.status == 200


@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(torus, signum):
    with Served(torus) as page, page.events() as events:
        events.find('state')
        status, error = page.end(signum)
        assert status == 0 and 'Ctrl-C' in error
        with pytest.raises(OSError):
            page.ask('/')


def test_a_signal_as_soon_as_the_address_is_known(torus):
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 5:
        with Served(torus) as page:
            assert page.end(signum)[0] == 0


def test_without_a_daemon(torus, tmp_path):
    assert torus.ctl(0, '--socket', tmp_path / 'none', 'serve', '--address', '127.0.0.1:0').returncode == 3


# --- what a browser shows ---

@needs_browser
def test_a_browser_shows_what_happens(cabled):
    torus = cabled('4x4', end=5, port='+1')
    with Served(torus) as served, Browser() as page:
        page.open(served.url)
        page.wait_text('live', 'Live')
        page.wait_text('summary', '16 of 16 nodes answer', '32 of 32 links are up')
        page.wait_text('faults', 'None')
        assert page.driver.current_url == f'http://127.0.0.1:{served.port}/' and page.driver.title == 'Torus 4x4'
        assert page.run('return document.cookie') == ''
        with LongExchange(torus, rank=3) as client:
            page.wait_text('runs', client.id, 'at2', 'left', '%')
            assert 0 < float(page.run("return document.querySelector('#runs progress').value")) < 1
        torus.cable.cut_after(0)
        page.wait_text('faults', 'port +1 of', '(node 5)', '(node 6)')
        page.wait_text('summary', '31 of 32 links are up')
        # A click on the node, then on its link by the keyboard's way.
        page.run("""
            const [x, y] = page.torus.place[5], v = page.view, box = v.canvas.getBoundingClientRect();
            v.canvas.dispatchEvent(new MouseEvent('click', {bubbles: true,
                clientX: box.left + v.left + x * v.scale, clientY: box.top + y * v.scale}));""")
        page.wait_text('who', 'node 5, (1, 1)')
        page.wait_text('table', '+1', 'round trip')
        page.run("const s = document.getElementById('port'); s.value = '2'; s.dispatchEvent(new Event('change'));")
        page.wait_text('who', 'The link is')
        page.wait_text('charts', 'Sent', 'Received')
        torus.cable.mend()
        page.wait_text('faults', 'None')
        page.wait_text('judged', 'Judged at')
        page.check()


@needs_browser
@pytest.mark.parametrize('width', [1280, 390], ids=['screen', 'telephone'])
@pytest.mark.parametrize('dims', ['2x3', '3x4x5', 'complete:5', pytest.param('8x8', marks=pytest.mark.full)])
def test_a_page_is_for_everybody(shared, dims, width):
    """Nodes are chosen by the mouse and by the keyboard, and their links, in the light and in the dark."""
    torus = shared(dims)
    nodes = torus.geometry.nodes
    with Served(torus) as served, Browser() as page:
        for dark in False, True:
            page.open(served.url, width, dark)
            page.wait_text('live', 'Live')
            page.wait_text('summary', f'{nodes} of {nodes} nodes answer')
            page.check()
            page.choose('node', nodes - 1)
            page.wait_text('who', f'node {nodes - 1}')
            ports = page.run("return [...document.getElementById('port').options].map((o) => o.value)")
            assert len(ports) - 1 == len(torus.links(nodes - 1)['links'])
            for port in ports[1:]:
                page.choose('port', port)
                page.wait_text('who', 'The link is up')
                page.wait_text('charts', 'Sent', 'Received')
            page.check()
        assert page.has_visible_focus() >= 4


@needs_browser
def test_rows_hold_still(served):
    """The busiest links keep their order for some seconds, and as long as somebody points at them, whatever they carry."""
    with Browser() as page:
        page.open(served.url)
        page.wait_text('table', 'bit/s')
        told = """
            const told = (rank) => {  // a state in which the channels from this one on carry most
                const state = structuredClone(page.state);
                state.end.forEach((end, i) => { end[SENT] = 1e9 * ((i - rank + 64) % 64); });
                onState(state);
                return [...document.querySelectorAll('#table tbody tr')].map((row) => Number(row.dataset.channel));
            };
            const old = () => { order.at = 1; order.sums.fill(0); };"""
        first, others, later = page.run(told + """
            old();
            const first = told(0), others = [];
            order.at = Date.now();
            for (let rank = 1; rank < 60; rank++) others.push(told(rank));
            old();
            return [first, others, told(30)];""")
        assert first == [63, 62, 61, 60, 59, 58, 57, 56, 55, 54]
        assert all(order == first for order in others)
        assert later == [29, 28, 27, 26, 25, 24, 23, 22, 21, 20]
        page.point_at('table')
        before, after = page.run(told + 'const before = told(5); old(); return [before, told(50)];')
        assert before == after
        page.point_at('title')
        assert page.run(told + 'old(); return told(50);')[:2] == [49, 48]


@needs_browser
def test_charts_have_axes_with_numbers(served):
    with Browser() as page:
        page.open(served.url)
        page.wait_text('charts', 'Sent by all nodes', 'ago', 'now')
        numbers = page.run("return [...document.querySelectorAll('#charts .rates span')].map((s) => s.textContent)")
        assert len(numbers) == 3 and numbers[2] == '0' and all(number.endswith('bit/s') for number in numbers[:2])
        assert page.run("return document.querySelectorAll('#charts svg .grid').length") == 3
        ends = page.run('return [0, 1, 12.5e6, 13e6, 26e6, 99e6, 1e12].map((rate) => [rate, roundUp(rate)])')
        for rate, end in ends:
            assert rate <= end and (end <= 2.5 * rate or end < 1)
            assert f'{end * 8:.0e}'[0] in '125'


@needs_browser
@pytest.mark.parametrize('width,height', [(1280, 800), (390, 844)], ids=['screen', 'telephone'])
def test_rates_and_faults_are_in_view(loopback, width, height):
    """Rates on the links, and in a table whatever its width; what failed, on the first screen and in the title."""
    torus = loopback('4x4')
    with Served(torus) as served, Browser() as page:
        page.open(served.url, width, height=height)
        page.wait_text('faults', 'None')
        assert page.driver.title == 'Torus 4x4'
        with LongExchange(torus, rank=3):
            def labels():
                return page.run("""
                    const texts = [], real = CanvasRenderingContext2D.prototype.fillText;
                    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
                        if (/[kMG]$/.test(text)) texts.push(text);
                        real.call(this, text, ...at);
                    };
                    draw();
                    CanvasRenderingContext2D.prototype.fillText = real;
                    return texts;""")
            wait_for(lambda: len(labels()) > 16, 60, labels)
            assert all(len(label) <= 4 for label in labels())
            for node in -1, 5:
                page.choose('node', node)
                edges = page.run("""return [...document.querySelectorAll('#table tbody tr')].flatMap((row) =>
                    [...row.cells].filter((c) => c.textContent.endsWith('bit/s')).map((c) => c.getBoundingClientRect().right));""")
                assert len(edges) >= 8 and max(edges) <= width
            page.choose('node', -1)
            page.check()
            torus.node(6).kill()
            page.wait_text('faults', '(node 6)', 'exchange at2', 'failed')
            torus.node(6).start()
        wait_for(lambda: page.driver.title.startswith('\u25b2 1 fault - '), 60, lambda: page.driver.title)  # the exchange
        bottom = page.run("return Math.max(...[...document.querySelectorAll('#faults .fault')].map((f) => f.getBoundingClientRect().bottom))")
        assert bottom < height
        page.run("""const state = structuredClone(page.state);
            state.faults = Array.from({length: 9}, (_, i) => ({text: `fault ${i}`, why: 'reason'}));
            onEvent('state', state);
            if (document.title !== '\u25b2 10 faults - Torus 4x4') throw new Error(document.title);
            const shown = [...document.querySelectorAll('#faults .fault')].filter((f) => f.checkVisibility()).length;
            if (shown !== 5) throw new Error(`${shown} are shown`);
            onEvent('doctor', {at: 0, nodes: 16, findings: [{severity: 'error', check: 'c', hosts: ['h'], what: 'w', why: '', mend: '',
                each: ['w', 'x', 'y', 'z', 'a', 'b'].map((what) => ({host: 'h', what, mend: ''}))}]});""")
        assert '1 error' in page.text('doctor-says')
        said = page.run("return document.getElementById('findings').textContent")
        assert 'also h: z' in said and 'also h: a' not in said and 'and 2 more of this kind' in said


@needs_browser
def test_a_browser_connects_again(torus):
    with Browser() as page:
        with Served(torus, '--token', 'x' * 20) as served:
            page.open(served.url, width=390)
            page.wait_text('live', 'Live')
            page.check()
            address = f'127.0.0.1:{served.port}'
        page.wait_text('live', 'Trying again', 'old')
        with Served(torus, '--token', 'x' * 20, address=address):
            page.wait_text('live', 'Live')
        with Served(torus, address=address):
            page.wait_text('live', 'needs the token')


@needs_browser
def test_an_old_state_is_known_to_be_old(loopback):
    """A page that is opened when nothing new comes any more shows it, too."""
    torus = loopback('2x2')
    with Browser() as page, Served(torus) as served:
        page.open(served.url)
        page.wait_text('live', 'Live')
        torus.node(0).kill()
        wait_for(lambda: age_shown(page) > 6, 60)
        page.open(served.url)
        page.wait_text('live', 'What is shown is')
        assert age_shown(page) > 6


def age_shown(page):
    found = re.search(r'What is shown is ([\d.]+) s old', page.text('live'))
    return float(found[1]) if found else 0


@needs_browser
def test_texts_of_other_machines_are_no_html(served):
    """They are told as they are, and shown as texts."""
    with Browser() as page:
        page.open(served.url)
        page.wait_text('live', 'Live')
        page.run("""
            const evil = '<img src=x onerror="window.harmed=1"><b>bold</b>', s = structuredClone(page.state);
            s.node.forEach((n) => { n[0] = evil; });
            s.faults = [{node: 0, port: null, text: evil}];
            s.runs = [{kind: 'copy', id: evil, what: evil, state: evil, reason: evil, ended: false, nodes: 1, root: evil,
                       age: 1, done: 1, total: 2, round: 0, rounds: 0, calls: 0, calls_done: 0, part: 0.5, rate: 1, left: 1}];
            onState(s);
            onEvent('doctor', {at: 1, findings: [{severity: 'error', check: evil, hosts: [evil], what: evil, why: evil, mend: evil,
                each: [0, 1].map((i) => ({host: evil, what: i + evil, mend: evil}))}]});
            window.shown = ['faults', 'runs', 'findings', 'table', 'node'].map((id) =>
                [document.querySelectorAll(`#${id} img, #${id} .run b`).length, document.getElementById(id).textContent]);""")
        for images, text in page.run('return window.shown'):
            assert images == 0 and 'onerror' in text
        assert page.run('return window.harmed') is None
