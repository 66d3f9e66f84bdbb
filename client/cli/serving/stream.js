'use strict';
// Reads the events of the server, and connects again when that ends.

const AGAIN_MS = 2000; // pause before another attempt
const HIDDEN_MS = 20000; // after which a page that nobody sees gives up its events

class Stream {
  // onEvent(name, value); onTrouble(text) says why there are no events ("": there are). onConnect(ahead) is called before
  // the first event, which may be an old one: by how many milliseconds the clock here is ahead of the server's.
  constructor(onEvent, onTrouble, onConnect) {
    this.onEvent = onEvent;
    this.onTrouble = onTrouble;
    this.onConnect = onConnect;
    this.timer = 0;
    this.connect();
    document.addEventListener('visibilitychange', () => this.seen());
  }

  seen() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.stop(), HIDDEN_MS);
    else if (!this.abort) this.connect();
  }

  stop() {
    clearTimeout(this.timer);
    if (this.abort) this.abort.abort();
    this.abort = null;
  }

  async connect() {
    const abort = new AbortController();
    clearTimeout(this.timer);
    this.abort = abort;
    try {
      const answer = await fetch('/events', { signal: abort.signal });
      this.onConnect(Date.now() - Date.parse(answer.headers.get('Date')) || 0);
      if (answer.ok) await this.read(answer.body.getReader());
      this.onTrouble(answer.ok ? 'torusctl serve has ended the connection' : (await answer.text()).trim());
    } catch (e) {
      if (abort.signal.aborted) return;
      this.onTrouble('torusctl serve cannot be reached');
    }
    this.timer = setTimeout(() => this.connect(), AGAIN_MS);
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const events = text.split('\n\n');
      text = events.pop();
      events.forEach((event) => this.take(event));
    }
  }

  take(event) {
    const [name, data] = event.split('\n');
    this.onTrouble('');
    this.onEvent(name.slice('event: '.length), JSON.parse(data.slice('data: '.length)));
  }
}
