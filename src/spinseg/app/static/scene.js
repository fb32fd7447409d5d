// The picture and its sites, with all that painting needs of them and that never changes: computed once.

import { largest } from "./painting.js";

export async function loadScene(page) {
  const [bitmap, sites] = await Promise.all([page.picture(), page.sites()]);
  return new Scene(bitmap, sites);
}

class Scene {
  constructor(bitmap, sites) {
    this.width = bitmap.width;
    this.height = bitmap.height;
    this.sites = sites;
    this.nSites = largest(sites) + 1;
    this.picture = document.createElement("canvas");
    this.picture.width = this.width;
    this.picture.height = this.height;
    const context = this.picture.getContext("2d");
    context.drawImage(bitmap, 0, 0);
    bitmap.close(); // its memory is the browser's, not the garbage collector's
    const { data } = context.getImageData(0, 0, this.width, this.height);
    this.grey = this.greyed(data);
    this.sum(data);
    this.findPairs();
  }

  siteAt({ x, y }) {
    return this.sites[y * this.width + x];
  }

  // Dimmed and without colour: a ground for heat.
  greyed(data) {
    const canvas = this.picture.cloneNode();
    const image = new ImageData(this.width, this.height);
    for (let i = 0; i < data.length; i += 4) {
      image.data.fill(0.55 * (0.3 * data[i] + 0.59 * data[i + 1] + 0.11 * data[i + 2]), i, i + 3);
      image.data[i + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  sum(data) {
    this.areas = new Uint32Array(this.nSites);
    this.colourSums = new Float64Array(3 * this.nSites);
    for (let i = 0; i < this.sites.length; i++) {
      const site = this.sites[i];
      this.areas[site]++;
      for (let c = 0; c < 3; c++) this.colourSums[3 * site + c] += data[4 * i + c];
    }
  }

  // Neighbouring pixels of different sites: only between them can a boundary be.
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

  // Pixels of each label.
  areasOf(labels) {
    const areas = new Float64Array(largest(labels) + 1);
    for (let site = 0; site < labels.length; site++) areas[labels[site]] += this.areas[site];
    return areas;
  }

  // The same sites in a small picture, by its nearest pixels.
  miniature(longest) {
    const shrink = Math.max(1, Math.max(this.width, this.height) / longest);
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
