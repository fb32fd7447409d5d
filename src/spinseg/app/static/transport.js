// Start, pause, step, restart and speed, with what they show: sweeps, clusters, sweeps per second.

import { SPEEDS } from "./address.js";
import { byId, write } from "./dom.js";
import { count } from "./numbers.js";

const STEADY = 1000; // milliseconds in which the rate shown follows the true one: nobody could read that

export class Transport {
  // `changed` is called when another speed was chosen, `failed` with an Error.
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

  get running() {
    return this.state === "running" || (this.state !== "paused" && this.session.running);
  }

  toggle = () => this.attempt(this.running ? this.session.pause() : this.session.run());

  step = () => this.attempt(this.session.step());

  async restart() {
    const done = this.state === "done";
    await this.attempt(this.session.page.restart());
    if (done) await this.attempt(this.session.run());
  }

  setSpeed(speed) {
    byId("speed").value = speed;
    this.attempt(this.session.setSpeed(SPEEDS[speed]));
    this.changed();
  }

  attempt = (work) => work.catch(this.failed);

  show(frame, chain) {
    this.state = frame.state;
    if (frame.state === "done") this.session.running = false;
    const going = this.running;
    write(byId("run"), going ? "Pause" : "Start");
    byId("run").title = `${going ? "Pause" : "Start"} (space)`;
    byId("run").disabled = byId("step").disabled = frame.state === "done";
    write(byId("sweeps"), count(frame.sweeps));
    write(byId("clusters"), chain ? count(chain.n_clusters) : "–");
    this.follow(frame.state === "running" ? frame.per_second : null);
    write(byId("rate"), this.rate ? count(this.rate) : "–");
  }

  follow(rate) {
    const now = performance.now();
    const kept = Math.exp((this.followed - now) / STEADY);
    this.rate = this.rate && rate ? kept * this.rate + (1 - kept) * rate : rate;
    this.followed = now;
  }
}
