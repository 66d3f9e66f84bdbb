'use strict';
// The player: one or two schedules on the same torus, by steps or by time.

const torus = prepareTorus(DATA.torus);
const player = { at: 0, playing: false, last: 0, node: 0, only: -1 };
const rates = new Map(DATA.down.rates.map(([node, port, rate]) => [channelOf(torus, node, port), rate]));
const panels = DATA.schedules.map((data) => ({ data, schedule: new Schedule(torus, data, rates) }));
const downNodes = new Set(DATA.down.nodes);
const downChannels = new Set(DATA.down.ports.map(([node, port]) => channelOf(torus, node, port)));
const STEP_SECONDS = 1.6; // how long a step takes when played by steps

// Names come from files, too: a text in HTML.
const html = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
const number = (x) => (Number.isInteger(x) ? `${x}` : x.toPrecision(4).replace(/\.?0+$/, ''));

const model = () => ({
  bytes: Math.max(1, Number(byId('bytes').value) || 65536),
  rate: Math.max(1, (Number(byId('rate').value) || 100) * 1e6),
  startup: Math.max(0, (Number(byId('startup').value) || 0) * 1e-6),
});

const byTime = () => byId('by').value === 'time';
const longest = () => Math.max(...panels.map((p) => (byTime() ? p.times[p.times.length - 1] : p.schedule.steps.length)));

// Where a panel is: the number of its step, and how much of it is over.
function place(panel) {
  const { schedule, times } = panel, end = schedule.steps.length;
  if (!byTime()) {
    const step = Math.min(end, Math.floor(player.at + 1e-9));
    return [step, step === end ? 0 : Math.max(0, player.at - step)];
  }
  let step = 0;
  while (step < end && times[step + 1] <= player.at + 1e-12) step++;
  const long = step < end ? times[step + 1] - times[step] : 1;
  return [step, step === end ? 0 : Math.max(0, (player.at - times[step]) / long)];
}

// --- drawing ---

function drawNode(g, panel, rank, held) {
  const [x, y] = torus.place[rank], r = NODE_RADIUS;
  const { schedule } = panel, columns = Math.ceil(Math.sqrt(torus.node_count)), rows = Math.ceil(torus.node_count / columns);
  const count = new Float64Array(torus.node_count);
  held.forEach((b) => { count[schedule.owner(b)]++; });
  g.fillStyle = themeColour('node');
  g.fillRect(x - r, y - r, 2 * r, 2 * r);
  if (downNodes.has(rank)) drawCross(g, x, y, r);
  for (let n = 0; n < torus.node_count; n++) {
    if (count[n] === 0 || (player.only >= 0 && n !== player.only)) continue;
    const full = count[n] / panel.most;
    g.fillStyle = colourOfNode(torus, n, 0.35 + 0.65 * Math.min(1, full));
    const cx = x - r + ((n % columns) * 2 * r) / columns, cy = y - r + (Math.floor(n / columns) * 2 * r) / rows;
    g.fillRect(cx, cy, (2 * r) / columns, (2 * r) / rows);
  }
  g.lineWidth = rank === player.node ? 2.5 : 1;
  g.strokeStyle = themeColour(rank === player.node ? 'accent' : downNodes.has(rank) ? 'bad' : 'node-line');
  if (downNodes.has(rank)) g.setLineDash([4, 3]);
  g.strokeRect(x - r, y - r, 2 * r, 2 * r);
  g.setLineDash([]);
  g.fillStyle = themeColour('quiet');
  g.font = '9px sans-serif';
  g.textAlign = 'center';
  g.fillText(`${rank}`, x, y + r + 9);
}

// What is in a node that is down.
function drawCross(g, x, y, r) {
  g.strokeStyle = themeColour('bad');
  g.lineWidth = 2.5;
  g.beginPath();
  for (const side of [-1, 1]) {
    g.moveTo(x - 0.6 * r, y - 0.6 * r * side);
    g.lineTo(x + 0.6 * r, y + 0.6 * r * side);
  }
  g.stroke();
}

