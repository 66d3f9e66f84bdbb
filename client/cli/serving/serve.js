'use strict';
// The page: draws what the events say.

const page = { torus: null, view: null, state: null, doctor: null, lost: null, trouble: '', heard: 0, history: 0,
  ahead: null }; // ahead: of the server's clock, in milliseconds, until the first state has come, which may be an old one
const LEAST_SCALE = 0.7; // of the torus, so that its numbers can be read
const OLD_MS = 4000; // without a state the data is old
const FAULTS_SHOWN = 5; // the others are folded, so that the torus is not far below
const LABEL_SCALE = 0.8; // of the torus, from which on rates are written on its links

// --- how old the data is ---

function showAge() {
  const line = byId('live'), since = page.heard ? ` What is shown is ${duration((Date.now() - page.heard) / 1000)} old.` : '';
  let text = 'Live', good = true;
  if (page.trouble) [text, good] = [`${page.trouble.replace(/[.]$/, '')}. Trying again.${since}`, false];
  else if (page.lost) [text, good] = [`No new data${page.lost.since ? ` since ${timeOfDay(page.lost.since)}` : ''}: ${page.lost.why}.${since}`, false];
  else if (!page.state) text = 'Asking all nodes ...';
  else if (Date.now() - page.heard > OLD_MS) [text, good] = [`Waiting for nodes that do not answer.${since}`, false];
  if (line.textContent !== text) line.textContent = text;
  line.className = good ? 'good' : 'bad';
  byId('torus').style.opacity = good ? '' : '0.5';
  showTitle(good);
}

// The title of the tab says what is wrong, too.
function showTitle(good) {
  const name = page.torus ? `Torus ${page.torus.dims}` : 'Torus', count = page.state && page.torus ? faultsOf(page.state).length + page.state.more : 0;
  const wrong = !good && page.state ? 'no new data' : count > 0 ? `${count} ${count === 1 ? 'fault' : 'faults'}` : '';
  const title = wrong ? `\u25B2 ${wrong} - ${name}` : name;
  if (document.title !== title) document.title = title;
}

// --- the torus ---

// The colour of a channel: from that of idle ones to that of full ones.
function colourOfLoad(part) {
  if (part < 0.005) return themeColour('link');
  const [idle, full] = ['link', 'accent'].map((name) => themeColour(name).match(/[0-9a-f]{2}/g).map((hex) => parseInt(hex, 16)));
  return `rgb(${idle.map((value, i) => Math.round(value + (full[i] - value) * Math.min(1, 0.3 + part))).join(', ')})`;
}

function isDown(index) {
  const end = page.state.end[index] || page.state.end[page.torus.opposite[index]];
  return end !== null && !end[UP];
}

// A rate in four characters or less: "612M" is 612 Mbit/s.
function shortRate(bytes) {
  const [value, unit] = scaled(bytes * 8, 1000, ['', 'k', 'M', 'G', 'T']).split(' ');
  return `${value.length > 3 ? Math.round(Number(value)) : value}${unit}`;
}

// Writes the rate of a channel beside it, to the right in its direction.
function drawRate(g, index, bytes) {
  const at = page.torus.channels[index][3] === STRAIGHT ? 0.5 : 0.3;
  const [x, y] = pointOnChannel(page.torus, index, at), [x0, y0] = pointOnChannel(page.torus, index, at - 0.1);
  const length = Math.hypot(x - x0, y - y0) || 1, dx = (x - x0) / length, dy = (y - y0) / length;
  g.fillStyle = themeColour('text');
  g.font = '9px sans-serif';
  g.textAlign = Math.abs(dx) > Math.abs(dy) ? 'center' : dy < 0 ? 'left' : 'right';
  g.fillText(shortRate(bytes), x - dy * 7, y + dx * 9 + 3);
}

