"""The parts of scripts/test as marks, and the seconds of each part and of the slowest tests at the end."""

import json

SLOWEST = 20


def _part(item):
    if item.path.name == 'CMakeLists.txt':
        for part in 'valgrind', 'swarm':
            if item.get_closest_marker(part):
                return part
        return 'unit'
    if item.get_closest_marker('swarm'):
        return 'swarm'
    if item.get_closest_marker('mininet'):
        return 'mininet'
    if item.path.parent.name == 'packaging':
        return 'packages'
    if item.path.stem.startswith('test_reproduce'):
        return 'papers'
    if item.path.stem == 'test_lint':
        return 'lint'
    return 'loopback'


def pytest_collection_modifyitems(items):
    for item in items:
        item.part = _part(item)
        if not item.get_closest_marker(item.part):
            item.add_marker(item.part)


class Parts:
    """Adds up what tests took."""

    def __init__(self, config):
        self.config, self.part, self.taken, self.failed, self.reports = config, {}, {}, set(), []

    def pytest_collection_finish(self, session):
        self.part = {item.nodeid: item.part for item in session.items}

    def pytest_runtest_logreport(self, report):
        self.taken[report.nodeid] = self.taken.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)
        if report.when == 'call':
            self.reports += [text for name, text in report.user_properties if name == 'report']

    def pytest_terminal_summary(self, terminalreporter):
        spread = self.config.pluginmanager.getplugin('spread')
        processor = spread.processor if spread else {}
        if self.config.getoption('--times'):
            with open(self.config.getoption('--times'), 'w') as file:
                json.dump([{'test': test, 'part': self.part.get(test), 'failed': test in self.failed,
                            'seconds': round(taken, 3), 'processor': round(processor.get(test, 0), 3)}
                           for test, taken in self.taken.items()], file, indent=1)
        terminalreporter.section('seconds of each part, and of the slowest tests')
        terminalreporter.write_line('part        tests  failed  seconds of all  of a processor')
        for part in dict.fromkeys(self.part.values()):
            tests = [test for test in self.taken if self.part.get(test) == part]
            if tests:
                terminalreporter.write_line(
                    f'{part:10} {len(tests):6} {len(self.failed & set(tests)):7} '
                    f'{sum(self.taken[test] for test in tests):15.0f} '
                    f'{sum(processor.get(test, 0) for test in tests):15.0f}')
        for text in self.reports:
            terminalreporter.write_line(text)
        for test in sorted(self.taken, key=self.taken.get, reverse=True)[:SLOWEST]:
            terminalreporter.write_line(f'{self.taken[test]:7.1f} s  {test}')


def pytest_addoption(parser):
    parser.addoption('--summary', action='store_true', help='show the seconds of parts and of the slowest tests')
    parser.addoption('--times', metavar='FILE', help='write the seconds of each test to FILE (JSON)')


def pytest_configure(config):
    if config.getoption('--summary') or config.getoption('--times'):
        config.pluginmanager.register(Parts(config), 'parts')
