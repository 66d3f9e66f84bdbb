"""Geometry of the launchers: it must be the daemons' geometry."""

import itertools
import math

import pytest
from torus_net import Geometry, Port, UsageError, parse_mbit

pytestmark = pytest.mark.plain

SHAPES = ['1x1', '1x6', '2x2', '2x5', '5x3', '4x8', '6', '3x4x5', '2x2x2', '4mx4', '2m', '3x1x2m']


@pytest.mark.parametrize('text', SHAPES)
def test_ranks_are_row_major(text):
    geometry = Geometry(text)
    assert str(geometry) == text
    assert geometry.nodes == math.prod(geometry.sizes)
    expected = itertools.product(*map(range, geometry.sizes))
    for rank, coordinates in enumerate(expected):
        assert geometry.coordinates(rank) == coordinates
        assert geometry.rank(coordinates) == rank


@pytest.mark.parametrize('text', SHAPES)
def test_every_port_has_one_link_and_its_opposite_at_the_other_end(text):
    geometry = Geometry(text)
    ends = [end for link in geometry.links for end in link.ends]
    ports = [(rank, port) for rank in range(geometry.nodes) for port in geometry.ports(rank)]
    assert len(ends) == len(set(ends)) and set(ends) == set(ports)
    assert [link.index for link in geometry.links] == list(range(len(geometry.links)))
    for rank, port in ports:
        there = geometry.neighbour(rank, port)
        assert there != rank
        assert geometry.neighbour(there, port.opposite) == rank
        assert geometry.link(rank, port) is geometry.link(there, port.opposite)


def test_number_of_links():
    def links(text):
        return len(Geometry(text).links)
    assert links('4x4') == 32
    assert links('1x6') == 6
    assert links('1x1') == 0
    assert links('2') == 2   # two separate links between the same two nodes
    assert links('2m') == 1
    assert links('4mx4m') == 24


def test_a_ring_of_two_has_two_links():
    geometry = Geometry('2')
    assert {(link.plus, link.minus) for link in geometry.links} == {(0, 1), (1, 0)}


def test_ports_are_found_by_name():
    geometry = Geometry('4x4m')
    assert geometry.port(0, '+1') == Port(1, '+')
    with pytest.raises(UsageError, match='no port "-1"'):
        geometry.port(0, '-1')  # the edge of the mesh


@pytest.mark.parametrize('text', ['', 'x', '0x4', '4x', '4y4', '-1', '4.5', '4xm', 'x'.join('2' * 9)])
def test_no_torus(text):
    with pytest.raises(UsageError):
        Geometry(text)


@pytest.mark.parametrize('text', ['4097', '64x65', '1000x1000', '999999x999999', 'x'.join(['999999'] * 8)])
def test_a_torus_that_no_machine_can_start_is_refused_first(text, monkeypatch):
    monkeypatch.setattr(Geometry, '_links', lambda self: pytest.fail('its links are listed'))
    with pytest.raises(UsageError, match='at most 4096 can be started on one machine'):
        Geometry(text)


def test_the_largest_geometry():
    assert len(Geometry('64x64').links) == 8192


def test_interface_names_fit():
    emulated = pytest.importorskip('torus_net.emulated')
    for sign in '+-':
        assert len(emulated.interface_name(99999, Port(7, sign))) <= 15


@pytest.mark.parametrize('text', ['0', '-5', 'nan', 'inf', '-inf', '1001', '1000.001', '1e9', 'fast',
                                  '', '10mbit', '1e-9'])
def test_refused_rates(text):
    with pytest.raises(UsageError):
        parse_mbit(text, 1000)


@pytest.mark.parametrize('text, rate', [('1000', 1000), ('0.5', 0.5), ('20', 20), ('1e2', 100)])
def test_accepted_rates(text, rate):
    assert parse_mbit(text, 1000) == rate
