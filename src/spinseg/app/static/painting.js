// Painting: colors of sites, boundaries and probability maps, and the canvas that shows them.

// A color as the 32-bit number that it is in ImageData: one assignment for a pixel.
const packed = (red, green, blue, alpha = 255) => ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;

// The two sides of outlines, which the server gives; beside spin-clusters, which are white, one of them is yellow.
let outlineDark, outlineLight;
const BOUNDARY_LIGHT = packed(255, 230, 40);
const SPIN_CLUSTER = packed(255, 255, 255, 215);

export function setOutlineColors([, dark, light]) {
  outlineDark = packed(...dark);
  outlineLight = packed(...light);
}

export function packedPalette(bytes) {
  return Uint32Array.from({ length: bytes.length / 3 }, (_, i) => packed(...bytes.subarray(3 * i, 3 * i + 3)));
}

export const cssOf = (color) => `rgb(${color & 255} ${(color >> 8) & 255} ${(color >> 16) & 255})`;

// The color of each site, by its label.
export const paletteColors = (labels, palette) => Uint32Array.from(labels, (label) => palette[label % palette.length]);

// The color of each site: the mean of the picture over its cluster.
function meanColors(labels, siteImage) {
  const sums = new Float64Array(4 * (largest(labels) + 1));
  for (let site = 0; site < labels.length; site++) {
    const at = 4 * labels[site];
    for (let c = 0; c < 3; c++) sums[at + c] += siteImage.colorSums[3 * site + c];
    sums[at + 3] += siteImage.areas[site];
  }
  return Uint32Array.from(labels, (label) => {
    const [red, green, blue, area] = sums.subarray(4 * label, 4 * label + 4);
    return packed(red / area, green / area, blue / area);
  });
}

function largest(labels) {
  let found = 0;
  for (const label of labels) if (label > found) found = label;
  return found;
}

export function paintSites(pixels, sites, colors) {
  for (let i = 0; i < sites.length; i++) pixels[i] = colors[sites[i]];
}

function paintValues(pixels, values, table) {
  for (let i = 0; i < values.length; i++) pixels[i] = table[values[i]];
}

// Paints one side of each boundary dark and the other light, so that one of them is visible on any picture.
function paintBoundaries(pixels, siteImage, labels, light) {
  paintSide(pixels, siteImage, labels, siteImage.second, outlineDark);
  paintSide(pixels, siteImage, labels, siteImage.first, light);
}

const paintSpins = (pixels, siteImage, spins) => paintSide(pixels, siteImage, spins, siteImage.first, SPIN_CLUSTER);

function paintSide(pixels, { first, second, sites }, labels, side, color) {
  for (let i = 0; i < first.length; i++) {
    if (labels[sites[first[i]]] !== labels[sites[second[i]]]) pixels[side[i]] = color;
  }
}

// The color scale of probability maps, magma, which is perceptually uniform.

const STOPS = [
  [0, 0, 4], [28, 16, 68], [79, 18, 123], [129, 37, 129], [181, 54, 122],
  [229, 80, 100], [251, 135, 97], [254, 194, 135], [252, 253, 191],
];

function mapColor(value) {
  const place = (value / 255) * (STOPS.length - 1);
  const below = Math.min(Math.floor(place), STOPS.length - 2);
  return STOPS[below].map((from, i) => Math.round(from + (place - below) * (STOPS[below + 1][i] - from)));
}

const colorTable = (opacity, place = (value) => value) =>
  Uint32Array.from({ length: 256 }, (_, value) => packed(...mapColor(place(value)), Math.round(opacity(value))));

// Low probabilities let the picture show through a little, for orientation.
const SITE_MAP_COLORS = colorTable((value) => 140 + 115 * Math.min(1, value / 80));
// The brighter and the more opaque, the more probable a boundary is, as in the report (`graded_boundaries`).
const BOUNDARY_MAP_COLORS = colorTable(
  (value) => 255 * Math.min(1, 0.35 + (0.65 * value) / 102) * Math.min(1, value / 12.75),
  (value) => 102 + 0.6 * value,
);

