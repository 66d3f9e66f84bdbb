"""Unlimited links, where the processors are the bottleneck: bytes per second of CPU time.

torusd is compared with the kernel's IP forwarding of iperf3's streams between nodes the same number of hops
apart. Both are measured in payload bytes times hops per second of CPU time of the whole machine. iperf3
neither generates nor verifies data; torusd does both.
"""


from torus_net import TorusError

from . import arithmetic, machine, network, ours, programs, systems


def run(options, say):
    result = {'dims': options.unlimited_dims, 'exchanges': [], 'forwarding': [], 'failures': []}

    def failure(text):
        say(f'unlimited: {text}')
        result['failures'].append(text)

    with network.Network(options.unlimited_dims, None, bin=options.bin, memory=options.memory,
                         congestion=options.congestion) as net:
        result['nodes'] = net.geometry.nodes
        result['mean_hops'] = arithmetic.mean_hops(net.geometry)
        members = ours.our_systems(net.torus, options.algorithms, failure)
        for size in options.unlimited_sizes:
            for system in members:
                try:
                    row = _exchange(net, system, size, options.unlimited_seconds)
                except systems.Failed as e:
                    failure(f'{system.name}: {e}')
                    continue
                result['exchanges'].append(row)
                say(f'unlimited {system.name} {arithmetic.format_size(size)}: '
                    f'{arithmetic.milliseconds(row["median"])} ms, '
                    f'{row["hop_bytes_per_cpu_second"] / 1e9:.2f} GB x hops per CPU-second')
        net.prepare_hosts()
        for shift in _shifts(net.geometry):
            try:
                row = _forward(net, shift, options.unlimited_seconds)
            except (programs.Unavailable, TorusError, OSError, ValueError) as e:
                failure(f'iperf3: {e}')
                break
            result['forwarding'].append(row)
            say(f'unlimited iperf3 over {row["hops"]} hops: '
                f'{row["bytes"] * 8e-9 / row["seconds"]:.1f} Gbit/s in all, '
                f'{row["hop_bytes_per_cpu_second"] / 1e9:.2f} GB x hops per CPU-second')
    result['failures'] += net.problems
    return result


def _exchange(net, system, size, seconds):
    first = arithmetic.median(system.measure(size, 1, 2, 120).seconds)
    repeats = max(3, min(30, int(seconds / first)))
    before = machine.Times()
    sample = system.measure(size, 0, repeats, 120 + 10 * seconds)
    usage = machine.Usage(before, machine.Times())
    payload = size * net.geometry.nodes * (net.geometry.nodes - 1) * repeats
    hops = arithmetic.mean_hops(net.geometry)
    median = arithmetic.median(sample.seconds)
    return {'algorithm': system.algorithm, 'size': size, 'median': median, 'repeats': repeats,
            'hops': hops, 'busy': usage.share, 'cpu_seconds': usage.busy / repeats,
            'process_seconds': sample.process_seconds / repeats,
            'bits_per_second': payload / repeats * 8 / median,
            'bytes_per_cpu_second': payload / usage.busy,
            'hop_bytes_per_cpu_second': payload * hops / usage.busy}


def _shifts(geometry):
    """For each distance up to the diameter, a shift of coordinates over that distance."""
    shift = [0] * len(geometry.sizes)
    for dim, size in enumerate(geometry.sizes):
        for _ in range(size // 2 if geometry.wraps[dim] else 0):
            shift[dim] += 1
            yield tuple(shift)


def _forward(net, shift, seconds):
    """Runs a stream from every node to the node at the shift, all at the same time."""
    geometry = net.geometry
    pairs = [(rank, geometry.rank([(at + by) % size for at, by, size in
                                   zip(geometry.coordinates(rank), shift, geometry.sizes)]))
             for rank in range(geometry.nodes)]
    received, usage = net.iperf(pairs, max(1, round(seconds)))
    total = sum(one['bytes'] for one in received)
    hops = sum(shift)
    return {'hops': hops, 'streams': geometry.nodes, 'bytes': total, 'seconds': usage.seconds,
            'busy': usage.share, 'bytes_per_cpu_second': total / usage.busy,
            'hop_bytes_per_cpu_second': total * hops / usage.busy}