function draw() {
  const { view, torus, state } = page;
  if (!view || !state) return;
  const g = view.begin(), most = state.capacity || Infinity;
  view.frames(g);
  torus.channels.forEach(([node, port], i) => {
    const end = state.end[i], part = end && known(end[SENT]) ? Math.min(1, end[SENT] / most) : 0;
    if (chosen.node === node && chosen.port === port) view.channel(g, i, { colour: themeColour('warm'), width: 13 });
    if (isDown(i)) view.channel(g, i, { colour: themeColour('bad'), width: 2.5, dash: [5, 5] });
    else view.channel(g, i, { colour: colourOfLoad(part), width: 1.2 + 7 * part, dash: end ? [] : [1, 4] });
  });
  if (view.scale >= LABEL_SCALE)
    state.end.forEach((end, i) => { if (end && end[SENT] / most >= 0.005 && !isDown(i)) drawRate(g, i, end[SENT]); });
  torus.place.forEach(([x, y], rank) => {
    const missing = state.node[rank][1] !== '';
    g.fillStyle = themeColour('node');
    g.strokeStyle = themeColour(missing ? 'bad' : rank === chosen.node ? 'warm' : 'node-line');
    g.lineWidth = missing || rank === chosen.node ? 3 : 1;
    g.setLineDash(missing ? [4, 3] : []);
    g.beginPath();
    g.arc(x, y, 13, 0, 7);
    g.fill();
    g.stroke();
    g.setLineDash([]);
    g.fillStyle = themeColour(missing ? 'bad' : 'text');
    g.font = '11px sans-serif';
    g.textAlign = 'center';
    g.fillText(`${rank}`, x, y + 4);
  });
}

function showTorus() {
  const { torus, state } = page, answered = state.node.filter((n) => n[1] === '').length;
  const all = state.end.reduce((sum, end) => sum + ((end && end[SENT]) || 0), 0);
  byId('summary').textContent = `${answered} of ${torus.node_count} nodes answer, ${state.links_up} of ${state.links} links are up, `
    + `${bitRate(all)} on all links together. Asked at ${state.node[torus.asker][0]}.`;
  byId('torus').setAttribute('aria-label', `Torus ${torus.dims}: ${byId('summary').textContent}`);
  byId('scale').textContent = !state.capacity ? 'The widest line would be the fastest rate seen; so far there is hardly any load.'
    : `The widest line is ${bitRate(state.capacity)}, ${state.nominal ? 'the nominal rate of a link' : 'the fastest rate seen since the page is served'}.`
    + (page.view.scale >= LABEL_SCALE ? ' Numbers beside links are what they carry in bit/s.' : '');
  draw();
}

// --- faults, runs, findings ---

// What is wrong: nodes, links and cables; and runs that have failed.
function faultsOf(state) {
  const runs = state.runs.filter((run) => run.failed)
    .map((run) => ({ text: `${run.kind} ${run.kind === 'exchange' ? `${run.what} ${run.id}` : run.what} ${run.state}`, why: run.reason }));
  return [...state.faults, ...runs];
}

function showFault(f) {
  const line = element('p', f.text, 'fault'), why = element('span', f.why, 'quiet');
  why.setAttribute('aria-live', 'off');
  line.append(f.why ? ', ' : '', why);
  return line;
}

function showFaults() {
  const { more } = page.state, faults = faultsOf(page.state), box = byId('faults'), all = JSON.stringify([faults.map((f) => f.text), more]);
  if (box.dataset.all === all) { // otherwise screen readers would read the same again
    box.querySelectorAll('.fault > span').forEach((why, i) => { why.textContent = faults[i].why; });
    return;
  }
  box.dataset.all = all;
  const list = faults.slice(0, FAULTS_SHOWN).map(showFault), rest = faults.slice(FAULTS_SHOWN).map(showFault);
  if (more > 0) rest.push(element('p', `and ${more} more`, 'fault'));
  if (rest.length > 0) {
    const folded = element('details');
    folded.append(element('summary', `${faults.length + more - FAULTS_SHOWN} more`), ...rest);
    list.push(folded);
  }
  box.replaceChildren(...(list.length > 0 ? list : [element('p', 'None: all nodes answer, and all links are up.', 'good')]));
}

