// What is displayed: the display options, the layers of the picture, and its captions.

import { byId, byPointer, counted, percent, significant } from "./dom.js";

export const VIEWS = ["outlines", "fill", "means", "picture"];
export const OPTION_FLAGS = { result: true, spins: false, boundaries: false }; // and their defaults
const OPACITIES = { fill: 45, outlines: 100, means: 100, picture: 100, map: 90 };

// The view, the partition, the overlays and the chosen place; some of these exclude each other.
export class DisplayOptions {
  constructor(changed) {
    this.changed = changed;
    this.view = VIEWS[0];
    Object.assign(this, OPTION_FLAGS);
    this.place = null; // {x, y} in pixels of the displayed image
    this.lastPlace = null; // the latest that was chosen, also after its map was closed
    this.draw = null; // {words, n_regions, labels} of a single draw that is displayed in place of the result
    this.opacities = { ...OPACITIES };

    for (const radio of document.getElementsByName("view")) {
      radio.addEventListener("click", () => this.set({ view: radio.value, boundaries: false, place: null }));
    }
    for (const radio of document.getElementsByName("shown")) {
      const result = radio.value === "result";
      radio.addEventListener("click", () => this.set({ result, boundaries: false, place: null, draw: null }));
    }
    for (const flag of ["spins", "boundaries"]) {
      byId(flag).addEventListener("change", ({ target }) => this.set({ [flag]: target.checked, place: null, draw: null }));
    }
    byId("opacity").addEventListener("input", ({ target }) => {
      this.opacities[this.layer] = target.valueAsNumber;
      this.changed();
    });
    for (const id of ["legend-close", "draw-close"]) byId(id).addEventListener("click", () => this.close());
  }

  // The layer that the opacity slider changes.
  get layer() {
    return this.showsMap ? "map" : this.view;
  }

  // Whether a map of probabilities is displayed.
  get showsMap() {
    return this.place !== null || this.boundaries;
  }

  get opacity() {
    return this.opacities[this.layer] / 100;
  }

  // Returns from a map to the regions, and from a single draw to the result.
  close() {
    if (this.showsMap) this.set(this.place ? { place: null } : { boundaries: false });
    else this.set({ draw: null });
  }

  set(changes) {
    Object.assign(this, changes.place ? { lastPlace: changes.place } : {}, changes);
    if (changes.spins) this.result = this.boundaries = false;
    else if (changes.result || changes.boundaries) this.spins = false;
    this.show();
    this.changed();
  }

  show() {
    for (const radio of document.getElementsByName("view")) radio.checked = radio.value === this.view;
    byId(this.result ? "result" : "now").checked = true;
    byId("spins").checked = this.spins;
    byId("boundaries").checked = this.boundaries;
    byId("opacity").value = this.opacities[this.layer];
    byId("opacity").disabled = this.layer === "picture";
    byId("legend").hidden = !this.showsMap;
    byId("draw-close").hidden = !this.draw || this.showsMap;
  }
}

const VIEW_NAMES = {
  fill: (unit) => `each ${unit} has its own color`,
  outlines: (unit) => `outlines of the ${unit}s`,
  means: (unit) => `each ${unit} has its mean color`,
  picture: () => "the image alone",
};

const SENTENCES = {
  loading: "Waiting for the result.",
  first: "First outlines, those of one chain. The result follows.",
  tooEarly: "There is no result yet. Start the chains.",
  spins:
    "White lines: spin-clusters, sets of superpixels that were bonded in the last sweep and moved together. " +
    "Yellow lines: clusters. Use a low speed or single steps.",
};

// The partition that is displayed, {labels, n, unit, name}: a single draw, the present one of a chain, or the result;
// null until that has arrived, unless the chain is displayed meanwhile, as it is before the `first` result. Whatever
// says how many regions there are says it of this one.
export function displayedPartition(display, frame, chainNumber, answer, first) {
  const { draw } = display;
  if (draw) return { labels: draw.labels, n: draw.n_regions, unit: frame.unit, name: "Single draw" };
  if (!display.result || (first && answer?.kind !== "result")) {
    const chain = frame.chains[chainNumber];
    return { labels: chain.labels, n: chain.n_clusters, unit: frame.unit, name: `Chain ${chainNumber + 1} now` };
  }
  if (answer?.kind !== "result") return null;
  const { labels, n_regions: n, unit } = answer.data;
  return { labels, n, unit, name: resultName(answer.data) };
}

