"""Reports the failure of a fixture that many tests share only once."""

import pytest


class SharedFailures:
    """A pytest plugin. The first test whose fixture fails reports the failure. The other tests, for which pytest
    raises the same exception again, are skipped and name that test. `pytest --last-failed` runs all of them again."""

    def __init__(self, config):
        self.config = config
        self.first = {}  # id of an exception: the exception, which keeps its id, and the test that reported it

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if call.when != 'setup' or not report.failed:
            return
        error = call.excinfo.value
        _, test = self.first.setdefault(id(error), (error, item.nodeid))
        if test != item.nodeid:
            report.outcome, report.has_not_run = 'skipped', True
            report.longrepr = str(item.path), item.location[1], f'Skipped: its fixture failed in {test}'

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        cache = self.config.pluginmanager.get_plugin('lfplugin')
        if getattr(report, 'has_not_run', False) and cache is not None:
            cache.lastfailed[report.nodeid] = True


def pytest_configure(config):
    config.pluginmanager.register(SharedFailures(config))
