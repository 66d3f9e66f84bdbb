'use strict';
// Small things that all pages use.

const byId = (id) => document.getElementById(id);

// A time for people: "1.25 s", "84.5 ms".
function seconds(t, digits = 4) {
  if (t >= 1) return `${+t.toPrecision(digits)} s`;
  return t >= 1e-3 ? `${+(t * 1e3).toPrecision(digits)} ms` : `${+(t * 1e6).toPrecision(Math.min(digits, 3))} µs`;
}
