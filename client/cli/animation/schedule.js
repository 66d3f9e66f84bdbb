'use strict';
// What a schedule does in each step: who holds which block, what crosses each channel, and how long it takes.

const CHECKPOINT = 16; // steps between two stored states

class Schedule {
  // `rates`: by channel, as parts of the full rate, for the channels that are slower than the others.
  constructor(torus, data, rates) {
    this.torus = torus;
    this.data = data;
    this.rates = rates;
    this.gather = data.gather;
    this.owners = torus.node_count * data.segments;
    this.steps = data.streaming ? this.stream() : data.steps.map((s) => ({ name: s.name, why: s.why, messages: s.messages.map(
      ([node, port, hops, ...blocks]) => this.message(node, port, hops, blocks)) }));
    this.steps.forEach((s) => this.measure(s));
    this.states = [this.first()];
    this.count();
  }

  message(node, port, hops, blocks) {
    const path = [];
    let at = node;
    for (let i = 0; i < hops; i++) {
      const c = channelOf(this.torus, at, port);
      path.push(c);
      at = this.torus.channels[c][2];
    }
    return { node, end: at, path, blocks };
  }

  source(block) { return this.gather ? block % this.torus.node_count : Math.floor(block / this.torus.node_count) % this.torus.node_count; }
  destination(block) { return block % this.torus.node_count; }
  // The node that gives a block its colour: where it goes; in an allgather, where it comes from.
  owner(block) { return block % this.torus.node_count; }

  rate(channel) { return this.rates.get(channel) || 1; }

  // A schedule without steps, as if each channel carried one segment at a time, always the one with the longest path to
  // go: one step for each such time. A slow channel lets steps pass until a segment is through.
  stream() {
    const routes = new Map(), steps = [];
    this.data.steps.forEach((s) => s.messages.forEach(([node, port, hops, ...blocks]) => blocks.forEach((b) => {
      const key = this.gather ? `${b}` : b;
      if (!routes.has(key)) routes.set(key, []);
      routes.get(key).push([node, port, hops]);
    })));
    const waiting = new Map(); // by channel: [ahead, block, rest of its legs]
    const sent = new Map(); // by channel: how much of the next segment it has sent
    const add = (block, leg, rest) => {
      const c = channelOf(this.torus, leg[0], leg[1]);
      if (!waiting.has(c)) waiting.set(c, []);
      waiting.get(c).push([this.ahead(rest, this.torus.channels[c][2]), block, rest]);
    };
    routes.forEach((legs, key) => {
      const start = this.source(Number(key));
      legs.filter((l) => l[0] === start).forEach((l) => add(Number(key), l, legs));
    });
    while (waiting.size > 0 && steps.length < 100000) {
      const messages = [], next = [];
      waiting.forEach((list, c) => {
        sent.set(c, (sent.get(c) || 0) + this.rate(c));
        if (sent.get(c) < 1 - 1e-9) return;
        sent.set(c, list.length > 1 ? sent.get(c) - 1 : 0);
        let best = 0;
        for (let i = 1; i < list.length; i++) if (list[i][0] > list[best][0]) best = i;
        const [, block, legs] = list.splice(best, 1)[0];
        if (list.length === 0) waiting.delete(c);
        const [node, port, to] = this.torus.channels[c];
        messages.push(this.message(node, port, 1, [block]));
        legs.filter((l) => l[0] === to).forEach((l) => next.push([block, l, legs]));
      });
      next.forEach(([block, leg, legs]) => add(block, leg, legs));
      steps.push({ name: '', why: '', messages });
    }
    return steps;
  }

  // How many legs are left behind a node on a block's way.
  ahead(legs, node) {
    const next = legs.filter((l) => l[0] === node);
    let most = 0;
    next.forEach(([at, port]) => {
      const c = channelOf(this.torus, at, port);
      most = Math.max(most, 1 + this.ahead(legs, this.torus.channels[c][2]));
    });
    return most;
  }

