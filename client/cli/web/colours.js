'use strict';
// A colour for each node: the hue follows its last dimension, the lightness the one before it.

function colourOfNode(torus, rank, alpha) {
  const at = torus.coordinates[rank].slice(1, -1).split(',').map(Number);
  const sizes = torus.sizes;
  const long = sizes.map((_, i) => i).filter((i) => sizes[i] > 1);
  const last = long.length > 0 ? long[long.length - 1] : 0;
  const before = long.length > 1 ? long[long.length - 2] : -1;
  const hue = (360 * at[last]) / sizes[last];
  const share = before >= 0 && sizes[before] > 1 ? at[before] / (sizes[before] - 1) : 0.5;
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const lightness = dark ? 45 + 30 * share : 35 + 30 * share;
  return `hsla(${hue.toFixed(0)}, 72%, ${lightness.toFixed(0)}%, ${alpha === undefined ? 1 : alpha})`;
}

// A colour of the page's style sheet: themeColour('link').
function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
