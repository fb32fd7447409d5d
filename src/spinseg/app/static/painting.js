// Painting labels, boundaries and heat into pixels: whole colours as 32-bit numbers, so that a frame costs little.

export const packed = (red, green, blue, alpha = 255) => ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;

const LIGHT = packed(255, 230, 40);
const DARK = packed(20, 20, 24);
const SPIN = packed(255, 255, 255, 215);

export function packedPalette(bytes) {
  return Uint32Array.from({ length: bytes.length / 3 }, (_, i) => packed(...bytes.subarray(3 * i, 3 * i + 3)));
}

export const cssOf = (colour) => `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;

// Each site's colour, by the palette.
export const paletteColours = (labels, palette) => Uint32Array.from(labels, (label) => palette[label % palette.length]);

// Each site's colour: the mean of the picture over its cluster.
export function meanColours(labels, scene) {
  const sums = new Float64Array(4 * (largest(labels) + 1));
  for (let site = 0; site < labels.length; site++) {
    const at = 4 * labels[site];
    for (let c = 0; c < 3; c++) sums[at + c] += scene.colourSums[3 * site + c];
    sums[at + 3] += scene.areas[site];
  }
  return Uint32Array.from(labels, (label) => {
    const [red, green, blue, area] = sums.subarray(4 * label, 4 * label + 4);
    return packed(red / area, green / area, blue / area);
  });
}

export function largest(labels) {
  let found = 0;
  for (const label of labels) if (label > found) found = label;
  return found;
}

export function paintSites(pixels, sites, colours) {
  for (let i = 0; i < sites.length; i++) pixels[i] = colours[sites[i]];
}

export function paintValues(pixels, values, table) {
  for (let i = 0; i < values.length; i++) pixels[i] = table[values[i]];
}

// Both sides of every boundary, so that one of them shows on any picture.
export function paintBoundaries(pixels, scene, labels) {
  paintSide(pixels, scene, labels, scene.second, DARK);
  paintSide(pixels, scene, labels, scene.first, LIGHT);
}

export const paintSpins = (pixels, scene, spins) => paintSide(pixels, scene, spins, scene.first, SPIN);

function paintSide(pixels, { first, second, sites }, labels, side, colour) {
  for (let i = 0; i < first.length; i++) {
    if (labels[sites[first[i]]] !== labels[sites[second[i]]]) pixels[side[i]] = colour;
  }
}
