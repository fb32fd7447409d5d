// The image of a session and its sites, fetched from the server when a frame says that there are newer ones.

import { SiteImage } from "./painting.js";

export class Sites {
  // `changed` is called with "image", "sites" or "outlines" after each has arrived; `failed` with an Error.
  constructor(changed, failed) {
    Object.assign(this, { changed, failed });
  }

  // Forgets another image, and fetches this one: it is displayed while its sites are made.
  open(api) {
    Object.assign(this, { api, image: null, scene: null, loaded: null, outlined: null });
    this.fetch(api.picture, (bitmap) => {
      this.image = new SiteImage(bitmap);
      this.changed("image");
    });
  }

  receive({ chains, scene, stage, outlined }) {
    if (this.image && chains.length && scene !== this.scene) this.fetchSites(scene);
    else if (this.isReady && outlined) this.fetchOutlines(`${stage} ${outlined}`);
  }

  // Whether the sites are those of the latest frame.
  get isReady() {
    return Boolean(this.image?.nSites) && this.loaded === this.scene;
  }

  fits(frame, chain) {
    return this.isReady && frame?.scene === this.loaded && frame.chains[chain]?.labels.length === this.image.nSites;
  }

  fetchSites(scene) {
    Object.assign(this, { scene, outlined: null });
    this.fetch(this.api.sites, (sites) => {
      if (this.scene !== scene) return;
      this.image.setSites(sites);
      this.loaded = scene;
      this.changed("sites");
    });
  }

  // The same sites with other outlines, which the server has refined.
  fetchOutlines(moment) {
    if (moment === this.outlined) return;
    this.outlined = moment;
    this.fetch(this.api.outlines, (sites) => {
      if (this.outlined !== moment) return;
      this.image.setOutlines(sites);
      this.changed("outlines");
    });
  }

  async fetch(ask, take) {
    const { api } = this;
    try {
      const found = await ask();
      if (this.api === api) take(found);
    } catch (error) {
      if (this.api === api) this.failed(error);
    }
  }
}
