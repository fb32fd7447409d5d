// What the large canvas shows: the picture, a layer of fill, one of lines, and marks; drawn when something changed.

import { HEAT_OF_LINES, HEAT_OF_SITES } from "./heat.js";
import { meanColours, paintBoundaries, paintSites, paintSpins, paintValues, paletteColours } from "./painting.js";

const CRISP = 3; // device pixels for a pixel of the picture from which on pixels are shown as squares

export class Stage {
  constructor(canvas, view, palette) {
    this.canvas = canvas;
    this.view = view;
    this.palette = palette;
    this.context = canvas.getContext("2d");
    this.marks = [];
  }

  setScene(scene) {
    this.scene = scene;
    this.fill = new Layer(scene);
    this.lines = new Layer(scene);
  }

  // `shown`: ground "picture" or "grey"; fill {kind, data} or null; opacity; boundaries and spins: labels or null.
  show(shown) {
    this.shown = shown;
    this.refresh();
  }

  refresh() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      if (this.scene && this.shown) this.draw();
    });
  }

  draw() {
    const { context, canvas, scene, shown, view } = this;
    this.paint();
    const density = devicePixelRatio;
    const width = Math.round(canvas.clientWidth * density);
    const height = Math.round(canvas.clientHeight * density);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    const zoom = view.scale * density;
    context.setTransform(zoom, 0, 0, zoom, view.x * density, view.y * density);
    context.imageSmoothingEnabled = zoom < CRISP;
    context.imageSmoothingQuality = "high";
    context.drawImage(shown.ground === "grey" ? scene.grey : scene.picture, 0, 0);
    context.globalAlpha = shown.opacity;
    if (shown.fill) context.drawImage(this.fill.canvas, 0, 0);
    if (shown.fill) context.globalAlpha = 1;
    if (shown.boundaries || shown.spins) context.drawImage(this.lines.canvas, 0, 0);
    context.globalAlpha = 1;
    context.setTransform(density, 0, 0, density, 0, 0);
    for (const { place, kind } of this.marks) drawMark(context, view.onCanvas(place), kind);
  }

  paint() {
    const { scene, shown, palette } = this;
    const painters = {
      labels: (pixels, labels) => paintSites(pixels, scene.sites, paletteColours(labels, palette)),
      means: (pixels, labels) => paintSites(pixels, scene.sites, meanColours(labels, scene)),
      together: (pixels, values) => paintSites(pixels, scene.sites, heatColours(values)),
      lines: (pixels, values) => paintValues(pixels, values, HEAT_OF_LINES),
    };
    if (shown.fill) {
      const { kind, data } = shown.fill;
      this.fill.hold([kind, data], (pixels) => painters[kind](pixels, data));
    }
    this.lines.hold([shown.boundaries, shown.spins], (pixels) => {
      pixels.fill(0);
      if (shown.spins) paintSpins(pixels, scene, shown.spins);
      if (shown.boundaries) paintBoundaries(pixels, scene, shown.boundaries);
    });
  }
}

// Pixels that are painted anew when what they hold is another thing.
class Layer {
  constructor({ width, height }) {
    this.canvas = document.createElement("canvas");
    Object.assign(this.canvas, { width, height });
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.held = [];
  }

  hold(things, paint) {
    if (things.every((thing, i) => thing === this.held[i])) return;
    this.held = things;
    paint(this.pixels);
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
  }
}

const heatColours = (values) => Uint32Array.from(values, (value) => HEAT_OF_SITES[value]);

function drawMark(context, { x, y }, kind) {
  for (const [colour, width] of [["#000", 5], ["#fff", 2]]) {
    context.strokeStyle = colour;
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