  measure(step) {
    step.load = new Map(); // by channel: the time that it takes, in segments at the full rate
    step.crossing = new Map(); // by channel: messages
    step.hops = 0;
    step.blocks = 0;
    step.messages.forEach((m) => {
      step.hops = Math.max(step.hops, m.path.length);
      step.blocks += m.blocks.length;
      m.path.forEach((c) => {
        step.load.set(c, (step.load.get(c) || 0) + m.blocks.length / (this.data.streaming ? 1 : this.rate(c)));
        step.crossing.set(c, (step.crossing.get(c) || 0) + 1);
      });
    });
    step.most = (this.data.streaming ? 1 : Math.max(0, ...step.load.values())) / this.data.segments;
    step.crowd = Math.max(0, ...step.crossing.values());
    step.ports = [...new Set(step.messages.map((m) => this.torus.channels[m.path[0]][6]))].sort();
  }

  // Counts what has arrived after each step, and all that has to arrive: with `gather` at every node.
  count() {
    const blocks = this.states[0].reduce((n, held) => n + held.size, 0);
    const nodes = new Set(this.steps.flatMap((s) => s.messages.flatMap((m) => [m.node, m.end]))).size;
    this.all = this.gather ? blocks * Math.max(0, nodes - 1) : blocks;
    let arrived = 0;
    this.steps.forEach((s) => {
      s.messages.forEach((m) => m.blocks.forEach((b) => { if (this.gather || this.destination(b) === m.end) arrived++; }));
      s.arrived = arrived;
    });
  }

  // What moves in a step, why, and what has arrived then.
  sentence(number) {
    const step = this.steps[number], unit = this.data.segments > 1 ? 'segments' : 'blocks', combined = step.messages.some((m) => m.blocks.length > 1);
    const far = [...new Set(step.messages.map((m) => m.path.length))], hops = far.length === 1 ? far[0] : `up to ${step.hops}`;
    const why = step.why || (this.data.streaming ? 'Each channel carries what has the farthest way to go, and waits for nothing else.'
      : combined ? 'Those that take the same way travel in one message, which costs one start-up.' : 'Each is a message of its own.');
    const what = `${step.blocks} of ${this.all} ${unit} ${this.gather ? 'reach another node' : 'move'}, by ${hops} ${hops === 1 ? 'hop' : 'hops'}.`;
    const left = this.all - step.arrived, then = left === 0 ? 'Then all have arrived.' : `Then ${step.arrived} have arrived, and ${left} are on their way.`;
    return `${what} ${why} ${this.gather && left > 0 ? `Then ${left} are left.` : then}`;
  }

  // A state says for each node which blocks it holds.
  first() {
    const state = Array.from({ length: this.torus.node_count }, () => new Set());
    const seen = new Set();
    this.steps.forEach((s) => s.messages.forEach((m) => m.blocks.forEach((b) => seen.add(b))));
    seen.forEach((b) => state[this.source(b)].add(b));
    return state;
  }

  apply(state, step) {
    const arrivals = [];
    step.messages.forEach((m) => m.blocks.forEach((b) => {
      if (!this.gather) state[m.node].delete(b);
      arrivals.push([m.end, b]);
    }));
    arrivals.forEach(([node, b]) => state[node].add(b));
  }

  // What each node holds before a step (steps.length: at the end).
  before(number) {
    const stored = Math.floor(number / CHECKPOINT);
    while (this.states.length <= stored) {
      const from = this.states.length - 1, copy = this.states[from].map((s) => new Set(s));
      for (let i = 0; i < CHECKPOINT; i++) this.apply(copy, this.steps[from * CHECKPOINT + i]);
      this.states.push(copy);
    }
    const state = this.states[stored].map((s) => new Set(s));
    for (let i = stored * CHECKPOINT; i < number; i++) this.apply(state, this.steps[i]);
    return state;
  }

  // When each step begins, and the end of the last one, in seconds, by the model: a start-up and the busiest channel's
  // blocks for each step; or as measured.
  times(model) {
    const times = [0];
    this.steps.forEach((s, i) => {
      const own = this.measured ? this.measured[i] : (this.data.streaming ? 0 : model.startup) + (s.most * model.bytes * 8) / model.rate;
      times.push(times[i] + own);
    });
    if (this.data.streaming && !this.measured) for (let i = 1; i < times.length; i++) times[i] += model.startup;
    return times;
  }
}
