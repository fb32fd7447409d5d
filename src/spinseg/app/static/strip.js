// The strip of chains: a small picture of each, its start, clusters and log posterior; one is shown large.

import { byId, make, write } from "./dom.js";
import { counted, decimals } from "./numbers.js";
import { paintSites, paletteColours } from "./painting.js";

const LONGEST = 144; // pixels of a small picture's longer side

export class Strip {
  // `chose` is called with the number of a chain.
  constructor(palette, starts, chose) {
    this.palette = palette;
    this.startLabels = new Map(starts.map(({ name, label }) => [name, label]));
    this.chose = chose;
    this.items = [];
  }

  setScene(scene) {
    this.small = scene.miniature(LONGEST);
    this.build(this.items.length);
  }

  show(chains, chosen) {
    if (chains.length !== this.items.length) this.build(chains.length);
    chains.forEach((chain, i) => {
      const item = this.items[i];
      item.radio.checked = i === chosen;
      const start = this.startLabels.get(chain.start) ?? chain.start;
      item.label.title = `Chain ${i + 1}, started from ${start}`;
      write(item.start, chains.length > 2 ? start : `from ${start}`); // four leave little room
      write(item.clusters, counted(chain.n_clusters, "cluster"));
      write(item.posterior, chain.log_posterior === null ? "" : decimals(chain.log_posterior, 1));
      if (item.labels !== chain.labels) this.paint(item, chain.labels);
      item.labels = chain.labels;
    });
  }

  build(length) {
    for (const { label } of this.items) label.remove();
    this.items = Array.from({ length }, (_, i) => this.item(i));
    byId("chains").append(...this.items.map(({ label }) => label));
  }

  item(i) {
    const canvas = make("canvas", { width: this.small.width, height: this.small.height, "aria-hidden": "true" });
    const radio = make("input", { type: "radio", name: "chain", value: i });
    radio.addEventListener("change", () => this.chose(i));
    const [start, clusters, posterior] = ["start", "", "posterior"].map((className) => make("span", { className }));
    posterior.title = "log posterior";
    const name = make("b", { className: `chain-${i}` }, `Chain ${i + 1}`);
    const text = make("span", { className: "text" }, name, start, clusters, posterior);
    const label = make("label", { className: "chain" }, radio, canvas, text);
    return { label, radio, canvas, start, clusters, posterior, image: new ImageData(canvas.width, canvas.height) };
  }

  paint({ canvas, image }, labels) {
    paintSites(new Uint32Array(image.data.buffer), this.small.sites, paletteColours(labels, this.palette));
    canvas.getContext("2d").putImageData(image, 0, 0);
  }
}
