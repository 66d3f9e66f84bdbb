'use strict';
// A report of a traced run: sentences, where the time went, the torus over time, a line for each port.

const torus = prepareTorus(DATA.torus);
const trace = DATA.trace;
const view = new TorusView(byId('torus'), torus);
const STATES = trace.states.length;
const page = { at: trace.seconds, playing: false, last: 0, node: -1 };

// Colours by state, for light and dark pages: nothing, link, sent again, source, disk, others, round, programs, processor.
const LIGHT = ['#eceff1', '#0b62a8', '#b3141b', '#b35a00', '#7a4fb5', '#7fb069', '#2f7d72', '#c2417c', '#5d4037'];
const DARK = ['#2a3036', '#6fb7f2', '#ff8a8a', '#f0a95a', '#b79bea', '#93c47d', '#5fc2b3', '#f28cb8', '#bcaaa4'];
const isDark = () => matchMedia('(prefers-color-scheme: dark)').matches;
const colourOfState = (state) => (isDark() ? DARK : LIGHT)[state];

const portsOf = (n) => (n.ports ? Array.from({ length: n.ports }, (_, p) => p).filter((p) => n.neighbour[p] < torus.node_count) : []);
const share = (n, i, p, s) => n.state[(i * n.ports + p) * STATES + s] / 255;
const nameOfPort = (node, p) => torus.channels[channelOf(torus, node, p)][6];
const intervals = (n) => (n.used ? n.used.length : 0);

// Seconds in each state of a port.
function timesOfPort(n, p) {
  const times = new Array(STATES).fill(0);
  for (let i = 0; i < intervals(n); i++) for (let s = 0; s < STATES; s++) times[s] += share(n, i, p, s) * n.interval;
  return times;
}

const add = (a, b) => a.map((x, i) => x + b[i]);
const sum = (a) => a.reduce((x, y) => x + y, 0);
const times = trace.nodes.map((n) => portsOf(n).map((p) => timesOfPort(n, p)));

// --- texts ---

function fillFindings() {
  DATA.findings.forEach((f) => { byId('findings').appendChild(document.createElement('p')).textContent = f.text; });
}

function addFigure(name, text) {
  const box = byId('figures').appendChild(document.createElement('div'));
  box.appendChild(document.createElement('b')).textContent = text;
  box.appendChild(document.createTextNode(name));
}

function fillFigures() {
  const run = trace.run || {};
  addFigure('recorded', seconds(trace.seconds));
  if (run.seconds) addFigure('the exchange', seconds(run.seconds));
  if (run.bound_seconds) addFigure('lower bound of the links', seconds(run.bound_seconds));
  if (run.seconds && run.bound_seconds) addFigure('of the bound', `${((100 * run.bound_seconds) / run.seconds).toFixed(1)} %`);
  if (run.predicted_seconds) addFigure('predicted', seconds(run.predicted_seconds));
  if (run.algorithm) addFigure('algorithm', run.algorithm);
  addFigure('nodes in the trace', `${trace.nodes.filter((n) => n.used).length} of ${torus.node_count}`);
  byId('clocks').textContent = `Clocks were compared over the links; times of different nodes are right to ±${seconds(trace.clock_error)}.`
    + (trace.nodes.some((n) => n.used && !n.aligned) ? ' The clocks of some nodes could not be compared: their lines begin with the run.' : '');
}

function swatch(state) {
  const box = document.createElement('span');
  box.innerHTML = '<i class="swatch"></i>';
  box.firstChild.style.background = colourOfState(state);
  box.appendChild(document.createTextNode(trace.states[state]));
  return box;
}

function bar(name, amounts) {
  const row = byId('went').appendChild(document.createElement('div')), all = sum(amounts) || 1;
  const label = row.appendChild(document.createElement('span'));
  label.textContent = name;
  label.title = name;
  const box = row.appendChild(document.createElement('div'));
  box.className = 'bar';
  box.setAttribute('role', 'img');
  box.setAttribute('aria-label', `${name}: ${trace.states.map((s, i) => [s, amounts[i]]).filter(([, t]) => t > 0.005 * all)
    .sort((a, b) => b[1] - a[1]).map(([s, t]) => `${s} ${Math.round((100 * t) / all)} %`).join(', ')}`);
  [1, 2, 3, 4, 7, 8, 5, 6, 0].forEach((s) => {
    const part = box.appendChild(document.createElement('i'));
    part.style.width = `${(100 * amounts[s]) / all}%`;
    part.style.background = colourOfState(s);
    part.title = `${trace.states[s]}: ${Math.round((100 * amounts[s]) / all)} %`;
  });
}

