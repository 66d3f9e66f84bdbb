'use strict';
// The times of a bench as a plot and a table. Each algorithm has a colour, a mark, and its name at the end of its line.

const done = DATA.results.filter((r) => !r.error && r.seconds > 0 && r.block_bytes > 0);
const names = [...new Set(DATA.results.map((r) => r.algorithm))];
const sizes = [...new Set(DATA.results.map((r) => r.block_bytes))].sort((a, b) => a - b);
const SVG = 'http://www.w3.org/2000/svg';
const WIDEST = 900, NARROWEST = 320, HIGH = 520, LEFT = 66, RIGHT = 134, TOP = 14, BOTTOM = 40;
const MARKS = ['M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0', 'M-4 -4h8v8h-8z', 'M0 -5l5 9h-10z', 'M0 5l5 -9h-10z', 'M0 -5l5 5l-5 5l-5 -5z'];

function bytes(n) {
  if (n >= 1048576) return `${+(n / 1048576).toPrecision(4)} MiB`;
  return n >= 1024 ? `${+(n / 1024).toPrecision(4)} KiB` : `${n} B`;
}

const rates = () => byId('show').value === 'rate';
const amount = (size, t) => (rates() ? ((DATA.node_count - 1) * size * 8e-6) / t : t);
const label = (y) => (rates() ? `${+y.toPrecision(3)}` : seconds(y, 3));
const isDark = () => matchMedia('(prefers-color-scheme: dark)').matches;
const colour = (i) => `hsl(${(i * 137) % 360} ${isDark() ? '70% 68%' : '75% 34%'})`;

function draw(parent, kind, attributes, text) {
  const node = parent.appendChild(document.createElementNS(SVG, kind));
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  if (text !== undefined) node.textContent = text;
  return node;
}

const bound = (size) => (DATA.bound_blocks * size * 8) / (DATA.link_mbit * 1e6);

function lines() {
  const list = names.map((name, i) => ({ name, colour: colour(i), mark: MARKS[i % MARKS.length], points: done.filter((r) => r.algorithm === name)
    .sort((a, b) => a.block_bytes - b.block_bytes).map((r) => [r.block_bytes, amount(r.block_bytes, r.seconds)]) }));
  const shown = sizes.filter((s) => s > 0);
  if (DATA.link_mbit > 0) list.push({ name: 'lower bound', bound: true, points: shown.map((s) => [s, amount(s, bound(s))]) });
  return list.filter((l) => l.points.length > 0);
}

// Names at the ends of lines, from above to below, each with room.
function spread(places) {
  places.sort((a, b) => a.y - b.y);
  for (let i = 1; i < places.length; i++) places[i].y = Math.max(places[i].y, places[i - 1].y + 13);
  const over = places.length > 0 ? Math.max(0, places[places.length - 1].y - (HIGH - 6)) : 0;
  places.forEach((p) => { p.y -= over; });
}

// Powers of ten between e^from and e^to, times each factor.
function roundNumbers(factors, from, to) {
  const list = [];
  for (let k = Math.floor(from / Math.LN10) - 1; k <= to / Math.LN10 + 1; k++) factors.forEach((f) => list.push(f * 10 ** k));
  return list.filter((m) => Math.log(m) >= from - 1e-9 && Math.log(m) <= to + 1e-9);
}

// Powers of ten, and if these are few, also their double and fivefold.
function marksBetween(from, to) {
  const tens = roundNumbers([1], from, to);
  return tens.length >= 3 ? tens : roundNumbers([1, 2, 5], from, to);
}

// An axis from one round number to another: however near to each other the values are, there are at least two marks.
function widened([from, to]) {
  const below = roundNumbers([1, 2, 5], from - Math.LN10, from), above = roundNumbers([1, 2, 5], to, to + Math.LN10);
  return [Math.log(below[below.length - 1]), Math.log(above[0])];
}

