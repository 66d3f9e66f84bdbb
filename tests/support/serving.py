"""torusctl serve under test, as a browser and as a program without one sees it."""

import http.client
import json
import subprocess
from urllib.parse import urlsplit

from torus_net.patience import Patience, communicate

from .background import Background


class Served(Background):
    """with Served(torus): a page about it, asked at node 0."""

    def __init__(self, torus, *options, rank=0, address='127.0.0.1:0', control=None):
        self.process = subprocess.Popen(
            [torus.torusctl, '--socket', control or torus.node(rank).socket, 'serve', '--address', address, *options],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith('http://'), (self.url, self.process.communicate())
        parts = urlsplit(self.url)
        self.port = parts.port
        self.token = parts.query.removeprefix('token=')
        self.cookie = f'torus-{self.port}={self.token}'

    def ask(self, path, method='GET', body=None, cookie=True, **headers):
        """The response to a request, and its text. cookie: True (with the token), None, or a text."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        if cookie:
            headers['Cookie'] = self.cookie if cookie is True else cookie
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response, response.read().decode()
        finally:
            connection.close()

    def status(self, *args, **options):
        return self.ask(*args, **options)[0].status

    def events(self):
        return Events(self)

    def end(self, signum):
        """Ends it by a signal. Returns the exit status, and what it wrote to standard error."""
        self.process.send_signal(signum)
        error = communicate(self.process, Patience(30))[1]
        return self.process.returncode, error


class Events:
    """The events of an open page."""

    def __init__(self, served):
        self.connection = http.client.HTTPConnection('127.0.0.1', served.port, timeout=30)
        self.connection.request('GET', '/events', headers={'Cookie': served.cookie})
        self.response = self.connection.getresponse()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.response.close()
        self.connection.close()

    def next(self):
        """The next event: its name and its value."""
        lines = []
        while (line := self.response.readline().decode()) != '\n':
            assert line, 'the events have ended'
            lines.append(line)
        assert lines[0].startswith('event: ') and lines[1].startswith('data: ') and len(lines) == 2
        return lines[0][7:].strip(), json.loads(lines[1][6:])

    def find(self, name, condition=lambda value: True, seconds=60):
        """The value of the next event with this name that meets a condition."""
        patience = Patience(seconds)
        while True:
            late = patience.over
            found, value = self.next()
            if found == name and condition(value):
                return value
            assert not late, f'no such {name}; the last event was {found}: {value}'
