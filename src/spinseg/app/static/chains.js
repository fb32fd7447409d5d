// The chains: a list with thumbnails, whether they agree, and the buttons that run them.

import { SPEEDS } from "./controls.js";
import { byId, count, counted, decimals, make, write } from "./dom.js";
import { paintSites, paletteColors } from "./painting.js";

const THUMBNAIL_SIZE = 144; // pixels of the longer side

// A row of chains, each with a thumbnail, its start, its number of regions and its log posterior.
export class ChainList {
  // `chose` is called with the number of a chain.
  constructor(palette, starts, chose) {
    this.palette = palette;
    this.startLabels = new Map(starts.map(({ name, label }) => [name, label]));
    this.chose = chose;
    this.items = [];
  }

  setSiteImage(siteImage) {
    this.thumbnail = siteImage.thumbnail(THUMBNAIL_SIZE);
    this.build(this.items.length);
  }

  show({ chains, unit }, chosen) {
    if (chains.length !== this.items.length) this.build(chains.length);
    chains.forEach((chain, i) => {
      const item = this.items[i];
      item.radio.checked = i === chosen;
      const label = this.startLabels.get(chain.start);
      const start = label ? `from ${label}` : `${chain.start} start`;
      item.label.title = `Chain ${i + 1}, ${start}`;
      write(item.start, chains.length > 2 ? (label ?? chain.start) : start); // four chains leave little space
      write(item.clusters, counted(chain.n_clusters, unit));
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
    const { width, height } = this.thumbnail;
    const canvas = make("canvas", { width, height, "aria-hidden": "true" });
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
    paintSites(new Uint32Array(image.data.buffer), this.thumbnail.sites, paletteColors(labels, this.palette));
    canvas.getContext("2d").putImageData(image, 0, 0);
  }
}

// Whether the chains have converged, which numbers fail, and all numbers.

const NAMES = { log_posterior: "log posterior", n_clusters: "regions", entropy: "entropy", edge_agreement: "edges" };
const MARKS = new Map([[true, "yes"], [false, "no"], [null, "unknown"]]);

const UNKNOWN = "Too early to assess convergence.";
const ONE_CHAIN = "One chain cannot show whether it has converged.";
const SOON = "Nearly converged: a few more sweeps will confirm it.";

export function showAgreement({ agreement, chains, state }) {
  const { r_hat: table = {}, ess = null, shortfalls = [], verdict = "" } = agreement ?? {};
  const soon = state === "running" && agreement?.converged && !agreement.enough; // else they would have stopped
  byId("verdict").dataset.converged = MARKS.get(soon ? null : (agreement?.converged ?? null));
  const unknown = chains.length === 1 ? ONE_CHAIN : UNKNOWN;
  write(byId("verdict-headline"), soon ? SOON : (agreement?.headline ?? unknown));
  write(byId("verdict-shortfalls"), shortfalls.join("; "));
  write(byId("verdict-text"), verdict);
  const numbers = Object.entries(table).filter(([, value]) => value !== null);
  const words = numbers.map(([name, value]) => `${NAMES[name] ?? name} ${formatRHat(value)}`).join(", ");
  const size = ess === null ? "" : ` Equivalent to about ${ess === "inf" ? "infinitely many" : count(ess)} independent samples.`;
  write(byId("verdict-numbers"), words && `R-hat of each quantity: ${words}.${size}`);
}

function formatRHat(value) {
  if (value === "inf") return "infinite";
  return value > 1.1 ? value.toFixed(2) : value.toFixed(3);
}

// Whether the chains have stopped and more sweeps are of no use, or there is no room for more.
export const isFinished = ({ state, agreement }) => state === "done" || (state === "paused" && Boolean(agreement?.enough));

const RATE_SMOOTHING = 1000; // milliseconds; without it the displayed rate would change too fast to read

// The buttons that start, pause, step and restart the chains, the speed, and the numbers beside them.
export class RunButtons {
  // `changed` is called after a change of speed, `failed` with an Error.
  constructor(session, changed, failed) {
    this.session = session;
    this.changed = changed;
    this.failed = failed;
    byId("run").addEventListener("click", () => this.toggle());
    byId("step").addEventListener("click", () => this.step());
    byId("restart").addEventListener("click", () => this.restart());
    byId("speed").addEventListener("change", () => this.setSpeed(byId("speed").value));
    byId("slow").addEventListener("click", () => this.setSpeed("1"));
  }

  get speed() {
    return byId("speed").value;
  }

  // Whether the chains run, or are about to.
  get running() {
    const { state, session } = this;
    const goesOn = this.isPreparing && session.stoppedItself;
    return state === "running" || session.willRun || goesOn || (state !== "paused" && session.running);
  }

  toggle = () => this.reportErrors(this.running ? this.session.pause() : this.session.run());

  step = () => this.reportErrors(this.session.step());

  restart = () => this.reportErrors(this.session.api.restart());

  setSpeed(speed) {
    byId("speed").value = speed;
    this.reportErrors(this.session.setSpeed(SPEEDS[speed]));
    this.changed();
  }

  reportErrors = (work) => work.catch(this.failed);

  // Chains that stopped by themselves go on where they have not converged: after a change.
  receive(frame) {
    if (this.state === "running" && frame.state !== "running") this.session.stopped();
    this.state = frame.state;
    const goesOn = frame.state === "paused" && (frame.sweeps === 0 || frame.agreement?.enough === false);
    if (goesOn && this.session.stoppedItself) this.reportErrors(this.session.runWhenFree());
  }

  // `isPreparing` says whether another posterior is being prepared.
  show(frame, isPreparing) {
    this.isPreparing = isPreparing;
    const { running } = this;
    const finished = isFinished(frame);
    const label = running ? "Pause" : finished ? "Keep sampling" : frame.sweeps ? "Continue" : "Start";
    write(byId("run"), label);
    byId("run").classList.toggle("primary", !finished);
    byId("run").title = `${label} (space)`;
    byId("run").disabled = byId("step").disabled = frame.state === "done";
    write(byId("sweeps"), count(frame.sweeps));
    this.smoothRate(frame.state === "running" ? frame.per_second : null);
    write(byId("rate"), this.rate ? count(this.rate) : "–");
  }

  smoothRate(rate) {
    const now = performance.now();
    const weight = Math.exp((this.smoothedAt - now) / RATE_SMOOTHING);
    this.rate = this.rate && rate ? weight * this.rate + (1 - weight) * rate : rate;
    this.smoothedAt = now;
  }
}
