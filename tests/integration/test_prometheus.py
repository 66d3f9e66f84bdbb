"""Prometheus reads two daemons; alert rules and the dashboard ask for metrics that exist."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest
from support.openmetrics import Metrics
from support.users import free_port
from support.waiting import wait_for
from support.watcher import Watcher
from torus_net import CHECKOUT
from torus_net.patience import Patience, run, wait

FILES = CHECKOUT / 'scripts' / 'packaging' / 'monitoring'
RULES, DASHBOARD = FILES / 'torusd-alerts.yml', FILES / 'torusd-dashboard.json'


def needs(program):
    if shutil.which(program) is None:
        pytest.skip(f'{program} is not installed (Debian: prometheus)')


@pytest.fixture(scope='module')
def torus(shared, tmp_path_factory):
    """With all that has metrics: the test stands for torus-routed, which needs hosts of its own."""
    torus = shared('2', extra=('--metrics', '127.0.0.1:0'), data_roots=tmp_path_factory.mktemp('root'))
    watcher = Watcher(torus, 0)
    watcher.hear()
    watcher.tell_routes()
    wait_for(lambda: {'torus_routes', 'torus_data_root_free_bytes'} <= {key[0] for key in Metrics(torus).samples})
    yield torus
    watcher.socket.close()


class Prometheus:
    def __init__(self, folder, targets, interval='200ms'):
        (folder / 'prometheus.yml').write_text(json.dumps({
            'global': {'scrape_interval': interval, 'scrape_timeout': interval, 'evaluation_interval': interval},
            'rule_files': [str(RULES)],
            'scrape_configs': [{'job_name': 'torusd', 'static_configs': [{'targets': targets}]}]}))
        self.address, self.log = f'127.0.0.1:{free_port()}', folder / 'log'
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(
                ['prometheus', '--config.file', folder / 'prometheus.yml', '--storage.tsdb.path', folder / 'data',
                 '--web.listen-address', self.address], stdout=log, stderr=log)

    def get(self, path, **query):
        """The `data` of an answer; None while Prometheus starts."""
        try:
            url = f'http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}'
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)['data']
        except OSError as error:
            assert self.process.poll() is None, self.log.read_text()
            # It answers 503 until it is ready; 400 says what is wrong with a query.
            assert getattr(error, 'code', 503) == 503, error.read()
            return None

    def query(self, query):
        return (self.get('query', query=query) or {'result': []})['result']

    def end(self):
        self.process.terminate()
        wait(self.process, Patience(30))


@pytest.fixture(scope='module')
def prometheus(torus, tmp_path_factory):
    needs('prometheus')
    one = Prometheus(tmp_path_factory.mktemp('prometheus'), [torus.status(rank)['metrics'] for rank in range(2)])
    yield one
    one.end()


def values(result, label='instance'):
    return {sample['metric'][label]: float(sample['value'][1]) for sample in result}


def test_it_reads_both_daemons(torus, prometheus):
    targets = {torus.status(rank)['metrics'] for rank in range(2)}
    up = wait_for(lambda: len(up := values(prometheus.query('torus_nodes'))) == 2 and up)
    assert up == dict.fromkeys(targets, 2)
    assert values(prometheus.query('up')) == dict.fromkeys(targets, 1)
    links = prometheus.query('torus_link_up')
    assert {(sample['metric']['instance'], sample['metric']['port']) for sample in links} == {
        (target, port) for target in targets for port in ('+0', '-0')}
    torus.ctl(0, 'exchange', '--algorithm', 'direct', '--block-size', '1MiB', check=True)
    wait_for(lambda: all(value >= 1 << 20 for value in values(prometheus.query(
        'torus_exchange_delivered_bytes_total')).values()))
    wait_for(lambda: any(value > 1000 for value in values(prometheus.query(
        'sum by (instance) (rate(torus_link_sent_bytes_total[10s]))')).values()))
    wait_for(lambda: any(value > 0 for value in values(prometheus.query(
        'histogram_quantile(0.5, rate(torus_exchange_duration_seconds_bucket[20s]))')).values()))
    kinds = {name: facts[0]['type'] for name, facts in prometheus.get('metadata').items()}
    assert kinds['torus_link_sent_bytes'] == 'counter' and kinds['torus_node'] == 'info', \
        'Prometheus did not ask for OpenMetrics'


def test_it_loads_the_rules(prometheus):
    groups = wait_for(lambda: (prometheus.get('rules') or {}).get('groups'))
    names = {rule['name'] for group in groups for rule in group['rules']}
    assert names == set(re.findall(r'alert: (\w+)', RULES.read_text()))
    wait_for(lambda: all(rule['health'] == 'ok' for group in prometheus.get('rules')['groups']
                         for rule in group['rules']))


def queries(dashboard):
    """The queries of its panels, with values for its variables."""
    for panel in dashboard['panels']:
        for target in panel['targets']:
            query = target['expr'].replace('$__rate_interval', '5s').replace('$job', 'torusd')
            yield panel['title'], query.replace('$instance', '.*')


def test_the_panels_of_the_dashboard_show_something(torus, prometheus):
    """Panels that show only what goes wrong are empty here."""
    dashboard = json.loads(DASHBOARD.read_text())
    torus.ctl(0, 'exchange', '--algorithm', 'direct', '--block-size', '1MiB', check=True)
    for title, query in queries(dashboard):
        assert '$' not in query, query
        if title == 'Links: packets sent again':
            prometheus.query(query)
        else:
            wait_for(lambda query=query: prometheus.query(query), what=f'{title}: {query} finds nothing')


def test_the_dashboard_can_be_read():
    dashboard = json.loads(DASHBOARD.read_text())
    taken = set()
    for panel in dashboard['panels']:
        assert panel['title'] and panel['description'] and panel['fieldConfig']['defaults']['unit']
        at = panel['gridPos']
        cells = {(at['x'] + x, at['y'] + y) for x in range(at['w']) for y in range(at['h'])}
        assert not cells & taken and max(x for x, _ in cells) < 24, panel['title']
        taken |= cells
    assert len({panel['id'] for panel in dashboard['panels']}) == len(dashboard['panels'])
    assert {one['name'] for one in dashboard['templating']['list']} == {'source', 'job', 'instance'}


def test_rules_and_dashboard_name_metrics_that_exist(torus):
    served = {key[0] for key in Metrics(torus).samples} | {'torus_link_clock_ahead_seconds'}
    text = RULES.read_text() + ''.join(query for _, query in queries(json.loads(DASHBOARD.read_text())))
    for name in re.findall(r'\b(?:torus|process)_[a-z_]+\b(?=[{[])', text):
        assert name in served, name


def test_promtool_accepts_the_rules():
    needs('promtool')
    result = run(['promtool', 'check', 'rules', str(RULES)])
    assert result.returncode == 0, result.stdout + result.stderr


PORT = 'job="torusd",instance="a",port="+0",neighbour="1"'
ROOT = 'job="torusd",instance="a",path="/srv"'
# What makes each alert fire: series in the notation of promtool, a sample a minute.
FIRES = {
    'TorusdUnreachable': {'up{job="torusd",instance="a"}': '1 0x40'},
    'TorusLinkDown': {f'torus_link_up{{{PORT}}}': '1 0x40'},
    'TorusLinkFlaps': {f'torus_link_connects_total{{{PORT}}}': '0+1x40', f'torus_link_held{{{PORT}}}': '0x40'},
    'TorusNodesDown': {'torus_nodes_down{job="torusd",instance="a"}': '0 1x40'},
    'TorusCableFault': {'torus_cable_faults{job="torusd",instance="a",code="loop"}': '0 1x40'},
    'TorusLinkLosesPackets': {f'torus_link_retransmitted_packets_total{{{PORT}}}': '0+100000x40',
                              f'torus_link_sent_bytes_total{{{PORT}}}': '0+60000000x40'},
    'TorusMemoryFull': {'torus_memory_reserved_bytes{job="torusd",instance="a"}': '99x40',
                        'torus_memory_budget_bytes{job="torusd",instance="a"}': '100x40'},
    'TorusExchangesFail': {'torus_exchange_attempts_total{job="torusd",instance="a",operation="exchange",'
                           'outcome="failed"}': '0+1x40'},
    'TorusOutcomeUnknown': {'torus_exchanges{job="torusd",instance="a",state="in_doubt"}': '1x40'},
    'TorusRoutedDown': {'torus_routed_up{job="torusd",instance="a"}': '1 0x40',
                        'torus_routed_up{job="torusd",instance="b"}': '1x40'},
    'TorusRoutesProblem': {'torus_routes{job="torusd",instance="a",state="diverted"}': '0 1x40',
                           'torus_routes{job="torusd",instance="a",state="routed"}': '3x40'},
    'TorusDataRootFull': {f'torus_data_root_free_bytes{{{ROOT}}}': '4x40', f'torus_data_root_size_bytes{{{ROOT}}}': '100x40'},
    'TorusDataRootSilent': {f'torus_data_root_answers{{{ROOT}}}': '1 0x40'},
    'TorusdLate': {'torus_loop_delayed_seconds_total{job="torusd",instance="a"}': '0+30x40'},
    'TorusdRestarts': {'process_start_time_seconds{job="torusd",instance="a"}': '1+60x40'},
    'TorusVersionsDiffer': {'torus_node_info{job="torusd",instance="a",version="1"}': '1x2000',
                            'torus_node_info{job="torusd",instance="b",version="2"}': '1x2000'},
}
QUIET = {f'torus_link_up{{{PORT}}}': '1x40', f'torus_link_held{{{PORT}}}': '0x40',
         f'torus_link_connects_total{{{PORT}}}': '1x40',
         f'torus_link_retransmitted_packets_total{{{PORT}}}': '0+1x40',
         f'torus_link_sent_bytes_total{{{PORT}}}': '0+60000000x40',
         'up{job="torusd",instance="a"}': '1x40', 'torus_nodes_down{job="torusd",instance="a"}': '0x40',
         'torus_node_info{job="torusd",instance="a",version="1"}': '1x40',
         'torus_routed_up{job="torusd",instance="a"}': '0x40', 'torus_routed_problem{job="torusd",instance="a"}': '0x40',
         'torus_routes{job="torusd",instance="a",state="unreachable"}': '1x40',
         f'torus_data_root_free_bytes{{{ROOT}}}': '6x40', f'torus_data_root_size_bytes{{{ROOT}}}': '100x40',
         f'torus_data_root_answers{{{ROOT}}}': '1x40'}


def fired(folder, cases):
    """Which of all alerts promtool says to be firing, in each of these cases (lists of series)."""
    tests, times = [], []
    for number, series in enumerate(cases):
        minutes = 1900 if any('x2000' in values for values in series.values()) else 35
        times.append(60 * minutes + number)  # the seconds tell the cases apart in the output
        tests.append({'interval': '1m',
                      'input_series': [{'series': one, 'values': values} for one, values in series.items()],
                      'alert_rule_test': [{'eval_time': f'{times[-1]}s', 'alertname': alert} for alert in FIRES]})
    file = folder / 'tests.yml'
    file.write_text(json.dumps({'rule_files': [str(RULES)], 'evaluation_interval': '1m', 'tests': tests}))
    # Nothing is expected to fire, so promtool complains about what does.
    result = run(['promtool', 'test', 'rules', str(file)])
    found = [set() for _ in cases]
    units = {'d': 86400, 'h': 3600, 'm': 60, 's': 1}
    for alert, time in re.findall(r'alertname: (\w+), time: (\w+)', result.stdout + result.stderr):
        at = sum(int(number) * units[unit] for number, unit in re.findall(r'(\d+)([dhms])', time))
        found[times.index(at)].add(alert)
    return found


def test_each_alert_fires_when_it_must(tmp_path):
    needs('promtool')
    assert set(FIRES) == set(re.findall(r'alert: (\w+)', RULES.read_text()))
    assert fired(tmp_path, [QUIET, *FIRES.values()]) == [set(), *({alert} for alert in FIRES)]
