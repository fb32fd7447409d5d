// How the picture is looked at: view mode, what lies over it, the chosen place; and which of these exclude each other.

import { byId } from "./dom.js";

export const VIEWS = ["fill", "outlines", "means", "picture"];
export const LOOK_FLAGS = ["result", "spins", "boundaries"];
const OPACITIES = { fill: 55, outlines: 100, means: 100, picture: 100, heat: 90 };

export class Look {
  constructor(changed) {
    this.changed = changed;
    this.view = VIEWS[0];
    this.result = this.spins = this.boundaries = false;
    this.place = null; // {x, y} in pixels of the shown picture
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
    byId("legend-close").addEventListener("click", () => this.back());
  }

  // The layer that opacity is of.
  get layer() {
    return this.heat ? "heat" : this.view;
  }

  get heat() {
    return this.place !== null || this.boundaries;
  }

  get opacity() {
    return this.opacities[this.layer] / 100;
  }

  // One step back towards the clusters.
  back() {
    this.set(this.place ? { place: null } : { boundaries: false });
  }

  set(wanted) {
    Object.assign(this, wanted);
    if (wanted.spins) this.result = this.boundaries = false;
    else if (wanted.result || wanted.boundaries) this.spins = false;
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
    byId("legend").hidden = !this.heat;
  }
}
