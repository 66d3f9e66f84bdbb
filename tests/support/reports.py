"""The logs of running tori in the reports of failed tests."""

from torus_net.process import tail

LIVE = []  # tori that run


def add_logs(report, uses=lambda torus: True, lines=25):
    """Adds the last lines of logs to a test's report, for the running tori that uses(torus) selects."""
    for torus in filter(uses, LIVE):
        for node in torus.nodes:
            report.sections.append((f'end of the log of node {node.rank} of {torus.geometry}',
                                    tail(node.log(), lines)))
            if hasattr(node, 'console'):
                report.sections.append((f'end of the console of node {node.rank}',
                                        tail(node.console(), lines)))
