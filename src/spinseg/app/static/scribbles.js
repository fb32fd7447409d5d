// Scribbles: strokes on the image. Places under strokes of one color belong together, those of two colors apart.

import { byId, write } from "./dom.js";
import { pixelInImage } from "./painting.js";

const COLORS = ["#ffd400", "#00c8ff", "#ff5fa2", "#7dff5a", "#ff8a1f", "#b79bff"]; // as in style.css; words.py has names
const HINTS = {
  look: "Correct the result with scribbles: pick a color and draw.",
  draw: "One color joins regions, two colors in one region split it. Draw over every place that you mean.",
};

const CROSSED = "Strokes of two colors must not cross or touch. The last stroke was removed.";
const SEVERAL = 0; // colors in one site

export class Scribbles {
  // `changed` is called after each stroke; `picked` when another color, or none, was picked; `failed` with an Error.
  constructor(changed, picked, failed) {
    Object.assign(this, { changed, picked, failed });
    this.seed = 0; // the color picked, 0 for none
    // {seed, points, line, pixels, cutting}, in pixels of the displayed image: as drawn, and what follows from it.
    this.strokes = [];
    this.allowed = false;
    for (const radio of document.getElementsByName("scribble")) {
      radio.addEventListener("click", () => this.pick(Number(radio.value)));
    }
    byId("scribble-undo").addEventListener("click", () => this.replace(this.strokes.slice(0, -1)));
    byId("scribble-clear").addEventListener("click", () => this.replace([]));
    this.show();
  }

  // Shows strokes and colors, or hides them.
  allow(allowed) {
    if (allowed === this.allowed) return;
    this.allowed = allowed;
    this.show();
    this.picked();
  }

  pick(seed) {
    this.seed = seed;
    this.show();
    this.picked();
  }

  begin(place) {
    this.stroke = { seed: this.seed, points: [place] };
    this.strokes = [...this.strokes, this.stroke];
  }

  extend(place) {
    const last = this.stroke.points.at(-1);
    if (place.x !== last.x || place.y !== last.y) this.stroke.points.push(place);
  }

  // A stroke that meets one of another color is removed: superpixels there could be cut in ways that nobody means.
  end() {
    const { stroke } = this;
    stroke.line = [...pixelsAlong(stroke.points, true)];
    const pixels = new Set(stroke.line.map(keyOf));
    const others = this.strokes.filter(({ seed }) => seed !== stroke.seed);
    if (!others.some(({ line }) => line.some((place) => pixels.has(keyOf(place))))) return this.replace(this.strokes);
    this.restore(this.strokes.filter((other) => other !== stroke));
    this.failed(new Error(CROSSED));
  }

  replace(strokes) {
    this.strokes = strokes;
    this.show();
    this.changed();
  }

  // Returns to earlier strokes, after a change was refused.
  restore(strokes) {
    this.strokes = strokes;
    this.show();
    this.picked();
  }

  // Forgets all strokes, of another picture.
  forget() {
    Object.assign(this, { seed: 0, strokes: [] });
    this.show();
  }

  show() {
    for (const radio of document.getElementsByName("scribble")) radio.checked = Number(radio.value) === this.seed;
    byId("scribble-undo").disabled = byId("scribble-clear").disabled = !this.strokes.length;
    byId("scribble-row").hidden = !this.allowed;
    write(byId("scribble-hint"), HINTS[this.seed ? "draw" : "look"]);
  }

  get isDrawing() {
    return this.allowed && this.seed > 0;
  }

  get drawn() {
    return !this.allowed ? [] : this.strokes.map(({ seed, points }) => ({ color: COLORS[seed - 1], points }));
  }

  // The pixels of each seed in the image of this `shape`, one for each site that its strokes pass; null without any.
  // A site of several colors is cut along the strokes: all their pixels in it count, also once it was cut.
  seeds(siteImage, shape) {
    const siteAt = siteImage.sampledSiteAt;
    const colors = new Map();
    for (const stroke of this.strokes) {
      stroke.pixels ??= meantPixels(siteImage, stroke); // once, since outlines may change later
      for (const site of stroke.pixels.map(siteAt)) {
        colors.set(site, (colors.get(site) ?? stroke.seed) === stroke.seed ? stroke.seed : SEVERAL);
      }
    }
    const found = {};
    const known = new Set();
    const isNew = (key) => known.size < known.add(key).size;
    for (const stroke of this.strokes) {
      const { seed, line, pixels } = stroke;
      const own = new Set(pixels.map(siteAt));
      const isCut = (place) => own.has(siteAt(place)) && colors.get(siteAt(place)) === SEVERAL;
      stroke.cutting = [...(stroke.cutting ?? []), ...line.filter(isCut)];
      const isFirst = (place) => isNew(`${seed} ${siteAt(place)}`);
      for (const place of [...pixels.filter(isFirst), ...stroke.cutting]) {
        if (isNew(keyOf(place))) (found[seed] ??= []).push(pixelInImage(place, siteImage, shape));
      }
    }
    return known.size ? found : null;
  }
}

const keyOf = ({ x, y }) => `${x},${y}`;

// Of the pixels under a stroke those inside the mask that refined outlines have left in their sites. A stroke beside a
// boundary would else hold a site that is seen on its other side; if it has no other pixels, all of them count.
function meantPixels(siteImage, { points }) {
  const inside = [...pixelsAlong(points)].filter((place) => siteImage.sampledSiteAt(place) >= 0);
  const left = inside.filter((place) => siteImage.sampledSiteAt(place) === siteImage.siteAt(place));
  return left.length ? left : inside;
}

// The pixels on the lines between successive points; those of `closed` lines share sides, so that lines that cross share
// a pixel.
function* pixelsAlong(points, closed = false) {
  yield points[0];
  let last = points[0];
  for (let i = 1; i < points.length; i++) {
    const [from, to] = [points[i - 1], points[i]];
    const steps = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y));
    for (let s = 1; s <= steps; s++) {
      const between = (a, b) => Math.round(a + ((b - a) * s) / steps);
      const place = { x: between(from.x, to.x), y: between(from.y, to.y) };
      if (closed && place.x !== last.x && place.y !== last.y) yield { x: place.x, y: last.y };
      yield (last = place);
    }
  }
}
