"""Watching the daemons' memory (RssAnon + RssShmem) over time."""

import threading


class MemoryWatch:
    """with MemoryWatch(torus) as watch: ... Afterwards watch.most has the maximum in bytes by rank."""

    def __init__(self, torus, pause=0.02):
        self.torus, self.pause = torus, pause
        self.most = {node.rank: 0 for node in torus.nodes}
        self.samples = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.over.is_set():
            for node in self.torus.nodes:
                now = node.memory()
                own = now['RssAnon'] + now['RssShmem']
                self.most[node.rank] = max(self.most[node.rank], own)
            self.samples += 1
            self.over.wait(self.pause)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