// A message on its way: a box with the colours of its blocks.
function drawMessage(g, panel, message, part) {
  const shown = player.only < 0 ? message.blocks : message.blocks.filter((b) => panel.schedule.owner(b) === player.only);
  if (shown.length === 0) return;
  const along = Math.min(0.999999, part) * message.path.length, hop = Math.floor(along);
  const [x, y] = pointOnChannel(torus, message.path[hop], along - hop);
  const size = 3.5 + 5.5 * Math.sqrt(message.blocks.length / panel.largest);
  const owners = [...new Set(shown.map((b) => panel.schedule.owner(b)))].sort((a, b) => a - b), stripes = owners.slice(0, 16);
  stripes.forEach((n, i) => {
    g.fillStyle = colourOfNode(torus, n);
    g.fillRect(x - size + (2 * size * i) / stripes.length, y - size, (2 * size) / stripes.length + 0.4, 2 * size);
  });
  g.strokeStyle = themeColour('text');
  g.lineWidth = 0.7;
  g.strokeRect(x - size, y - size, 2 * size, 2 * size);
}

function totalLoad(panel, steps) {
  const total = new Map();
  const slowness = (c) => (panel.data.streaming ? 1 / panel.schedule.rate(c) : 1);
  for (let i = 0; i < steps; i++) panel.schedule.steps[i].load.forEach((n, c) => total.set(c, (total.get(c) || 0) + n * slowness(c)));
  return total;
}

function drawLoads(g, panel, step, load, most) {
  torus.channels.forEach((c, i) => {
    const n = load.get(i) || 0;
    if (downChannels.has(i)) {
      panel.view.channel(g, i, { colour: themeColour('bad'), width: 2.5, dash: [5, 5] });
      return;
    }
    const crowded = step && (step.crossing.get(i) || 0) > 1;
    const dash = rates.has(i) ? [2, 3] : undefined;
    panel.view.channel(g, i, n === 0 ? { colour: themeColour('link'), width: 0.7, dash }
      : { colour: crowded ? themeColour('bad') : themeColour('accent'), width: 1 + (5 * n) / most, dash });
  });
}

function draw(panel) {
  const [number_, part] = place(panel), { schedule, view } = panel;
  const step = schedule.steps[number_], show = byId('show').value;
  if (panel.heldAt !== number_) {
    panel.held = schedule.before(number_);
    panel.heldAt = number_;
  }
  const g = view.begin();
  view.frames(g);
  if (show === 'total') {
    const load = totalLoad(panel, number_ + (part > 0 ? 1 : 0));
    drawLoads(g, panel, null, load, Math.max(1, ...load.values()));
  } else {
    const most = step ? Math.max(1, ...step.load.values()) : 1;
    drawLoads(g, panel, step, step && (show === 'load' || part > 0) ? step.load : new Map(), show === 'load' ? most : most * 3);
  }
  const held = part > 0 && step && !schedule.gather ? panel.held.map((s) => new Set(s)) : panel.held;
  if (part > 0 && step && !schedule.gather) step.messages.forEach((m) => m.blocks.forEach((b) => held[m.node].delete(b)));
  for (let rank = 0; rank < torus.node_count; rank++) drawNode(g, panel, rank, held[rank]);
  if (show === 'blocks' && step && part > 0) step.messages.forEach((m) => drawMessage(g, panel, m, part));
  describe(panel, number_, part);
}

// The words about a step: its name, what moves and why, and counts.
function wordsOf(panel, at) {
  const { schedule } = panel, step = schedule.steps[at], unit = schedule.data.streaming ? 'Time' : 'Step';
  if (!step) return ['The end', schedule.gather ? 'Every node has the blocks of all nodes.' : 'Every block is at its destination.', ''];
  const crowd = step.crowd > 1 ? ` Contention: up to ${step.crowd} messages share a channel.` : '';
  return [`${unit} ${at + 1} of ${schedule.steps.length}${step.name ? `: ${step.name}` : ''}`, schedule.sentence(at),
    `${plural(step.messages.length, 'message')} by ${step.ports.join(', ')}, ${plural(step.hops, 'hop')}`
      + ` at most; ${plural(+number(step.most), 'block')} on the busiest channel.${crowd}`];
}

