'use strict';
// Texts of numbers, and small charts of the last hour.

function element(tag, text, name) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  return e;
}

function scaled(value, base, units) {
  let i = 0;
  while (value >= 999.5 && i + 1 < units.length) { value /= base; i++; }
  return `${value >= 100 || i === 0 ? value.toFixed(0) : value.toFixed(1)} ${units[i]}`;
}

const known = (value) => value !== null && value !== undefined;
const bitRate = (bytes) => (known(bytes) ? scaled(bytes * 8, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']) : '-');
const byteCount = (bytes) => (known(bytes) ? scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']) : '-');
const byteRate = (bytes) => (known(bytes) ? `${byteCount(bytes)}/s` : '-');
const micros = (us) => (known(us) ? (us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(1)} ms`) : '-');

function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

const timeOfDay = (ms) => new Date(ms).toLocaleTimeString();

function shape(name, data) {
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('class', name);
  path.setAttribute('d', data);
  return path;
}

// Parts of a list without unknown points: [[[index, value], ...], ...].
function pieces(list) {
  const all = [];
  list.forEach((value, i) => {
    if (value === null) return;
    if (i === 0 || list[i - 1] === null) all.push([]);
    all[all.length - 1].push([i, value]);
  });
  return all;
}

// A chart of an hour, or of as much of it as is known: the mean as a line, the highest second as an area behind it.
function chart(name, series, step) {
  const figure = element('figure'), svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const first = series.peak.findIndex(known), all = series.peak.length;
  const from = Math.min(first < 0 ? all : first, all - 300 / step); // at least five minutes
  const peaks = series.peak.slice(from), means = series.mean.slice(from), points = peaks.length, most = Math.max(1, ...peaks);
  const y = (value) => (62 - (58 * value) / most).toFixed(1), last = means[points - 1];
  const hours = duration(points * step).replace(/ 0 (s|min)$/, '');
  const text = first < 0 ? `${name}: nothing is known yet`
    : `${name}: ${known(last) ? `${bitRate(last)} in the last ${step} seconds, ` : ''}at most ${bitRate(Math.max(...peaks))} in ${hours}`;
  svg.setAttribute('viewBox', `0 0 ${points} 64`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', text);
  pieces(peaks).forEach((part) => {
    const line = part.map(([i, v]) => `L${i} ${y(v)}L${i + 1} ${y(v)}`).join('');
    svg.append(shape('peak', `M${part[0][0]} 64${line}L${part[part.length - 1][0] + 1} 64Z`));
  });
  pieces(means).forEach((part) => svg.append(shape('mean', `M${part.map(([i, v]) => `${i} ${y(v)}L${i + 1} ${y(v)}`).join('L')}`)));
  const axis = element('div', undefined, 'hours');
  axis.append(element('span', `${hours} ago`), element('span', 'now'));
  figure.append(element('figcaption', text), svg, axis);
  return figure;
}
