'use strict';
// What is chosen: a node, one of its links, or nothing. Tables keep their rows while numbers change, so that the keyboard
// keeps its place.

const ROWS = 10; // of the busiest links
const HOLD_MS = 5000; // time for which the busiest links keep their order
const order = { torus: null, channels: [], sums: [], at: 0, pointed: false };
const chosen = { node: -1, port: -1 };
const [UP, SENT, RECEIVED, QUEUE, UNACKED, RESENT, RESENDING, RTT, MTU, STATE, REASON, INTERFACE] = Array.from({ length: 12 }, (_, i) => i);

function channelsOf(torus, node) {
  return torus.channels.map((_, i) => i).filter((i) => torus.channels[i][0] === node);
}

const COLUMNS = [
  ['port', (t, s, i) => t.channels[i][6], 'text'],
  ['sent', (t, s, i) => bitRate(s.end[i] && s.end[i][SENT])], // first: a telephone shows no more
  ['received', (t, s, i) => bitRate(s.end[i] && s.end[i][RECEIVED])],
  ['state', (t, s, i) => (s.end[i] ? (s.end[i][UP] ? 'up' : s.end[i][STATE]) : 'not known'), 'text'],
  ['to', (t, s, i) => s.node[t.channels[i][2]][0], 'text'],
  ['waiting', (t, s, i) => byteCount(s.end[i] && s.end[i][QUEUE])],
  ['unacknowledged', (t, s, i) => byteCount(s.end[i] && s.end[i][UNACKED])],
  ['packets sent again', (t, s, i) => (s.end[i] ? `${s.end[i][RESENT]}${s.end[i][RESENDING] > 0 ? ` (${s.end[i][RESENDING]}/s)` : ''}` : '-')],
  ['round trip', (t, s, i) => micros(s.end[i] && s.end[i][RTT])],
  ['MTU', (t, s, i) => (s.end[i] && known(s.end[i][MTU]) ? s.end[i][MTU] : '-')],
];

function makeTable(rows, choose) {
  const table = element('table'), head = element('tr'), body = element('tbody');
  head.append(element('th', 'node', 'text'), ...COLUMNS.map(([name, , kind]) => element('th', name, kind || '')));
  for (let r = 0; r < rows; r++) {
    const row = element('tr'), first = element('td', undefined, 'text'), button = element('button');
    button.type = 'button';
    button.addEventListener('click', () => choose(Number(row.dataset.channel)));
    first.append(button);
    row.append(first, ...COLUMNS.map(([, , kind]) => element('td', '', kind || '')));
    body.append(row);
  }
  const top = element('thead');
  top.append(head);
  table.append(top, body);
  return table;
}

// Adds up what each channel sends until the next order.
function noteRates(torus, state) {
  if (order.torus !== torus) [order.torus, order.at, order.sums] = [torus, 0, torus.channels.map(() => 0)];
  state.end.forEach((end, i) => { order.sums[i] += (end && end[SENT]) || 0; });
}

// The links that carried most since the last order. It changes only every few seconds, and not while somebody points at the
// table or is in it with the keyboard.
function busiestChannels(box) {
  const held = order.pointed || box.contains(document.activeElement);
  if (order.at === 0 || (!held && Date.now() - order.at >= HOLD_MS)) {
    order.channels = order.sums.map((_, i) => i).sort((a, b) => order.sums[b] - order.sums[a] || a - b).slice(0, ROWS);
    order.at = order.sums.some((sum) => sum > 0) ? Date.now() : 0; // until rates are known, the order means nothing
    order.sums.fill(0);
  }
  return order.channels;
}

// Which channels the table shows.
function shownChannels(torus, box) {
  if (chosen.node < 0) return busiestChannels(box);
  const all = channelsOf(torus, chosen.node);
  if (chosen.port < 0) return all;
  const one = channelOf(torus, chosen.node, chosen.port);
  return one === undefined ? [] : [one, torus.opposite[one]];
}

function fillTable(box, torus, state, choose) {
  const channels = shownChannels(torus, box);
  if (!box.firstChild || box.firstChild.tBodies[0].rows.length !== channels.length) box.replaceChildren(makeTable(channels.length, choose));
  channels.forEach((channel, r) => {
    const row = box.firstChild.tBodies[0].rows[r], name = state.node[torus.channels[channel][0]][0];
    row.dataset.channel = channel;
    row.cells[0].firstChild.textContent = name;
    row.cells[0].firstChild.setAttribute('aria-label', `Show the link ${torus.channels[channel][6]} of ${name}`);
    COLUMNS.forEach(([, text], c) => { row.cells[c + 1].textContent = text(torus, state, channel); });
    row.className = state.end[channel] && !state.end[channel][UP] ? 'down' : '';
  });
}

function titleOfTable(state) {
  if (chosen.node < 0) return 'Links that carry most';
  return chosen.port < 0 ? `Links of ${state.node[chosen.node][0]}` : `Both directions of the link of ${state.node[chosen.node][0]}`;
}

// A sentence about what is chosen.
function describe(torus, state) {
  if (chosen.node < 0) return 'Choose a node or a link here, in the torus, or in the table.';
  const [name, missing, version, used, budget, seconds] = state.node[chosen.node];
  const what = `${name}: node ${chosen.node}, ${torus.coordinates[chosen.node]}`;
  if (missing) return `${what}. It ${missing}.`;
  const channel = chosen.port < 0 ? undefined : channelOf(torus, chosen.node, chosen.port), end = channel === undefined ? null : state.end[channel];
  if (end) return `${what}. The link is ${end[UP] ? 'up' : end[STATE]}${end[INTERFACE] ? `, on ${end[INTERFACE]}` : ''}${end[REASON] ? `: ${end[REASON]}` : ''}.`;
  return `${what}, torusd ${version}, up for ${duration(seconds)}, ${byteCount(used)} of ${byteCount(budget)} of its memory in use.`;
}

// Fills a list of choices, if it has changed.
function fillChoices(select, texts, value) {
  const all = JSON.stringify(texts);
  if (select.dataset.all !== all) {
    select.dataset.all = all;
    select.replaceChildren(...texts.map(([key, text]) => {
      const option = element('option', text);
      option.value = key;
      return option;
    }));
  }
  select.value = value;
}

function fillSelects(torus, state) {
  fillChoices(document.getElementById('node'), [[-1, 'all nodes'], ...state.node.map(([name], rank) => [rank, name.includes(`node ${rank}`) ? name : `${name} (${rank})`])],
    chosen.node);
  const ports = chosen.node < 0 ? [] : channelsOf(torus, chosen.node).map((i) => [torus.channels[i][1], `${torus.channels[i][6]} to ${state.node[torus.channels[i][2]][0]}`]);
  fillChoices(document.getElementById('port'), [[-1, 'all links'], ...ports], chosen.port);
  document.getElementById('port').disabled = chosen.node < 0;
}
