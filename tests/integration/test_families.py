"""Families of algorithms (with a number in the name), their best members, and the algorithms of the theory of total
exchange on meshes, which other modules leave out."""

import pytest
from support.errors import assert_refused
from support.expect import check_result, plan
from support.trees import check_target, make_sources, random_sizes


@pytest.mark.slow
@pytest.mark.parametrize('dims,algorithm', [
    ('4x3', 'a1'), ('4mx3m', 'a1'), ('2x2x3m', 'a1'), ('4mx3m', 'a2'), ('1x5m', 'a2'),
    ('4mx4m', 'a3'), ('3mx3m', 'a3'), ('6m', 'a3'), ('4mx8', 'cccube')])
def test_products(shared, dims, algorithm):
    torus = shared(dims)
    for size in 1, 5000:
        check_result(torus.exchange(algorithm, size, rank=torus.geometry.nodes - 1), dims,
                     algorithm, size)
    assert plan(dims, algorithm)['contended_steps'] == 0


@pytest.mark.parametrize('dims,degree', [('4x4', 3), ('4x4', 7), ('2x8', 5), ('4mx2', 4)])
def test_any_number_of_packets(shared, dims, degree):
    torus = shared(dims)
    for size in 1, 70000:
        check_result(torus.exchange(f'cccube-q{degree}', size), dims, f'cccube-q{degree}', size)
    check_result(torus.exchange(f'cccube-q{degree}', 100, options=('--mode', 'streaming')), dims,
                 f'cccube-q{degree}', 100, mode='streaming')


@pytest.mark.full
@pytest.mark.slow
def test_the_best_number_of_packets(shared, tmp_path):
    """Few packets for small blocks, many for large blocks; the same number on all nodes."""
    torus = shared('4x4', bw=50, data_roots=(str(tmp_path),))
    small, large = (torus.exchange('cccube-best', size, rank=5) for size in (1, 1 << 20))
    assert small['requested'] == large['requested'] == 'cccube-best'
    assert (small['algorithm'], large['algorithm']) == ('cccube', 'cccube-q8')
    check_result(large, '4x4', 'cccube-q8', 1 << 20, bw=50, rounds=large['rounds'])

    sizes = random_sizes(16, 'best')
    result = torus.exchange('cccube-best', source=make_sources(tmp_path, sizes),
                            target=f'{tmp_path}/in/%r')
    assert result['algorithm'].startswith('cccube')
    check_result(result, '4x4', result['algorithm'], sizes=sizes, bw=50)
    check_target(f'{tmp_path}/in/%r', sizes)


def test_bench_shows_which_one_was_best(shared):
    torus = shared('4x4', bw=50)
    rows = torus.json(0, 'bench', '--algorithms', 'cccube-best,cccube-q3', '--sizes', '1,64KiB',
                      '--repeat', '5')['results']
    assert [row.get('chosen') for row in rows[::2]] == ['cccube', 'cccube-q8']
    assert [row['algorithm'] for row in rows] == ['cccube-best', 'cccube-q3'] * 2


@pytest.mark.parametrize('name,code', [('cccube-q9', 'refused'), ('cccube-q0', 'usage'), ('cccube-q', 'usage')])
def test_not_possible(shared, name, code):
    failed = shared('4x4', bw=50).ctl(0, '--json', 'exchange', '--algorithm', name, '--block-size', '1')
    assert_refused(failed, code, 2 if code == 'usage' else 1)
    assert name in failed.stderr and (code == 'usage' or 'cccube-q8' in failed.stderr)


@pytest.mark.full
def test_not_a_power_of_two(shared):
    for name in 'cccube-best', 'cccube-q3':
        assert_refused(shared('4x3').ctl(0, '--json', 'exchange', '--algorithm', name, '--block-size', '1'), 'refused')