function resultName({ detail, estimate }) {
  if (estimate === "best") return "Result, the most probable partition that was visited";
  return detail === null ? "Result" : `Result at detail ${significant(detail, 2)}`;
}

// The layers of the image, as `PictureCanvas.show` takes them; null until what they need has arrived.
export function pictureLayers(display, chain, partition, answer) {
  const labels = partition?.labels;
  if (display.showsMap) {
    const kind = display.place ? "together" : "lines";
    if (answer?.kind !== kind) return null;
    const fill = { kind, data: answer.data };
    return { background: "gray", fill, opacity: display.opacity, boundaries: null, spins: null };
  }
  if (!labels && display.view !== "picture") return null;
  const fills = { fill: { kind: "labels", data: labels }, means: { kind: "means", data: labels } };
  return {
    background: "picture",
    fill: fills[display.view] ?? null,
    opacity: display.opacity,
    boundaries: display.view === "outlines" || display.spins ? labels : null,
    spins: display.spins ? chain.spins : null,
  };
}

// What must be requested from the server in addition to the frames, or null.
export function neededAnswer(display) {
  if (display.place) return "together";
  if (display.boundaries) return "lines";
  return display.result ? "result" : null;
}

export function legendTitle(display) {
  return display.place ? "In one region" : "Boundary";
}

export function caption(display, frame, partition, answer, isDrawing) {
  const needed = neededAnswer(display);
  if (needed && answer?.kind !== needed && !display.draw) {
    if (partition && !display.showsMap) return SENTENCES.first;
    return frame.state === "paused" && !frame.sweeps ? SENTENCES.tooEarly : SENTENCES.loading;
  }
  const draws = frame.n_details > 1 ? "of all chains and levels of detail" : "of all chains";
  const share = `Brightness: the share of the draws, ${draws}, that have`;
  if (display.place) return `${share} a place and the marked one in one ${frame.unit}.`;
  if (display.boundaries) return `${share} a boundary there.`;
  if (display.spins) return SENTENCES.spins;
  const { name, n, unit } = partition;
  const hint = ` ${byPointer("Click", "Tap")} a place to see how probably other places share its ${unit}.`;
  return `${name} with ${counted(n, unit)}: ${VIEW_NAMES[display.view](unit)}.${isDrawing ? "" : hint}`;
}

// What is displayed at a place, in words.
export function valueAt(place, display, siteImage, partition, answer) {
  const site = siteImage.nSites ? siteImage.siteAt(place) : -1;
  if (site < 0) return "";
  if (display.showsMap) {
    if (answer?.kind === "together") return `In one region with the marked place: ${percent(answer.data[site] / 255)}`;
    if (answer?.kind !== "lines") return "";
    return `Boundary probability: ${percent(answer.data[place.y * siteImage.width + place.x] / 255)}`;
  }
  if (!partition) return "";
  const { areas, ranks, total } = siteImage.sizesOf(partition.labels);
  const label = partition.labels[site];
  const name = `${partition.unit[0].toUpperCase()}${partition.unit.slice(1)} ${ranks.get(label)} of ${partition.n} by size`;
  return `${name}, ${percent(areas[label] / total)} of the image`;
}

// A description for screen readers.
export function ariaDescription(display, frame, partition, imageName) {
  const map = display.place ? "probability of sharing a region with the chosen place" : "boundary probability";
  const { n, unit, name } = partition ?? {};
  const shown = partition ? `${name} with ${counted(n, unit)}, ${VIEW_NAMES[display.view](unit)}` : "the image";
  return `${imageName}: ${display.showsMap ? map : shown}, after ${counted(frame.sweeps, "sweep")}. Arrow keys move to a place, Enter chooses it.`;
}
