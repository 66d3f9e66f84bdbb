"""Reads the text of metrics, and refuses what does not follow OpenMetrics 1.0 to the letter."""

import http.client
import math
import re

NAME = r'[a-zA-Z_][a-zA-Z0-9_]*'
SUFFIXES = {'gauge': [''], 'counter': ['_total'], 'info': ['_info'], 'histogram': ['_bucket', '_count', '_sum']}
LABEL = rf'{NAME}="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf'({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? ([-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?)')


class Family:
    def __init__(self, name, kind):
        self.name, self.kind, self.unit, self.help = name, kind, None, None
        self.samples = {}  # {(name, (label, value), ...): number}

    def check(self):
        assert self.help, f'{self.name} has no HELP'
        assert self.unit is None or self.name.endswith(f'_{self.unit}'), self.name
        for (name, *labels), value in self.samples.items():
            assert name.removeprefix(self.name) in SUFFIXES[self.kind], (name, self.kind)
            assert self.kind != 'info' or value == 1
            assert self.kind == 'gauge' or (value >= 0 and math.isfinite(value)), (name, value)
        if self.kind == 'histogram':
            self.check_buckets()

    def check_buckets(self):
        buckets = [(dict(labels)['le'], value) for (name, *labels), value in self.samples.items()
                   if name == f'{self.name}_bucket']
        bounds = [float(le) for le, _ in buckets]
        assert bounds == sorted(set(bounds)) and buckets[-1][0] == '+Inf'
        assert all(le == '+Inf' or '.' in le for le, _ in buckets), 'a bound is not in the canonical spelling'
        counts = [value for _, value in buckets]
        assert counts == sorted(counts) and counts[-1] == self.samples[f'{self.name}_count',]
        assert (f'{self.name}_sum',) in self.samples


def parse(text):
    """{name: Family}."""
    families, family = {}, None
    assert text.endswith('\n# EOF\n') and text.count('# EOF') == 1
    for line in text.split('\n')[:-2]:
        comment = re.fullmatch(rf'# (TYPE|UNIT|HELP) ({NAME}) (\S.*)', line)
        if comment and comment[1] == 'TYPE':
            assert comment[2] not in families and comment[3] in SUFFIXES, line
            family = families[comment[2]] = Family(comment[2], comment[3])
        elif comment:
            assert comment[2] == family.name and not family.samples, line
            assert getattr(family, comment[1].lower()) is None, line
            setattr(family, comment[1].lower(), comment[3])
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample and sample[1].startswith(family.name), line
            labels = re.findall(rf'({NAME})="((?:[^"\\]|\\.)*)"', sample[2] or '')
            assert len(dict(labels)) == len(labels), line
            key = (sample[1], *labels)
            assert key not in family.samples, line
            family.samples[key] = float(sample[3])
    for family in families.values():
        family.check()
    return families


def get(address, path='/metrics', method='GET', **headers):
    """(status, headers, text) of a request to a daemon at "127.0.0.1:9101"."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


class Metrics:
    """The metrics of a node now. `get`: as get() above, for nodes that this process cannot reach."""

    def __init__(self, torus, rank=0, get=get):
        status, _, text = get(torus.status(rank)['metrics'])
        assert status == 200
        self.families = parse(text)
        self.samples = {key: value for family in self.families.values() for key, value in family.samples.items()}

    def value(self, name, **labels):
        """The sum of the samples of this name that have these labels; there must be one."""
        found = [value for (one, *others), value in self.samples.items()
                 if one == name and labels.items() <= dict(others).items()]
        assert found, (name, labels)
        return sum(found)
