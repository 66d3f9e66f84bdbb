'use strict';
// Draws a torus on a canvas: frames, links and nodes, and where things on a channel are. `torus` is what torus_json()
// (page.h) describes.

const STRAIGHT = 0, WRAPS = 1; // other channels lead to another frame
const NODE_RADIUS = 15;
const ASIDE = 5; // of a channel from the middle of its link, to the right in its direction

const LEAST_READABLE = 0.45; // scale of a drawing
const SPREAD = 1.5; // pages have larger nodes than pictures

function prepareTorus(torus) {
  ['width', 'height', 'margin'].forEach((key) => { torus[key] *= SPREAD; });
  torus.place = torus.place.map(([x, y]) => [x * SPREAD, y * SPREAD]);
  torus.frames = torus.frames.map(([x, y, width, height, name]) => [x * SPREAD, y * SPREAD, width * SPREAD, height * SPREAD, name]);
  torus.sizes = torus.coordinates[torus.node_count - 1].slice(1, -1).split(',').map((n) => Number(n) + 1);
  torus.channelAt = new Map();
  torus.channels.forEach((c, i) => torus.channelAt.set(c[0] * 64 + c[1], i));
  return torus;
}

// The channel by which a node sends at a port; undefined: there is none.
function channelOf(torus, node, port) {
  return torus.channelAt.get(node * 64 + port);
}

// The point at a part (0 to 1) of a channel. What wraps leaves the frame, and comes in on the other side.
function pointOnChannel(torus, index, part) {
  const [node, , next, shape, dx, dy] = torus.channels[index];
  const [x0, y0] = torus.place[node], [x1, y1] = torus.place[next];
  if (shape !== STRAIGHT) {
    const far = shape === WRAPS ? torus.margin - 4 : 2.4 * NODE_RADIUS, ox = -dy * ASIDE, oy = dx * ASIDE;
    if (part < 0.5) return [x0 + dx * far * 2 * part + ox, y0 + dy * far * 2 * part + oy];
    return [x1 - dx * far * 2 * (1 - part) + ox, y1 - dy * far * 2 * (1 - part) + oy];
  }
  const length = Math.hypot(x1 - x0, y1 - y0) || 1;
  const ux = (x1 - x0) / length, uy = (y1 - y0) / length;
  return [x0 + (x1 - x0) * part - uy * ASIDE, y0 + (y1 - y0) * part + ux * ASIDE];
}

class TorusView {
  constructor(canvas, torus) {
    this.canvas = canvas;
    this.torus = torus;
    this.resize();
  }

  // Fits the drawing to the width that the canvas has on the page and, unless it could not be read then, to a height; 0: to
  // a part of the window's.
  resize(room = 0) {
    const wide = this.canvas.clientWidth || this.torus.width;
    const most = room > 0 ? Math.max(LEAST_READABLE, room / this.torus.height)
      : Math.max(1, Math.min(2.2, (window.innerHeight * 0.8) / this.torus.height));
    this.scale = Math.min(wide / this.torus.width, most);
    this.left = (wide - this.torus.width * this.scale) / 2;
    const high = Math.ceil(this.torus.height * this.scale);
    const dense = window.devicePixelRatio || 1;
    this.canvas.style.height = `${high}px`;
    this.canvas.width = Math.round(wide * dense);
    this.canvas.height = Math.round(high * dense);
    this.dense = dense;
  }

  begin() {
    const g = this.canvas.getContext('2d');
    g.setTransform(this.dense, 0, 0, this.dense, 0, 0);
    g.clearRect(0, 0, this.canvas.width, this.canvas.height);
    g.translate(this.left, 0);
    g.scale(this.scale, this.scale);
    g.lineCap = 'round';
    return g;
  }

  frames(g) {
    for (const [x, y, width, height, name] of this.torus.frames) {
      g.fillStyle = themeColour('frame');
      g.strokeStyle = themeColour('line');
      g.lineWidth = 1;
      g.fillRect(x, y, width, height);
      g.strokeRect(x, y, width, height);
      if (name) {
        g.fillStyle = themeColour('quiet');
        g.font = '11px sans-serif';
        g.textAlign = 'left';
        g.fillText(name, x, y - 4);
      }
    }
  }

  // Draws a channel as a line: { colour, width, dash }.
  channel(g, index, how) {
    const broken = this.torus.channels[index][3] !== STRAIGHT;
    g.strokeStyle = how.colour;
    g.lineWidth = how.width;
    g.setLineDash(how.dash || []);
    g.beginPath();
    for (let i = 0; i <= 12; i++) {
      const part = i / 12;
      if (broken && i === 6) continue;
      const [x, y] = pointOnChannel(this.torus, index, part);
      if (i === 0 || (broken && i === 7)) g.moveTo(x, y);
      else g.lineTo(x, y);
    }
    g.stroke();
    g.setLineDash([]);
  }

  // The node at a place of the page, from a mouse event; -1: none.
  nodeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.left) / this.scale, y = (event.clientY - box.top) / this.scale;
    let best = -1, least = NODE_RADIUS * 1.6;
    this.torus.place.forEach(([px, py], rank) => {
      const far = Math.hypot(px - x, py - y);
      if (far < least) [best, least] = [rank, far];
    });
    return best;
  }
  // The channel at a place of the page, from a mouse event; -1: none.
  channelAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.left) / this.scale, y = (event.clientY - box.top) / this.scale;
    let best = -1, least = 2.2 * ASIDE;
    this.torus.channels.forEach((_, index) => {
      for (let part = 0; part <= 1; part += 1 / 16) {
        const [px, py] = pointOnChannel(this.torus, index, part), far = Math.hypot(px - x, py - y);
        if (far < least) [best, least] = [index, far];
      }
    });
    return best;
  }
}
