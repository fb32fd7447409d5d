// What is fetched from the server beside frames: the image and its sites, what is displayed, and results at other details.

import { SiteImage } from "./painting.js";

// The image of a session and its sites, fetched when a frame says that there are newer ones.
export class Sites {
  // `changed` is called with "image", "sites" or "outlines" after each has arrived; `failed` with an Error.
  constructor(changed, failed) {
    Object.assign(this, { changed, failed });
  }

  // Forgets another image, and fetches this one: it is displayed while its sites are made.
  open(api) {
    Object.assign(this, { api, image: null, scene: null, loaded: null, outlined: null, awaited: false });
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
    Object.assign(this, { scene, outlined: null, awaited: false });
    this.fetch(this.api.sites, (sites) => {
      if (this.scene !== scene) return;
      this.image.setSites(sites);
      this.loaded = scene;
      this.changed("sites");
    });
  }

  // The same sites with other outlines, which the server has refined; they are `awaited` until they have arrived.
  async fetchOutlines(moment) {
    if (moment === this.outlined) return;
    Object.assign(this, { outlined: moment, awaited: true });
    await this.fetch(this.api.outlines, (sites) => this.outlined === moment && this.image.setOutlines(sites));
    if (this.outlined !== moment) return;
    this.awaited = false;
    this.changed("outlines");
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

const POLL_INTERVAL = 1000; // milliseconds
const NOT_AVAILABLE = [409, 422]; // no draws yet, or the sites have just been replaced
const REPORTED_BY_STREAM = [0, 404]; // no connection, no such session

// Keeps one answer of the server up to date: asks at once, then about once a second while there are new sweeps.
export class Poller {
  // `changed` is called when `answer`, {kind, data} or null, has changed; `failed` with an Error.
  constructor(changed, failed) {
    this.changed = changed;
    this.failed = failed;
    this.answer = null;
  }

  // `key` identifies the question, so that the same one is not asked again; `ask` sends it, if there is one. A result
  // of the same `scope`, an image and its sites, is displayed again until there is a newer one.
  setQuestion(scope, key, kind, ask) {
    if (scope !== this.scope) Object.assign(this, { scope, result: null });
    if (key === this.key) return;
    if (this.answer?.kind === "result") this.result = this.answer;
    if (kind !== this.kind) this.answer = kind === "result" ? this.result : null;
    Object.assign(this, { key, kind, ask, due: 0, asked: null, busy: null });
    this.schedule();
  }

  // Shows an answer that is known already; one that is on its way to another question is dropped. One that is `held`
  // stays until there is a newer one.
  preview(answer, held = false) {
    Object.assign(this, { key: null, ask: null, busy: null, held });
    this.setAnswer(answer);
  }

  // `moment` changes whenever the answer may change, and is null before there can be an answer. The last one for now
  // `isLast`: its answer is asked for at once.
  setMoment(moment, isLast) {
    Object.assign(this, { moment, isLast });
    if (moment === null && !this.held) this.answer = this.result = null;
    else this.schedule();
  }

  // Whether the answer is that of the latest moment, or nothing is asked.
  get isUpToDate() {
    return !this.ask || this.asked === this.moment;
  }

  // Asks nothing during `work`, nor until the next moment after it: answers would be out of date.
  async suspendDuring(work) {
    this.suspended = true;
    clearTimeout(this.timer);
    await work;
    this.suspended = false;
  }

  schedule() {
    clearTimeout(this.timer);
    if (this.suspended || !this.ask || this.busy || !this.moment || this.asked === this.moment) return;
    this.timer = setTimeout(() => this.poll(), this.isLast ? 0 : Math.max(0, this.due - performance.now()));
  }

  async poll() {
    const { kind, moment } = this;
    const began = performance.now();
    const request = (this.busy = {});
    let answer, failed;
    try {
      const data = await this.ask();
      answer = data && { kind, data };
    } catch (error) {
      failed = true;
      if (NOT_AVAILABLE.includes(error.status)) answer = null;
      else if (!REPORTED_BY_STREAM.includes(error.status)) this.failed(error);
    }
    if (request !== this.busy) return; // another question was asked meanwhile
    const rest = Math.max(POLL_INTERVAL, 2 * (performance.now() - began)); // the chains need the processor, too
    Object.assign(this, { busy: null, held: this.held && failed, asked: moment, due: performance.now() + rest });
    this.setAnswer(answer === undefined ? this.answer : answer);
    this.schedule();
  }

  setAnswer(answer) {
    this.answer = answer;
    this.changed();
  }
}

// Results at other details, fetched while there is little else to do, so that the slider of the detail answers at once.

// The positions of the slider, in such an order that the first few lie near all others.
const GRID = [0.2, 0.9, 0.4, 0.8, 0, 0.6, 1, 0.5, 0.3, 0.7, 0.1];
// Milliseconds before a request while the chains run, which need the processor, too: for a new result, and an old one.
const PAUSE = 200;
const LONG_PAUSE = 1500;

export class DetailResults {
  // `isBusy` says whether what is displayed is being fetched, which comes first.
  constructor(isBusy) {
    this.isBusy = isBusy;
    this.setScope(null);
  }

  // `scope` identifies an image and its sites: results of another one are dropped.
  setScope(scope) {
    if (scope === this.scope) return;
    Object.assign(this, { scope, found: new Map(), moment: null });
  }

  // Keeps a result, if draws have a detail.
  keep(data, moment) {
    if (data.detail === null) return;
    this.found.delete(data.detail); // so that the order is that of time
    this.found.set(data.detail, { data, moment });
  }

  // The result at the detail that is nearest to this one, or null.
  nearest(detail) {
    const distance = (other) => Math.abs(other - detail);
    const [first] = [...this.found.keys()].sort((a, b) => distance(a) - distance(b));
    return first === undefined ? null : this.found.get(first).data;
  }

  // Fetches the results of this moment, one at a time. While the chains run, each is fetched now and then.
  setMoment(moment, api, running) {
    Object.assign(this, { moment, api, running });
    if (moment === null) this.found.clear();
    if (moment === null || this.timer || this.busy) return;
    const pause = GRID.every((detail) => this.found.has(detail)) ? LONG_PAUSE : PAUSE;
    this.timer = setTimeout(() => this.fetchNext(), running ? pause : 0);
  }

  async fetchNext() {
    const { scope, moment, api } = this;
    this.timer = null;
    const old = GRID.filter((each) => this.found.get(each)?.moment !== moment);
    const detail = old.find((each) => !this.found.has(each)) ?? oldest(old, this.found);
    if (detail === undefined || moment === null || this.isBusy()) return;
    this.busy = true;
    const data = await api.resultAt(detail).catch(() => null); // the poller reports what is wrong
    this.busy = false;
    if (scope === this.scope && data) this.keep(data, moment);
    if (data) this.setMoment(this.moment, this.api, this.running);
  }
}

// Of these details, the one whose result was kept first.
const oldest = (details, found) => [...found.keys()].find((detail) => details.includes(detail));