function describe(panel, at, part) {
  const { schedule } = panel, step = schedule.steps[at];
  const key = `${at} ${byId('node').value} ${part > 0}`;
  if (panel.described === key) return;
  panel.described = key;
  [panel.title.textContent, panel.why.textContent, panel.text.textContent] = wordsOf(panel, at);
  panel.text.classList.toggle('bad', Boolean(step && step.crowd > 1));
  panel.canvas.setAttribute('aria-label', `${schedule.data.name}. ${panel.title.textContent}. ${panel.why.textContent}`);
  if (panel === panels[0]) describeNode(panel);
}

function describeNode(panel) {
  const held = panel.held[player.node], list = byId('holds'), count = new Map();
  held.forEach((b) => count.set(panel.schedule.owner(b), (count.get(panel.schedule.owner(b)) || 0) + 1));
  const unit = panel.schedule.data.segments > 1 ? 'segment' : 'block';
  byId('node-text').textContent = `${torus.coordinates[player.node]} holds ${plural(held.size, unit)} in ${panel.schedule.data.name}.`;
  const rows = [...count].sort((a, b) => a[0] - b[0])
    .map(([n, k]) => `<tr><td>node ${n} ${torus.coordinates[n]}</td><td>${k}</td></tr>`).join('');
  list.innerHTML = rows === '' ? '<p class="quiet">Nothing now.</p>'
    : `<table><thead><tr><th>${panel.schedule.gather ? 'from' : 'for'}</th><th>${unit}s</th></tr></thead><tbody>${rows}</tbody></table>`;
}

function drawAll() {
  panels.forEach(draw);
  const end = longest();
  byId('position').value = end > 0 ? Math.round((1000 * player.at) / end) : 0;
  byId('clock').textContent = byTime() ? `${seconds(player.at)} of ${seconds(end)}`
    : `${Math.min(Math.floor(player.at) + 1, end)} of ${end}`;
  byId('position').setAttribute('aria-valuetext', byId('clock').textContent);
}

// --- moving ---

function setPlaying(on) {
  player.playing = on;
  player.last = 0;
  byId('play').textContent = on ? 'Stop' : 'Play';
  if (on) requestAnimationFrame(tick);
}

function tick(now) {
  if (!player.playing) return;
  const passed = player.last ? (now - player.last) / 1000 : 0, end = longest();
  const speed = Number(byId('speed').value);
  player.last = now;
  player.at += byTime() ? (passed * speed * end) / (STEP_SECONDS * Math.max(...panels.map((p) => p.schedule.steps.length)))
    : (passed * speed) / STEP_SECONDS;
  if (player.at >= end) {
    player.at = end;
    setPlaying(false);
  }
  drawAll();
  if (player.playing) requestAnimationFrame(tick);
}

// Goes to the beginning of the next or a former step of the schedule that has one nearest.
function stepBy(direction) {
  setPlaying(false);
  const marks = panels.flatMap((p) => (byTime() ? p.times : Array.from({ length: p.schedule.steps.length + 1 }, (_, i) => i)));
  const near = 1e-9 * Math.max(1, longest());
  const there = marks.filter((m) => (direction > 0 ? m > player.at + near : m < player.at - near));
  if (there.length > 0) player.at = direction > 0 ? Math.min(...there) : Math.max(...there);
  drawAll();
}

function retime() {
  const old = panels[0].times ? player.at / Math.max(1e-12, longest()) : 0;
  panels.forEach((p) => { p.times = p.schedule.times(model()); });
  player.at = byTime() ? old * longest() : player.at;
  fillTable();
  drawAll();
}

// --- the page ---