function plot() {
  const all = lines(), box = byId('plot'), only = byId('only').value;
  const wide = Math.max(NARROWEST, Math.min(WIDEST, box.clientWidth)); // so that texts keep their size on a telephone
  box.replaceChildren();
  if (all.length === 0) {
    box.textContent = 'No exchange of a block of at least one byte has succeeded.';
    return;
  }
  const xs = all.flatMap((l) => l.points.map((p) => Math.log(p[0]))), ys = all.flatMap((l) => l.points.map((p) => Math.log(p[1])));
  const span = (list) => [Math.min(...list), Math.max(...list, Math.min(...list) + 0.1)];
  const [x0, x1] = span(xs), [y0, y1] = widened(span(ys));
  const x = (v) => LEFT + ((Math.log(v) - x0) / (x1 - x0)) * (wide - LEFT - RIGHT);
  const y = (v) => HIGH - BOTTOM - ((Math.log(v) - y0) / (y1 - y0)) * (HIGH - TOP - BOTTOM);
  const svg = draw(box, 'svg', { viewBox: `0 0 ${wide} ${HIGH}`, role: 'img', 'aria-label': `${byId('plot-title').textContent}; the table below has all figures` });
  marksBetween(y0, y1).forEach((mark) => {
    draw(svg, 'line', { class: 'grid', x1: LEFT, x2: wide - RIGHT, y1: y(mark), y2: y(mark) });
    draw(svg, 'text', { x: LEFT - 8, y: y(mark) + 4, 'text-anchor': 'end' }, label(mark));
  });
  let last = -100;
  sizes.filter((s) => s > 0).forEach((s) => {
    draw(svg, 'line', { class: 'grid', x1: x(s), x2: x(s), y1: TOP, y2: HIGH - BOTTOM });
    if (x(s) - last > 60) draw(svg, 'text', { x: last = x(s), y: HIGH - BOTTOM + 18, 'text-anchor': 'middle' }, bytes(s));
  });
  const ends = [];
  all.forEach((l) => {
    const faint = only !== '' && !l.bound && l.name !== only, group = draw(svg, 'g', { class: faint ? 'quiet-line' : '' });
    draw(group, 'polyline', { class: l.bound ? 'line bound' : 'line', points: l.points.map((p) => `${x(p[0])},${y(p[1])}`).join(' '), ...(l.bound ? {} : { stroke: l.colour }) });
    if (!l.bound) l.points.forEach((p) => draw(draw(group, 'path', { d: l.mark, fill: l.colour, transform: `translate(${x(p[0])} ${y(p[1])})` }), 'title', {}, `${l.name}, ${bytes(p[0])}: ${label(p[1])}`));
    const [ex, ey] = l.points[l.points.length - 1];
    ends.push({ group, x: x(ex), y: y(ey), from: y(ey), l });
  });
  spread(ends);
  ends.forEach((e) => {
    draw(e.group, 'line', { class: 'grid', x1: e.x + 6, y1: e.from, x2: wide - RIGHT + 16, y2: e.y });
    if (!e.l.bound) draw(e.group, 'path', { d: e.l.mark, fill: e.l.colour, transform: `translate(${wide - RIGHT + 24} ${e.y})` });
    draw(e.group, 'text', { x: wide - RIGHT + 34, y: e.y + 4 }, e.l.name);
  });
}

function cell(row, kind, text, left) {
  const node = row.appendChild(document.createElement(kind));
  node.textContent = text;
  if (left) node.className = 'text';
}

function table() {
  const t = byId('table').appendChild(document.createElement('table')), head = t.createTHead().insertRow(), body = t.createTBody();
  ['block', ...names, ...(DATA.link_mbit > 0 ? ['lower bound'] : [])].forEach((name) => cell(head, 'th', name));
  sizes.forEach((size) => {
    const row = body.insertRow(), here = DATA.results.filter((r) => r.block_bytes === size);
    const best = Math.min(...here.filter((r) => !r.error).map((r) => r.seconds));
    cell(row, 'td', bytes(size));
    names.forEach((name) => {
      const r = here.find((one) => one.algorithm === name);
      cell(row, 'td', !r ? '-' : r.error ? 'failed' : `${seconds(r.seconds)}${r.seconds === best ? ' *' : ''}`);
    });
    if (DATA.link_mbit > 0) cell(row, 'td', seconds(bound(size)));
  });
  const wrong = DATA.results.filter((r) => r.error);
  byId('failed').hidden = wrong.length === 0;
  wrong.forEach((r) => { byId('failures').appendChild(document.createElement('li')).textContent = `${r.algorithm}, ${bytes(r.block_bytes)}: ${r.error.text}`; });
}

document.title = `Exchanges on ${DATA.network}`;
byId('title').textContent = document.title;
byId('lead').textContent = `${DATA.node_count} nodes, ${DATA.repeat} exchanges back to back for each size and algorithm`
  + `${DATA.link_mbit > 0 ? `, links of ${+DATA.link_mbit.toPrecision(4)} Mbit/s` : ''}${DATA.rates ? `, slower: ${DATA.rates}` : ''}.`;
byId('only').appendChild(new Option('all', ''));
names.forEach((name) => byId('only').appendChild(new Option(name, name)));
byId('show').addEventListener('change', () => {
  byId('plot-title').textContent = rates() ? 'Rate over block size' : 'Time over block size';
  plot();
});
byId('only').addEventListener('change', plot);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', plot);
window.addEventListener('resize', plot);
plot();
table();
