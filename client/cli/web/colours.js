'use strict';
// A colour for each node: the hue follows its last dimensions, the lightness those before them, so that there are not
// fewer hues than shades. With too many nodes colours could not be told from each other: all have the same one.

const MOST_COLOURS = 256;

const hasColours = (torus) => torus.node_count <= MOST_COLOURS;

// How many dimensions at the end have hues.
function huesOf(sizes) {
  for (let count = 1; count < sizes.length; count++) {
    const product = (list) => list.reduce((n, size) => n * size, 1);
    if (product(sizes.slice(-count)) >= product(sizes.slice(0, -count))) return count;
  }
  return sizes.length;
}

function colourOfNode(torus, rank, alpha = 1) {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  if (!hasColours(torus)) return `hsla(210, 72%, ${dark ? 65 : 45}%, ${alpha})`;
  const at = torus.coordinates[rank].slice(1, -1).split(',').map(Number), { sizes } = torus, first = sizes.length - huesOf(sizes);
  const place = (from, to) => { // of the node among those of some dimensions
    let index = 0, count = 1;
    for (let i = from; i < to; i++) [index, count] = [index * sizes[i] + at[i], count * sizes[i]];
    return [index, count];
  };
  const [hue, hues] = place(first, sizes.length), [shade, shades] = place(0, first);
  const share = shades > 1 ? shade / (shades - 1) : 0.5;
  return `hsla(${((360 * hue) / hues).toFixed(1)}, 72%, ${((dark ? 45 : 35) + 30 * share).toFixed(1)}%, ${alpha})`;
}

// A colour of the page's style sheet: themeColour('link').
function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
