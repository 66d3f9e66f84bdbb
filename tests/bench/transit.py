"""Times messages over one TCP connection between two namespaces; run there as a program.

    transit.py ADDRESS              answers: a byte for each message
    transit.py ADDRESS SIZE,...     sends messages of these sizes, prints their times as JSON
"""

import json
import socket
import sys
import time

PORT = 7000
PAUSE = 0.02       # seconds, after which buckets are full again
REPEATS = 40
LENGTH = 8         # bytes of a message that say how many follow
WARM_UP = 4e5      # bytes, so that TCP's window does not limit


def tune(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'reno')


def receive(connection, count):
    while count > 0:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            return False
        count -= len(part)
    return True


def serve(address):
    with socket.create_server((address, PORT)) as listener:
        print('ready', flush=True)
        connection, _ = listener.accept()
    tune(connection)
    while True:
        head = connection.recv(LENGTH, socket.MSG_WAITALL)
        if len(head) < LENGTH or not receive(connection, int.from_bytes(head, 'big')):
            return
        connection.sendall(b'.')


def measure(address, sizes):
    with socket.create_connection((address, PORT)) as connection:
        tune(connection)

        def once(size):
            message = (size - LENGTH).to_bytes(LENGTH, 'big') + bytes(size - LENGTH)
            time.sleep(PAUSE)
            begin = time.perf_counter()
            connection.sendall(message)
            receive(connection, 1)
            return time.perf_counter() - begin

        for _ in range(3):
            once(int(WARM_UP))
        return [sorted(once(size) for _ in range(REPEATS)) for size in sizes]


if __name__ == '__main__':
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        print(json.dumps(measure(sys.argv[1], list(map(int, sys.argv[2].split(','))))))
