// What is displayed: the display options, the layers of the picture, and its captions.

import { byId, counted, significant } from "./dom.js";

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
    this.opacities = { ...OPACITIES };

    for (const radio of document.getElementsByName("view")) {
      radio.addEventListener("click", () => this.set({ view: radio.value, boundaries: false, place: null }));
    }
    for (const radio of document.getElementsByName("shown")) {
      const result = radio.value === "result";
      radio.addEventListener("click", () => this.set({ result, boundaries: false, place: null }));
    }
    for (const flag of ["spins", "boundaries"]) {
      byId(flag).addEventListener("change", ({ target }) => this.set({ [flag]: target.checked, place: null }));
    }
    byId("opacity").addEventListener("input", ({ target }) => {
      this.opacities[this.layer] = target.valueAsNumber;
      this.changed();
    });
    byId("legend-close").addEventListener("click", () => this.closeMap());
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

  // Returns from a map to the clusters.
  closeMap() {
    this.set(this.place ? { place: null } : { boundaries: false });
  }

  set(changes) {
    Object.assign(this, changes);
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
  }
}

const VIEW_NAMES = {
  fill: "each cluster has its own color",
  outlines: "outlines of the clusters",
  means: "each cluster has its mean color",
  picture: "the image without clusters",
};

const SENTENCES = {
  loading: "Waiting for the server.",
  tooEarly: "There are no draws yet. Start the chains, or make one step.",
  changed: "There are no draws since the change yet. Start the chains, or make one step.",
  spins:
    "White lines: spin-clusters, sets of sites (superpixels) that were bonded in the last sweep and moved together. " +
    "Yellow lines: clusters. Use a low speed or single steps.",
};

// The labels that are displayed: the present ones of the chain, or those of the result; null until it has arrived.
export function displayedLabels(display, chain, answer) {
  if (!display.result) return chain.labels;
  return answer?.kind === "result" ? answer.data.labels : null;
}

// The result consists of regions if the preset divides clusters into connected regions.
export const unitName = ({ data }) => (data.cut === false ? "cluster" : "region");

// The layers of the picture, as `PictureCanvas.show` takes them.
export function pictureLayers(display, chain, answer) {
  if (display.showsMap) {
    const kind = display.place ? "together" : "lines";
    const fill = answer?.kind === kind ? { kind, data: answer.data } : null;
    return { background: "gray", fill, opacity: display.opacity, boundaries: null, spins: null };
  }
  const labels = displayedLabels(display, chain, answer);
  const fills = { fill: { kind: "labels", data: labels }, means: { kind: "means", data: labels } };
  return {
    background: "picture",
    fill: (labels && fills[display.view]) ?? null,
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
  return display.place ? "Together" : "Boundary";
}

export function caption(display, frame, chainNumber, answer) {
  const waiting = neededAnswer(display) && answer?.kind !== neededAnswer(display);
  if (waiting && !frame.sweeps) return frame.began ? SENTENCES.changed : SENTENCES.tooEarly;
  if (waiting) return SENTENCES.loading;
  const draws = frame.n_details > 1 ? "of all chains and details" : "of all chains";
  const share = `Brightness: the share of the draws, ${draws}, that have`;
  const unit = frame.n_details > 1 ? "region" : "cluster";
  if (display.place) return `${share} a place and the marked one in one ${unit}.`;
  if (display.boundaries) return `${share} a boundary there.`;
  if (display.spins) return SENTENCES.spins;
  const hint = "Click a place to see how probably others belong together with it.";
  if (display.result) return `${resultName(answer)}: ${viewName(display, answer)}. ${hint}`;
  return `Chain ${chainNumber + 1} now: ${VIEW_NAMES[display.view]}. ${hint}`;
}

function resultName({ data, kind }) {
  const parts = counted(data.n_regions, unitName({ data, kind }));
  if (data.estimate === "best") return `Result, the most probable partition that was visited, with ${parts}`;
  const where = data.detail === null ? "" : ` at detail ${significant(data.detail, 2)}`;
  return `Result${where} with ${parts}`;
}

function viewName(display, answer) {
  const name = VIEW_NAMES[display.view];
  return display.result && answer?.kind === "result" ? name.replace("cluster", unitName(answer)) : name;
}

// A description for screen readers.
export function ariaDescription(display, frame, chainNumber, answer, imageName) {
  const chain = frame.chains[chainNumber];
  const map = display.place ? "probability of the same cluster as the chosen place" : "boundary probability";
  const content = `${imageName}: ${display.showsMap ? map : viewName(display, answer)}.`;
  const state = `${counted(chain.n_clusters, "cluster")} after ${counted(frame.sweeps, "sweep")}, ${frame.state}`;
  return `${content} Chain ${chainNumber + 1} has ${state}. Arrow keys move to a place, Enter chooses it.`;
}
