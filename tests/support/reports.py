"""The logs of running tori in the reports of failed tests."""

from torus_net.process import tail

LIVE = []  # the running tori


def add_logs(report, uses=lambda torus: True, lines=25):
    """Adds the ends of the logs of the running tori that uses(torus) selects to a test's report."""
    for torus in filter(uses, LIVE):
        for node in torus.nodes:
            report.sections.append((f'end of the log of node {node.rank} of {torus.geometry}',
                                    tail(node.log(), lines)))
            if hasattr(node, 'console'):
                report.sections.append((f'end of the console of node {node.rank}',
                                        tail(node.console(), lines)))
