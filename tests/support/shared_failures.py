"""A fixture that many tests share and that fails is one failure, not one of each test."""

import pytest


class SharedFailures:
    """A pytest plugin. The first test whose fixture has failed reports it; the others, for which pytest only repeats
    what it has kept, are skipped and name that test. `pytest --last-failed` runs all of them again."""

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
            report.longrepr = str(item.path), item.location[1], f'Skipped: it needs what has failed in {test}'

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        cache = self.config.pluginmanager.get_plugin('lfplugin')
        if getattr(report, 'has_not_run', False) and cache is not None:
            cache.lastfailed[report.nodeid] = True