function fillWent() {
  byId('legend').replaceChildren(...trace.states.map((_, s) => swatch(s)));
  byId('went').replaceChildren();
  const nodes = times.map((list) => list.reduce(add, new Array(STATES).fill(0)));
  bar('all ports', nodes.reduce(add, new Array(STATES).fill(0)));
  trace.nodes.forEach((n, rank) => { if (n.used) bar(`${rank} ${n.name}`, nodes[rank]); });
}

function fillPorts() {
  const rows = [];
  trace.nodes.forEach((n, rank) => portsOf(n).forEach((p, k) => {
    const t = times[rank][k], busy = t[1] + t[2];
    let bytes = 0, resent = 0;
    for (let i = 0; i < intervals(n); i++) { bytes += n.sent[i * n.ports + p]; resent += n.resent[i * n.ports + p]; }
    const worst = [2, 3, 4, 5, 6, 7, 8].reduce((a, s) => (t[s] > t[a] ? s : a), 2);
    rows.push([rank, p, n.neighbour[p], bytes / 1048576, busy / (n.ended - n.began || 1), busy > 0 ? (8e-6 * bytes) / busy : 0, resent,
      t[worst] > 0 ? `${trace.states[worst]} ${Math.round((100 * t[worst]) / (n.ended - n.began || 1))} %` : '']);
  }));
  rows.sort((a, b) => b[4] - a[4]);
  const line = ([rank, p, to, mib, busy, rate, resent, waits]) => `<tr><td>${rank} ${nameOfPort(rank, p)}</td><td>${to}</td>`
    + `<td>${mib.toFixed(1)}</td><td>${(100 * busy).toFixed(0)} %</td><td>${rate.toFixed(1)}</td><td>${resent}</td><td class="text">${waits}</td></tr>`;
  byId('ports').innerHTML = '<table><thead><tr><th>node, port</th><th>to node</th><th>MiB sent</th><th>busy</th><th>Mbit/s while busy</th>'
    + `<th>packets sent again</th><th class="text">most other time</th></tr></thead><tbody>${rows.slice(0, 1024).map(line).join('')}</tbody></table>`;
}

// --- the torus ---

const MOMENTS = 30; // of the run, over each of which loads are averaged: frames leave in bursts

// Bytes a second that a port sends around a time, and whether packets are sent again then.
function loadAt(n, p, t) {
  const width = Math.max(1, Math.round(trace.seconds / MOMENTS / n.interval));
  const first = Math.floor((t - n.began) / n.interval - (width - 1) / 2);
  let bytes = 0, resent = 0;
  for (let i = Math.max(0, first); i < Math.min(intervals(n), first + width); i++) {
    bytes += n.sent[i * n.ports + p];
    resent += n.resent[i * n.ports + p];
  }
  return [bytes / (width * n.interval), resent > 0];
}

const moments = Array.from({ length: MOMENTS }, (_, k) => ((k + 0.5) * trace.seconds) / MOMENTS);
const loadsAt = (t) => trace.nodes.flatMap((n) => portsOf(n).map((p) => loadAt(n, p, t)[0]));
const fastest = moments.reduce((most, t) => loadsAt(t).reduce((a, b) => Math.max(a, b), most), 1);

function drawTorus() {
  const g = view.begin();
  view.frames(g);
  torus.channels.forEach(([node, port], c) => {
    const n = trace.nodes[node], [rate, again] = n.used ? loadAt(n, port, page.at) : [0, false];
    const part = Math.min(1, rate / fastest);
    view.channel(g, c, { colour: part > 0.002 ? themeColour(again ? 'bad' : 'accent') : themeColour('link'), width: 0.8 + 6 * part });
  });
  torus.place.forEach(([x, y], rank) => {
    const bad = DATA.findings.some((f) => f.node === rank && f.kind !== 'nothing');
    g.fillStyle = themeColour('node');
    g.strokeStyle = themeColour(bad ? 'bad' : rank === page.node ? 'accent' : 'node-line');
    g.lineWidth = bad || rank === page.node ? 3 : 1;
    g.beginPath();
    g.arc(x, y, 12, 0, 7);
    g.fill();
    g.stroke();
    g.fillStyle = themeColour('text');
    g.font = '10px sans-serif';
    g.textAlign = 'center';
    g.fillText(`${rank}`, x, y + 3.5);
  });
  byId('at').value = trace.seconds > 0 ? Math.round((1000 * page.at) / trace.seconds) : 0;
  byId('clock').textContent = `${seconds(page.at)} of ${seconds(trace.seconds)}, widest: ${((fastest * 8) / 1e6).toFixed(1)} Mbit/s`;
}

// --- lines ---

const LINE = 12, LEFT = 70;
let lines = [];

