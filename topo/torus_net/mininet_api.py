"""The parts of Mininet that the launcher uses, imported without the warnings that they cause."""

import warnings

try:
    with warnings.catch_warnings():  # Mininet uses distutils
        warnings.simplefilter('ignore', DeprecationWarning)
        from mininet.cli import CLI
        from mininet.link import Intf, Link
        from mininet.log import lg
        from mininet.net import Mininet
        from mininet.node import Host
        from mininet.topo import Topo
except ImportError as e:
    raise ImportError('Mininet for Python is missing (Debian: apt-get install mininet)') from e

__all__ = ['CLI', 'Host', 'Intf', 'Link', 'Mininet', 'Topo', 'lg']