// The colors of a map over a gray ground, from 0 to 1; the ground is that of the canvas.
export function drawLegend(canvas, kind) {
  const image = new ImageData(256, 1);
  new Uint32Array(image.data.buffer).set(kind === "lines" ? BOUNDARY_MAP_COLORS : SITE_MAP_COLORS);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// The displayed image and, as soon as there are any, its sites, with all that painting needs of them, computed once.
// `sampledSites` are those of the chains, and `sites` the same with refined outlines.
export class SiteImage {
  constructor(bitmap) {
    this.width = bitmap.width;
    this.height = bitmap.height;
    this.nSites = 0;
    this.picture = document.createElement("canvas");
    this.picture.width = this.width;
    this.picture.height = this.height;
    const context = this.picture.getContext("2d");
    context.drawImage(bitmap, 0, 0);
    bitmap.close(); // the garbage collector does not free its memory soon
    this.data = context.getImageData(0, 0, this.width, this.height).data;
    this.gray = this.dimmedGray();
  }

  setSites(sites) {
    this.sampledSites = sites;
    this.nSites = largest(sites) + 1;
    this.setOutlines(sites);
  }

  setOutlines(sites) {
    this.sites = sites;
    this.sumSites();
    this.findPairs();
  }

  siteAt = ({ x, y }) => this.sites[y * this.width + x];
  sampledSiteAt = ({ x, y }) => this.sampledSites[y * this.width + x];

  // The background of maps.
  dimmedGray() {
    const { data } = this;
    const canvas = this.picture.cloneNode();
    const image = new ImageData(this.width, this.height);
    for (let i = 0; i < data.length; i += 4) {
      image.data.fill(0.4 * (0.3 * data[i] + 0.59 * data[i + 1] + 0.11 * data[i + 2]), i, i + 3);
      image.data[i + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  // Sums pixels and colors over each site.
  sumSites() {
    this.areas = new Uint32Array(this.nSites);
    this.colorSums = new Float64Array(3 * this.nSites);
    for (let i = 0; i < this.sites.length; i++) {
      const site = this.sites[i];
      this.areas[site]++;
      for (let c = 0; c < 3; c++) this.colorSums[3 * site + c] += this.data[4 * i + c];
    }
  }

  // Finds neighboring pixels of different sites: boundaries are only between them.
  findPairs() {
    const { sites, width } = this;
    const first = [];
    const second = [];
    const compare = (one, other) => {
      if (sites[one] === sites[other]) return;
      first.push(one);
      second.push(other);
    };
    for (let i = 0; i < sites.length; i++) {
      if ((i + 1) % width) compare(i, i + 1);
      if (i + width < sites.length) compare(i, i + width);
    }
    this.first = Int32Array.from(first);
    this.second = Int32Array.from(second);
  }

  // The number of pixels of each label, and its place among them, 1 for the largest; computed once for the same labels.
  sizesOf(labels) {
    if (this.sized?.labels === labels && this.sized.sites === this.sites) return this.sized;
    const areas = new Float64Array(largest(labels) + 1);
    for (let site = 0; site < labels.length; site++) areas[labels[site]] += this.areas[site];
    const ranks = new Map([...areas.keys()].sort((a, b) => areas[b] - areas[a]).map((label, i) => [label, i + 1]));
    const total = areas.reduce((sum, area) => sum + area, 0);
    return (this.sized = { labels, sites: this.sites, areas, ranks, total });
  }

  // The image with the outlines of these labels, as a canvas.
  outlined(labels) {
    const layer = new Layer(this);
    layer.update([labels], (pixels) => paintBoundaries(pixels, this, labels, outlineLight));
    const context = layer.canvas.getContext("2d");
    context.globalCompositeOperation = "destination-over";
    context.drawImage(this.picture, 0, 0);
    return layer.canvas;
  }

  // The sites in a small picture, by nearest neighbor; `size` is its longer side.
  thumbnail(size) {
    const shrink = Math.max(1, Math.max(this.width, this.height) / size);
    const width = Math.max(1, Math.round(this.width / shrink));
    const height = Math.max(1, Math.round(this.height / shrink));
    const sites = new Int32Array(width * height);
    for (let y = 0; y < height; y++) {
      const row = Math.floor(((y + 0.5) * this.height) / height) * this.width;
      for (let x = 0; x < width; x++) {
        sites[y * width + x] = this.sites[row + Math.floor(((x + 0.5) * this.width) / width)];
      }
    }
    return { width, height, sites };
  }
}

// The pixel [row, column] in the image of this `shape` that a pixel of the displayed image stands for.
export function pixelInImage({ x, y }, siteImage, shape) {
  const step = Math.ceil(shape[0] / siteImage.height);
  const inImage = (at, size) => Math.min(at * step + (step >> 1), size - 1);
  return [inImage(y, shape[0]), inImage(x, shape[1])];
}

const PLAIN = { background: "picture", fill: null, opacity: 1, boundaries: null, spins: null };
const DIMMED = 0.4; // opacity of outlines that are out of date
const MIN_SQUARE_PIXELS = 3; // device pixels for a pixel of the picture; from there on it is not smoothed

// The canvas of the large picture, which shows a background, a layer of fill, one of lines, and marks.
export class PictureCanvas {
  constructor(canvas, viewport, palette) {
    this.canvas = canvas;
    this.viewport = viewport;
    this.palette = palette;
    this.context = canvas.getContext("2d");
    this.marks = [];
    this.strokes = []; // {color, points}
  }

  setSiteImage(siteImage) {
    this.siteImage = siteImage;
    this.fill = new Layer(siteImage);
    this.lines = new Layer(siteImage);
    this.show(PLAIN);
  }

  // `layers`: background "picture" or "gray"; fill {kind, data} or null; opacity; boundaries and spins: labels or null.
  show(layers) {
    Object.assign(this, { layers, dimmed: false });
    this.paint();
    this.refresh();
  }

  // Fades what was painted last, of which the labels may be out of date.
  dim() {
    this.dimmed = true;
    this.refresh();
  }

  // Sites have other pixels now.
  repaint() {
    this.fill.content = this.lines.content = [];
    if (!this.dimmed) this.show(this.layers);
  }

  refresh() {
    this.requested ??= requestAnimationFrame(() => {
      this.requested = null;
      if (this.siteImage && this.layers) this.draw();
    });
  }

  draw() {
    const { context, canvas, siteImage, layers, viewport } = this;
    const strength = this.dimmed ? DIMMED : 1;
    const density = devicePixelRatio;
    const width = Math.round(canvas.clientWidth * density);
    const height = Math.round(canvas.clientHeight * density);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    const zoom = viewport.scale * density;
    context.setTransform(zoom, 0, 0, zoom, viewport.x * density, viewport.y * density);
    context.imageSmoothingEnabled = zoom < MIN_SQUARE_PIXELS;
    context.imageSmoothingQuality = "high";
    context.drawImage(layers.background === "gray" ? siteImage.gray : siteImage.picture, 0, 0);
    context.globalAlpha = strength * layers.opacity;
    if (layers.fill) context.drawImage(this.fill.canvas, 0, 0);
    if (layers.fill) context.globalAlpha = strength;
    if (layers.boundaries || layers.spins) context.drawImage(this.lines.canvas, 0, 0);
    context.globalAlpha = 1;
    context.setTransform(density, 0, 0, density, 0, 0);
    for (const stroke of this.strokes) drawStroke(context, stroke, viewport);
    for (const { place, kind } of this.marks) drawMark(context, viewport.toCanvas(place), kind);
  }

  paint() {
    const { siteImage, layers, palette } = this;
    const painters = {
      labels: (pixels, labels) => paintSites(pixels, siteImage.sites, paletteColors(labels, palette)),
      means: (pixels, labels) => paintSites(pixels, siteImage.sites, meanColors(labels, siteImage)),
      together: (pixels, values) => paintSites(pixels, siteImage.sites, siteMapColors(values)),
      lines: (pixels, values) => paintValues(pixels, values, BOUNDARY_MAP_COLORS),
    };
    if (layers.fill) {
      const { kind, data } = layers.fill;
      this.fill.update([kind, data], (pixels) => painters[kind](pixels, data));
    }
    this.lines.update([layers.boundaries, layers.spins], (pixels) => {
      pixels.fill(0);
      if (layers.spins) paintSpins(pixels, siteImage, layers.spins);
      const light = layers.spins ? BOUNDARY_LIGHT : outlineLight;
      if (layers.boundaries) paintBoundaries(pixels, siteImage, layers.boundaries, light);
    });
  }
}

// Pixels that are painted again only if their content has changed.
class Layer {
  constructor({ width, height }) {
    this.canvas = document.createElement("canvas");
    Object.assign(this.canvas, { width, height });
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.content = [];
  }

  update(content, paint) {
    if (content.every((part, i) => part === this.content[i])) return;
    this.content = content;
    paint(this.pixels);
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
  }
}

const siteMapColors = (values) => Uint32Array.from(values, (value) => SITE_MAP_COLORS[value]);

function drawStroke(context, { color, points }, viewport) {
  context.lineCap = context.lineJoin = "round";
  for (const [style, width] of [["#000", 6], [color, 4]]) {
    context.strokeStyle = style;
    context.lineWidth = width;
    context.beginPath();
    for (const point of [points[0], ...points]) {
      const { x, y } = viewport.toCanvas(point);
      if (point === points[0]) context.moveTo(x, y);
      context.lineTo(x + (points.length === 1 ? 0.01 : 0), y); // a line of no length is not drawn
    }
    context.stroke();
  }
}

function drawMark(context, { x, y }, kind) {
  for (const [color, width] of [["#000", 5], ["#fff", 2]]) {
    context.strokeStyle = color;
    context.lineWidth = width;
    context.beginPath();
    if (kind === "chosen") context.arc(x, y, 8, 0, 2 * Math.PI);
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 4 * dx, y + 4 * dy);
      context.lineTo(x + 14 * dx, y + 14 * dy);
    }
    context.stroke();
  }
}
