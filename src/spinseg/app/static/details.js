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