function addPanel(panel) {
  const { data, schedule } = panel, box = document.createElement('section');
  box.className = 'schedule';
  box.setAttribute('aria-label', data.name);
  box.innerHTML = '<h2></h2><canvas role="img"></canvas><p class="step"><b></b><span></span><span class="quiet"></span></p>';
  box.querySelector('h2').textContent = data.name;
  if (data.measured) schedule.measured = data.measured;
  const figures = [data.ports, plural(data.startups, 'start-up'), `${plural(+number(data.transmission), 'block')} of transmission`,
    `lower bound ${number(data.bound)}`, data.contended > 0 ? `${plural(data.contended, 'step')} with contention` : 'no contention'];
  if (data.measured) figures.push(`times of the run ${data.run}`);
  if (data.streaming) figures.push('runs without steps: a time is what one segment needs on a link');
  figures.forEach((f) => { box.querySelector('h2').appendChild(document.createElement('span')).textContent = f; });
  byId('schedules').appendChild(box);
  const name = document.createElement('h3'), about = document.createElement('p');
  name.textContent = data.name;
  about.textContent = `${data.summary}. ${data.paper ? `Source: ${data.paper}.` : ''}`;
  byId('about').append(name, about);
  panel.box = box;
  panel.canvas = box.querySelector('canvas');
  panel.words = box.querySelector('.step');
  [panel.title, panel.why, panel.text] = panel.words.children;
  panel.view = new TorusView(panel.canvas, torus);
  panel.largest = Math.max(1, ...schedule.steps.map((s) => Math.max(0, ...s.messages.map((m) => m.blocks.length))));
  panel.most = schedule.gather ? data.segments : Math.max(data.segments, 1);
  panel.canvas.addEventListener('click', (event) => choose(panel.view.nodeAt(event)));
}

// Makes room for the longest words of a schedule, so that nothing moves when they change. Rings of many steps repeat
// themselves: the longest texts are enough.
function holdWords(panel) {
  const all = Array.from({ length: Math.min(panel.schedule.steps.length, 400) }, (_, i) => wordsOf(panel, i));
  panel.words.style.minHeight = '';
  [panel.title, panel.why, panel.text].forEach((part, k) => {
    part.textContent = all.reduce((longest, words) => (words[k].length > longest.length ? words[k] : longest), '');
  });
  panel.words.style.minHeight = `${panel.words.offsetHeight}px`;
  panel.described = '';
}

// Fits the drawings and the controls into the window, if schedules are side by side there.
function fit() {
  panels.forEach((p) => { p.canvas.style.height = '0'; holdWords(p); });
  const stage = byId('stage'), full = document.fullscreenElement === stage, box = stage.getBoundingClientRect();
  const above = full ? 0 : box.top + scrollY, first = panels[0].box, last = panels[panels.length - 1].box;
  const beside = innerWidth > 640 && first.offsetTop === last.offsetTop;
  const padding = parseFloat(getComputedStyle(document.documentElement).fontSize);
  let rest = byId('legend').offsetHeight + document.querySelector('.controls').offsetHeight;
  rest += Math.max(...panels.map((p) => p.box.offsetHeight - (byId('schedules').classList.contains('alone')
    && p.words.offsetTop < p.canvas.offsetTop + 40 ? p.words.offsetHeight : 0)));
  panels.forEach((p) => p.view.resize(beside ? innerHeight - above - rest - padding : 0));
}

function choose(rank) {
  if (rank < 0) return;
  player.node = rank;
  byId('node').value = rank;
  panels.forEach((p) => { p.described = ''; });
  drawAll();
}

function tableOf(panel) {
  const { steps } = panel.schedule, lines = Math.min(steps.length, 400), rows = [];
  for (let i = 0; i < lines; i++) {
    const s = steps[i];
    rows.push(`<tr><td>${i + 1}</td><td>${s.messages.length}</td><td>${number(s.most)}</td><td>${s.hops}</td>`
      + `<td>${s.crowd > 1 ? `${s.crowd} messages` : '-'}</td><td>${seconds(panel.times[i + 1])}</td>`
      + `<td class="text">${html(s.name)}</td></tr>`);
  }
  return `<h3>${html(panel.data.name)}</h3><table><thead><tr><th>step</th><th>messages</th><th>busiest channel</th><th>hops</th>`
    + '<th>contention</th><th>ends at</th><th class="text">phase</th></tr></thead>'
    + `<tbody>${rows.join('')}</tbody></table>${steps.length > lines ? `<p class="quiet">The other ${steps.length - lines} are not listed.</p>` : ''}`;
}

function fillTable() {
  byId('table').innerHTML = panels.map(tableOf).join('');
}

