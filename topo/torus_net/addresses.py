"""The addresses of links, the same in Mininet and in virtual machines."""

import ipaddress

TCP_PORT = 7411
FIRST = ipaddress.ip_address('10.0.0.0')  # link i has 10.0.0.0 + 2i and the address after it, a /31
MOST_LINKS = 2 ** 23                      # in 10.0.0.0/8


def link_address(link, port):
    """The address of one end of a link. The end that dials has the even address."""
    return FIRST + 2 * link.index + (not port.dials)


def port_address(geometry, rank, port, tcp_port=TCP_PORT):
    """The address and TCP port that a port uses: a port that dials has the neighbour's, a port that
    listens its own."""
    end = port.opposite if port.dials else port
    return f'{link_address(geometry.link(rank, port), end)}:{tcp_port}'
