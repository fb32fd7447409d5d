// Scribbles: strokes on the image. Places under strokes of one color belong together, those of two colors apart.

import { byId, write } from "./dom.js";
import { pixelInImage } from "./painting.js";

const COLORS = ["#ffd400", "#00c8ff", "#ff5fa2", "#7dff5a", "#ff8a1f", "#b79bff"]; // as in style.css; words.py has names
const HINTS = {
  look: "Correct the result with scribbles: pick a color and draw.",
  draw: "One color joins regions, two colors in one region split it. Draw over every place that you mean.",
};

export class Scribbles {
  // `changed` is called after each stroke; `picked` when another color, or none, was picked.
  constructor(changed, picked) {
    this.changed = changed;
    this.picked = picked;
    this.seed = 0; // the color picked, 0 for none
    this.strokes = []; // {seed, points, pixels}, in pixels of the displayed image; the last two are as drawn and as meant
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

  end() {
    this.show();
    this.changed();
  }

  replace(strokes) {
    this.strokes = strokes;
    this.end();
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
  seeds(siteImage, shape) {
    const found = {};
    const known = new Set();
    for (const stroke of this.strokes) {
      const { seed } = stroke;
      stroke.pixels ??= meantPixels(siteImage, stroke); // once, since outlines may change later
      for (const place of stroke.pixels) {
        const key = `${seed} ${siteImage.sampledSiteAt(place)}`;
        if (known.has(key)) continue;
        known.add(key);
        (found[seed] ??= []).push(pixelInImage(place, siteImage, shape));
      }
    }
    return known.size ? found : null;
  }
}

// Of the pixels under a stroke those inside the mask that refined outlines have left in their sites. A stroke beside a
// boundary would else hold a site that is seen on its other side; if it has no other pixels, all of them count.
function meantPixels(siteImage, { points }) {
  const inside = [...pixelsAlong(points)].filter((place) => siteImage.sampledSiteAt(place) >= 0);
  const left = inside.filter((place) => siteImage.sampledSiteAt(place) === siteImage.siteAt(place));
  return left.length ? left : inside;
}

// The pixels on the lines between successive points.
function* pixelsAlong(points) {
  yield points[0];
  for (let i = 1; i < points.length; i++) {
    const [from, to] = [points[i - 1], points[i]];
    const steps = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y));
    for (let s = 1; s <= steps; s++) {
      const between = (a, b) => Math.round(a + ((b - a) * s) / steps);
      yield { x: between(from.x, to.x), y: between(from.y, to.y) };
    }
  }
}