function drawLegend() {
  const canvas = byId('colours'), g = canvas.getContext('2d'), columns = torus.sizes.slice(-huesOf(torus.sizes)).reduce((n, size) => n * size, 1);
  const rows = Math.ceil(torus.node_count / columns), cell = Math.max(2, Math.min(12, 160 / columns, 44 / rows));
  canvas.hidden = !hasColours(torus);
  canvas.width = columns * cell;
  canvas.height = rows * cell;
  for (let n = 0; n < torus.node_count; n++) {
    g.fillStyle = colourOfNode(torus, n);
    g.fillRect((n % columns) * cell, Math.floor(n / columns) * cell, cell, cell);
  }
}

// What the drawing means.
function leadText(gather) {
  const coloured = hasColours(torus), parts = [gather ? 'Every node has a block for all others.'
    : 'Every node has a different block for every other node.'];
  parts.push(gather ? 'A square is a node; its cells are the nodes whose blocks it has.'
    : 'A square is a node; its cells are the destinations of the blocks that it holds.');
  if (!coloured) parts.push(`${torus.node_count} nodes are too many for a colour each.`);
  if (downChannels.size > 0) parts.push('What is dashed and red is down.');
  if (rates.size > 0) parts.push('A dotted channel is slower than the others.');
  if (DATA.source >= 0) parts.push(`Only the blocks of node ${DATA.source} are shown.`);
  return parts.join(' ');
}

function begin() {
  const names = panels.map((p) => p.data.name), gather = panels[0].schedule.gather;
  document.title = `${names.join(' and ')} on ${torus.dims}`;
  byId('title').textContent = document.title;
  byId('lead').textContent = leadText(gather);
  for (let n = 0; n < torus.node_count; n++) {
    byId('node').appendChild(new Option(`${n} ${torus.coordinates[n]}`, n));
    byId('only').appendChild(new Option(`node ${n}`, n));
  }
  byId('only').insertBefore(new Option('all nodes', -1), byId('only').firstChild).selected = true;
  if (gather) byId('only').parentNode.firstChild.textContent = 'Blocks of ';
  byId('schedules').classList.toggle('alone', panels.length === 1);
  byId('full').hidden = !document.fullscreenEnabled;
  panels.forEach(addPanel);
  if (panels.length > 1 || panels[0].data.measured) byId('by').value = 'time';
  drawLegend();
  fit();
  retime();
}

function toggleFull() {
  if (document.fullscreenElement) document.exitFullscreen();
  else if (document.fullscreenEnabled) byId('stage').requestFullscreen();
}

byId('play').addEventListener('click', () => {
  if (!player.playing && player.at >= longest()) player.at = 0;
  setPlaying(!player.playing);
});
byId('back').addEventListener('click', () => stepBy(-1));
byId('forward').addEventListener('click', () => stepBy(1));
byId('first').addEventListener('click', () => { setPlaying(false); player.at = 0; drawAll(); });
byId('last').addEventListener('click', () => { setPlaying(false); player.at = longest(); drawAll(); });
byId('position').addEventListener('input', (event) => {
  setPlaying(false);
  player.at = (longest() * event.target.value) / 1000;
  drawAll();
});
byId('by').addEventListener('change', () => { player.at = 0; panels.forEach((p) => { p.described = ''; }); drawAll(); });
byId('show').addEventListener('change', drawAll);
byId('only').addEventListener('change', (event) => { player.only = Number(event.target.value); drawAll(); });
byId('node').addEventListener('change', (event) => choose(Number(event.target.value)));
['bytes', 'rate', 'startup'].forEach((id) => byId(id).addEventListener('change', retime));
document.addEventListener('keydown', (event) => {
  if (['INPUT', 'SELECT', 'BUTTON'].includes(event.target.tagName) && event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
  if (event.target.tagName === 'INPUT' || event.target.tagName === 'SELECT') return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === 'f' || event.key === 'F') toggleFull();
  else if (event.key === ' ') byId('play').click();
  else if (event.key === 'ArrowLeft') stepBy(-1);
  else if (event.key === 'ArrowRight') stepBy(1);
  else return;
  event.preventDefault();
});
byId('full').addEventListener('click', toggleFull);
document.addEventListener('fullscreenchange', () => {
  byId('full').textContent = document.fullscreenElement ? 'Leave full screen' : 'Full screen';
  fit();
  drawAll();
});
window.addEventListener('resize', () => { fit(); drawAll(); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { drawLegend(); drawAll(); });
begin();
