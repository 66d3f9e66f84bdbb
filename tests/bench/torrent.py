"""What BitTorrent needs beside its client: a file that describes the torrent, and a tracker."""

import hashlib
import http.server
import os
import socket
import sys
import threading
import urllib.parse
from pathlib import Path

PIECE = 256 << 10
INTERVAL = 2  # seconds between a client's questions


def bencoded(value):
    if isinstance(value, int):
        return b'i%de' % value
    if isinstance(value, str):
        value = os.fsencode(value)
    if isinstance(value, bytes):
        return b'%d:%s' % (len(value), value)
    if isinstance(value, list):
        return b'l' + b''.join(map(bencoded, value)) + b'e'
    pairs = sorted((os.fsencode(key), inner) for key, inner in value.items())
    return b'd' + b''.join(bencoded(key) + bencoded(inner) for key, inner in pairs) + b'e'


def write_torrent(path, source, tracker):
    """Describes a file or a folder. Links and empty folders have no place in a torrent."""
    source, digests, rest, listed = Path(source), [], b'', []
    files = sorted(source.rglob('*')) if source.is_dir() else [source]
    for file in files:
        if file.is_symlink() or not file.is_file():
            continue
        listed.append({'length': file.stat().st_size, 'path': list(file.relative_to(source).parts)})
        with open(file, 'rb') as data:
            while block := data.read(PIECE - len(rest)):
                rest += block
                if len(rest) == PIECE:
                    digests.append(hashlib.sha1(rest).digest())
                    rest = b''
    if rest:
        digests.append(hashlib.sha1(rest).digest())
    info = {'name': source.name, 'piece length': PIECE, 'pieces': b''.join(digests)}
    info.update({'files': listed} if source.is_dir() else {'length': listed[0]['length']})
    Path(path).write_bytes(bencoded({'announce': tracker, 'info': info}))


class Tracker(http.server.BaseHTTPRequestHandler):
    """Tells each client about all others."""

    protocol_version = 'HTTP/1.0'
    lock = threading.Lock()
    peers = {}  # digest: {(address, port)}

    def do_GET(self):
        asked = dict(pair.partition('=')[::2] for pair in urllib.parse.urlsplit(self.path).query.split('&'))
        me = self.client_address[0], int(asked.get('port', 0))
        with self.lock:
            known = self.peers.setdefault(asked.get('info_hash', ''), set())
            others = [peer for peer in known if peer != me]
            if asked.get('event') == 'stopped':
                known.discard(me)
            else:
                known.add(me)
        text = bencoded({'interval': INTERVAL, 'min interval': INTERVAL, 'peers': b''.join(
            socket.inet_aton(address) + port.to_bytes(2, 'big') for address, port in others)})
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


if __name__ == '__main__':
    http.server.ThreadingHTTPServer(('', int(sys.argv[1])), Tracker).serve_forever()
