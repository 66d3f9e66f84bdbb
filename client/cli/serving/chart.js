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

// The end of an axis: the lowest of 1, 2, 5, 10, 20 ... bits a second that is not below a rate in bytes.
function roundUp(bytes) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, bytes * 8)));
  return [1, 2, 5, 10].map((n) => (n * power) / 8).find((end) => end >= bytes * 0.999999);
}

// Numbers beside or below a chart.
function ticks(name, texts) {
  const box = element('div', undefined, name);
  box.append(...texts.map((text) => element('span', text)));
  return box;
}

// A chart of an hour, or of as much of it as is known: the mean as a line, the highest second as an area behind it.
function chart(name, series, step) {
  const figure = element('figure'), svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const first = series.peak.findIndex(known), all = series.peak.length;
  const from = Math.min(first < 0 ? all : first, all - 300 / step); // at least five minutes
  const peaks = series.peak.slice(from), means = series.mean.slice(from), points = peaks.length, most = roundUp(Math.max(...peaks));
  const y = (value) => (64 - (64 * value) / most).toFixed(1), last = means[points - 1];
  const hours = duration(points * step).replace(/ 0 (s|min)$/, ''), half = duration((points * step) / 2).replace(/ 0 (s|min)$/, '');
  const text = first < 0 ? `${name}: nothing is known yet`
    : `${name}: ${known(last) ? `${bitRate(last)} in the last ${step} seconds, ` : ''}at most ${bitRate(Math.max(...peaks))} in ${hours}`;
  svg.setAttribute('viewBox', `0 0 ${points} 64`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', text);
  [0.5, 32, 63.5].forEach((at) => svg.append(shape('grid', `M0 ${at}H${points}`)));
  pieces(peaks).forEach((part) => {
    const line = part.map(([i, v]) => `L${i} ${y(v)}L${i + 1} ${y(v)}`).join('');
    svg.append(shape('peak', `M${part[0][0]} 64${line}L${part[part.length - 1][0] + 1} 64Z`));
  });
  pieces(means).forEach((part) => svg.append(shape('mean', `M${part.map(([i, v]) => `${i} ${y(v)}L${i + 1} ${y(v)}`).join('L')}`)));
  const plot = element('div', undefined, 'plot');
  plot.append(ticks('rates', [bitRate(most), bitRate(most / 2), '0']), svg);
  figure.append(element('figcaption', text), plot, ticks('hours', [`${hours} ago`, `${half} ago`, 'now']));
  return figure;
}