function runFacts(run) {
  const facts = [run.state];
  if (run.kind === 'group') facts.push(`${run.calls_done} of ${run.calls} calls done`, `${run.node_count} nodes`);
  else if (run.total > 0) facts.push(`${byteCount(run.done)} of ${byteCount(run.total)}`);
  if (run.kind === 'exchange' && run.rounds > 1) facts.push(`${run.round} of ${run.rounds} rounds`);
  if (known(run.rate) && !run.ended) facts.push(byteRate(run.rate));
  if (known(run.left)) facts.push(`${duration(run.left)} left`);
  if (run.age > 0) facts.push(`${run.ended ? 'began' : 'for'} ${duration(run.age)}${run.ended ? ' ago' : ''}`);
  return facts.join(', ');
}

function showRun(run) {
  const box = element('div', undefined, 'run'), name = run.kind === 'exchange' ? `${run.what} ${run.id}` : run.what;
  box.append(element('p', `${run.kind} ${name}${run.root ? `, asked at ${run.root}` : ''}`));
  if (known(run.part) && !run.ended) {
    const bar = element('progress');
    bar.max = 1;
    bar.value = run.part;
    bar.setAttribute('aria-label', `Progress of ${run.kind} ${name}: ${Math.floor(100 * run.part)} %`);
    box.append(bar);
  }
  box.append(element('p', `${known(run.part) && !run.ended ? `${Math.floor(100 * run.part)} %, ` : ''}${runFacts(run)}`, 'quiet'));
  if (run.reason) box.append(element('p', run.reason, run.ended ? 'bad' : ''));
  return box;
}

function showRuns() {
  const { runs } = page.state, under = runs.filter((run) => !run.ended), ended = runs.filter((run) => run.ended);
  byId('runs').replaceChildren(...(under.length > 0 ? under.map(showRun) : [element('p', 'Nothing.', 'quiet')]));
  if (page.state.left_out > 0) byId('runs').append(element('p', 'There are more than are shown here.', 'quiet'));
  byId('past').hidden = ended.length === 0;
  byId('past-title').textContent = `Ended (${ended.length})`;
  byId('ended').replaceChildren(...ended.map(showRun));
}

function showFinding(f) {
  const box = element('div', undefined, `finding ${f.severity.replace(' ', '-')}`), line = element('p');
  const hosts = f.hosts.length > 4 ? `${f.hosts.slice(0, 3).join(', ')} and ${f.hosts.length - 3} others` : f.hosts.join(', ');
  line.append(element('b', f.severity), ` (${f.check}) ${hosts ? `${hosts}: ` : ''}${f.what}`);
  box.append(line);
  const others = (f.each || []).slice(1), shown = others.slice(0, 3);
  for (const one of shown) if (one.what !== f.what) box.append(element('p', `also ${one.host}: ${one.what}`));
  if (others.length > shown.length) box.append(element('p', `and ${others.length - shown.length} more of this kind`, 'quiet'));
  if (f.why) box.append(element('p', f.why, 'quiet'));
  if (f.mend) box.append(element('code', f.mend));
  return box;
}

function showDoctor() {
  const d = page.doctor, errors = (d.findings || []).filter((f) => f.severity === 'error').length;
  byId('doctor-says').hidden = errors === 0;
  byId('doctor-says').firstChild.textContent = `The doctor has found ${errors} ${errors === 1 ? 'error' : 'errors'}.`;
  byId('judge').disabled = false;
  byId('judged').textContent = `Judged at ${timeOfDay(d.at)}, and again every minute.`;
  if (!d.findings) byId('findings').replaceChildren(element('p', 'The machines could not be judged.', 'bad'));
  else if (d.findings.length === 0) byId('findings').replaceChildren(element('p', 'Nothing is wrong.', 'good'));
  else byId('findings').replaceChildren(...d.findings.map(showFinding));
}

// --- details ---

function choose(node, port) {
  chosen.node = node;
  chosen.port = port;
  page.history = 0;
  byId('charts').replaceChildren();
  showDetails();
  draw();
}