function drawLines() {
  const canvas = byId('lines'), wide = canvas.clientWidth, dense = window.devicePixelRatio || 1;
  lines = trace.nodes.flatMap((n, rank) => (page.node < 0 || page.node === rank ? portsOf(n).map((p) => [rank, p]) : []));
  if (page.node < 0 && lines.length > 600) lines = lines.slice(0, 600);
  const high = Math.max(1, lines.length) * LINE + 22;
  canvas.style.height = `${high}px`;
  canvas.width = wide * dense;
  canvas.height = high * dense;
  const g = canvas.getContext('2d'), x = (t) => LEFT + ((wide - LEFT - 4) * t) / (trace.seconds || 1);
  g.scale(dense, dense);
  g.font = '10px sans-serif';
  lines.forEach(([rank, p], row) => {
    const n = trace.nodes[rank], y = row * LINE;
    g.fillStyle = themeColour('quiet');
    g.textAlign = 'right';
    g.fillText(`${rank} ${nameOfPort(rank, p)}`, LEFT - 6, y + LINE - 3);
    for (let i = 0; i < intervals(n); i++) {
      const from = x(n.began + i * n.interval), to = x(n.began + (i + 1) * n.interval);
      let at = from;
      for (let s = 1; s <= STATES; s++) {
        const state = s % STATES, part = (to - from) * share(n, i, p, state);
        if (part <= 0) continue;
        g.fillStyle = colourOfState(state);
        g.fillRect(at, y + 1, part + 0.3, LINE - 2);
        at += part;
      }
    }
  });
  g.fillStyle = themeColour('quiet');
  g.textAlign = 'center';
  for (let k = 0; k <= 4; k++) g.fillText(seconds((trace.seconds * k) / 4), Math.min(wide - 30, Math.max(LEFT + 20, x((trace.seconds * k) / 4))), high - 6);
}

function under(event) {
  const box = byId('lines').getBoundingClientRect(), row = Math.floor((event.clientY - box.top) / LINE);
  if (row < 0 || row >= lines.length) return;
  const [rank, p] = lines[row], n = trace.nodes[rank];
  const t = ((event.clientX - box.left - LEFT) / (box.width - LEFT - 4)) * trace.seconds, i = Math.floor((t - n.began) / n.interval);
  if (i < 0 || i >= intervals(n)) return;
  const parts = trace.states.map((name, s) => [name, share(n, i, p, s)]).filter(([, v]) => v > 0.02).sort((a, b) => b[1] - a[1]);
  byId('under').textContent = `${n.name} (node ${rank}), port ${nameOfPort(rank, p)}, ${seconds(Math.max(0, t))}: `
    + `${parts.map(([name, v]) => `${name} ${Math.round(100 * v)} %`).join(', ')}; `
    + `${((8e-6 * n.sent[i * n.ports + p]) / n.interval).toFixed(1)} Mbit/s out`;
}

// --- the page ---

function tick(now) {
  if (!page.playing) return;
  page.at += page.last ? ((now - page.last) / 8000) * trace.seconds : 0;
  page.last = now;
  if (page.at >= trace.seconds) {
    page.at = trace.seconds;
    play(false);
  }
  drawTorus();
  if (page.playing) requestAnimationFrame(tick);
}

function play(on) {
  page.playing = on;
  page.last = 0;
  byId('play').textContent = on ? 'Stop' : 'Play';
  if (on) requestAnimationFrame(tick);
}

function choose(rank) {
  page.node = rank;
  byId('node').value = rank;
  drawTorus();
  drawLines();
}

function begin() {
  const run = trace.run || {};
  document.title = `${run.operation || 'Run'} ${trace.id} on ${torus.dims}`;
  byId('title').textContent = document.title;
  byId('node').appendChild(new Option('all', -1));
  trace.nodes.forEach((n, rank) => { if (n.used) byId('node').appendChild(new Option(`${rank} ${n.name}`, rank)); });
  if (torus.node_count > 32) page.node = DATA.findings[0].node >= 0 ? DATA.findings[0].node : 0;
  byId('node').value = page.node;
  page.at = trace.seconds / 4;
  fillFindings();
  fillFigures();
  fillWent();
  fillPorts();
  drawTorus();
  drawLines();
}

byId('play').addEventListener('click', () => {
  if (!page.playing && page.at >= trace.seconds) page.at = 0;
  play(!page.playing);
});
byId('at').addEventListener('input', (event) => { play(false); page.at = (trace.seconds * event.target.value) / 1000; drawTorus(); });
byId('node').addEventListener('change', (event) => choose(Number(event.target.value)));
byId('torus').addEventListener('click', (event) => { const rank = view.nodeAt(event); if (rank >= 0) choose(rank); });
byId('lines').addEventListener('mousemove', under);
byId('lines').addEventListener('click', under);
window.addEventListener('resize', () => { view.resize(); drawTorus(); drawLines(); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { fillWent(); drawTorus(); drawLines(); });
begin();
