"""scripts/bench: sizes, bounds and shares of time."""

from fractions import Fraction

import pytest
from bench import arithmetic, groups
from support.expect import torusctl_json
from torus_net import Geometry

pytestmark = pytest.mark.plain

TORI = ['2x2', '4x4', '4x8', '5x7', '6x6', '8x8', '3x4x5', '1x6', '4x4m', '3mx5']


@pytest.mark.parametrize('text,size', [('1', 1), ('64B', 64), ('1KiB', 1024), ('2 MiB', 2 << 20),
                                       ('16K', 16384), ('1KB', 1000)])
def test_sizes(text, size):
    assert arithmetic.parse_size(text) == size
    assert arithmetic.parse_size(arithmetic.format_size(size)) == size


@pytest.mark.parametrize('text', ['', 'KiB', '1.5K', '-1', '1 TiB', '1 KiB x'])
def test_no_sizes(text):
    with pytest.raises(ValueError):
        arithmetic.parse_size(text)


def test_digits():
    for value, text in ((0, '0'), (12345.6, '12346'), (123.4, '123'), (12.34, '12.3'),
                        (1.234, '1.23'), (0.1234, '0.123'), (0.0012, '0.0012')):
        assert arithmetic.digits(value) == text
    assert arithmetic.milliseconds(0.0213) == '21.3'


@pytest.mark.parametrize('dims,blocks', [('4x4', 8), ('4x8', 32), ('5x7', 30), ('8x8', 64),
                                         ('2x2', 1), ('1x6', Fraction(9, 2)), ('4x4m', 16)])
def test_bound(dims, blocks):
    geometry = Geometry(dims)
    assert arithmetic.bound_blocks(geometry) == blocks
    # 8 blocks of 256 KiB at 50 Mbit/s, as in the README
    assert arithmetic.bound_seconds(geometry, 1 << 18, 50) == pytest.approx(
        0.33554432 * float(blocks) / 8)


def test_bounds_of_operations():
    """Bounds on 4x4 equal counts by hand; bounds of reductions on all tori equal those of torusctl."""
    bounds = {operation: arithmetic.bound_of(Geometry('4x4'), operation) for operation in groups.SIZES}
    assert bounds == {'alltoall': 8, 'allgather': Fraction(15, 4), 'broadcast': Fraction(1, 4),
                      'allreduce': Fraction(15, 32), 'barrier': 0}
    assert arithmetic.bound_of(Geometry('4x4m'), 'allgather') == 5  # the first node has three links
    assert arithmetic.bound_seconds(Geometry('4x4'), 1 << 20, 50, 'allreduce') == pytest.approx(
        2 * 15 / 16 / 4 * 8 * 2 ** 20 / 50e6)
    for dims in TORI:
        said = torusctl_json('bounds', '--dims', dims)
        assert float(arithmetic.bound_of(Geometry(dims), 'allreduce')) == pytest.approx(
            said['reductions']['allreduce']), dims


@pytest.mark.parametrize('dims', TORI)
def test_bounds_are_no_less_than_the_average_channel(dims):
    geometry = Geometry(dims)
    channels = 2 * len(geometry.links)
    for operation in groups.SIZES:
        least = arithmetic.least_bytes(geometry, operation, 1000)
        assert 1000 * arithmetic.bound_of(geometry, operation) * channels >= least, operation


def test_shares_of_time():
    assert arithmetic.share_out(15, 3, 0.001, 4) == (3, 5)
    assert arithmetic.share_out(15, 3, 0.001, 4, fill=0.6) == (3, 100)
    assert arithmetic.share_out(15, 3, 1, 4) == (3, 1)
    assert arithmetic.share_out(15, 3, 2, 4) == (2, 1)
    assert arithmetic.share_out(15, 3, 60, 4) == (1, 1)
    assert arithmetic.share_out(15, 3, 0, 4) == (3, 5)
    assert arithmetic.estimate_next(0.001, 1, 4, 0) == 0.001
    assert arithmetic.estimate_next(2, 1024, 4096, 100) == 8