function chooseChannel(index) {
  choose(page.torus.channels[index][0], page.torus.channels[index][1]);
}

function showDetails() {
  if (!page.torus || !page.state) return;
  fillSelects(page.torus, page.state);
  byId('table-title').textContent = titleOfTable(page.state);
  byId('order').hidden = chosen.node >= 0;
  byId('who').textContent = describe(page.torus, page.state);
  fillTable(byId('table'), page.torus, page.state, chooseChannel);
  if (Date.now() - page.history > 10000) showHistory();
}

async function showHistory() {
  const { node, port } = chosen;
  page.history = Date.now();
  try {
    const answer = await fetch(`/history?node=${node < 0 ? '' : node}&port=${port < 0 ? '' : port}`);
    if (!answer.ok) return;
    const history = await answer.json(), names = node < 0 ? ['Sent by all nodes'] : ['Sent', 'Received'];
    if (node !== chosen.node || port !== chosen.port) return;
    byId('charts').replaceChildren(...history.series.map((series, i) => chart(names[i], series, history.step)));
  } catch (e) {
    page.history = 0; // the stream says that the server is away
  }
}

// --- events ---

function onTorus(torus) {
  page.torus = prepareTorus(torus);
  page.state = null;
  if (chosen.node >= torus.node_count) [chosen.node, chosen.port] = [-1, -1];
  byId('title').textContent = `Torus ${torus.dims}`;
  byId('columns').classList.toggle('wide', torus.width > 1.6 * torus.height);
  byId('torus').style.minWidth = `${LEAST_SCALE * torus.width}px`; // narrower pages scroll it
  page.view = new TorusView(byId('torus'), page.torus);
}

function onState(state) {
  page.state = state;
  page.lost = null;
  page.heard = page.ahead === null ? Date.now() : Math.min(Date.now(), state.at + page.ahead);
  page.ahead = null;
  noteRates(page.torus, state);
  showTorus();
  showFaults();
  showRuns();
  showDetails();
}

function onEvent(name, value) {
  if (name === 'torus') onTorus(value);
  if (name === 'state' && page.torus) onState(value);
  if (name === 'doctor') { page.doctor = value; showDoctor(); }
  if (name === 'lost') page.lost = value;
  showAge();
}

byId('node').addEventListener('change', (e) => choose(Number(e.target.value), -1));
byId('port').addEventListener('change', (e) => choose(chosen.node, Number(e.target.value)));
byId('torus').addEventListener('click', (e) => {
  if (!page.view) return;
  const node = page.view.nodeAt(e), channel = node < 0 ? page.view.channelAt(e) : -1;
  if (channel >= 0) chooseChannel(channel);
  else choose(node, -1);
});
// What is below the pointer.
function pointAt(e) {
  const index = page.view && page.state ? page.view.channelAt(e) : -1;
  if (index < 0) return;
  const [node, , next, , , , port] = page.torus.channels[index], end = page.state.end[index];
  byId('pointed').textContent = `Link ${port} of ${page.state.node[node][0]} to ${page.state.node[next][0]}: `
    + (isDown(index) ? 'down.' : end ? `sends ${bitRate(end[SENT])}, receives ${bitRate(end[RECEIVED])}.` : 'not known.');
}

byId('torus').addEventListener('pointermove', pointAt);
byId('table').addEventListener('pointerenter', (e) => { order.pointed = e.pointerType === 'mouse'; });
byId('table').addEventListener('pointerleave', () => { order.pointed = false; });
byId('judge').addEventListener('click', async () => {
  byId('judge').disabled = true;
  byId('judged').textContent = 'Judging all machines ...';
  try { await fetch('/doctor'); } catch (e) { byId('judge').disabled = false; }
});
addEventListener('resize', () => { if (page.view) { page.view.resize(); draw(); } });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
setInterval(showAge, 1000);
new Stream(onEvent, (text) => { page.trouble = text; showAge(); }, (ahead) => { page.ahead = ahead; });
