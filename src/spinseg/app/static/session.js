// The session of one image at the server: created, configured, run, and created again if the server closed it.

import { SessionApi, listenToFrames } from "./api.js";

const RETRY_DELAY = 3000; // milliseconds; the chains of a page that was just closed still run for two seconds

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

export class Session {
  // `listener` has opened(api, source), receive(frame), conditioned(result), applied(settings),
  // refused(settings, error), showMessage(sentence), failed(error).
  constructor(listener, speed) {
    this.listener = listener;
    this.speed = speed;
    addEventListener("pagehide", () => this.api?.pauseOnLeaving());
  }

  // The present image stays until the new one is accepted: the file may be no image.
  async open(source, settings, running = true) {
    this.wanted = source;
    const api = await SessionApi.create(source);
    if (this.wanted !== source) return;
    this.close();
    Object.assign(this, { api, source, settings });
    this.listener.opened(api, source);
    this.stopListening = listenToFrames(api, {
      frame: (frame) => this.api === api && this.listener.receive(frame),
      lost: () => this.listener.showMessage("The connection to the server was lost. Trying to reconnect."),
      back: () => this.reconnected(),
      gone: () => this.api === api && this.reopen(),
    });
    await this.apply(settings);
    if (running && this.api === api) await this.runWhenFree();
  }

  close() {
    this.stopListening?.();
    this.api?.pause().catch(() => {}); // the session may be closed already
    this.api = this.stopListening = null;
    this.halt();
  }

  // Never rejects: the listener shows what the server refuses. The first answer to other scribbles comes from the draws
  // that there are; then the chains go on with them.
  async apply(settings) {
    const api = this.api;
    try {
      if (settings.seeds && settings.seeds !== this.settings.seeds) {
        const found = await api.conditioned(settings.seeds);
        if (found && this.api === api) this.listener.conditioned(found);
      }
      await api.settings(settings);
      this.settings = settings;
      if (this.api === api) this.listener.applied(settings);
    } catch (error) {
      if (this.api === api) await this.listener.refused(settings, error);
    }
  }

  async run() {
    Object.assign(this, { running: true, stoppedItself: false });
    try {
      await this.api.run(this.speed);
    } catch (error) {
      this.running = false;
      throw error;
    }
  }

  async runWhenFree() {
    const api = this.api;
    try {
      await this.run();
    } catch (error) {
      if (error.status !== 429) throw error;
      await wait(RETRY_DELAY);
      if (this.api === api) await this.run();
    }
  }

  pause() {
    this.halt();
    return this.api.pause();
  }

  step() {
    this.halt();
    return this.api.step();
  }

  // The user has stopped the chains.
  halt() {
    Object.assign(this, { running: false, stoppedItself: false });
  }

  // The chains have stopped: by themselves, unless the user has asked for it. Then they go on after a change.
  stopped() {
    Object.assign(this, { running: false, stoppedItself: this.running });
  }

  async setSpeed(speed) {
    this.speed = speed;
    if (this.running) await this.run();
  }

  async reconnected() {
    this.listener.showMessage("The connection to the server is restored.");
    if (this.running) await this.run().catch(this.listener.failed);
  }

  async reopen() {
    const { source, settings, running } = this;
    this.listener.showMessage("The server had closed this image; it is being sent again.");
    this.wanted = source;
    while (this.wanted === source) {
      try {
        return await this.open(source, settings, running);
      } catch (error) {
        if (error.status !== 0) return this.listener.failed(error);
        await wait(RETRY_DELAY);
      }
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

  // `moment` changes whenever the answer may change, and is null before there can be an answer.
  setMoment(moment) {
    this.moment = moment;
    if (moment === null && !this.held) this.answer = this.result = null;
    else this.schedule();
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
    this.timer = setTimeout(() => this.poll(), Math.max(0, this.due - performance.now()));
  }

  async poll() {
    const { key, kind, moment } = this;
    const began = performance.now();
    const request = (this.busy = {});
    try {
      const data = await this.ask();
      if (key === this.key) {
        this.held = false;
        this.setAnswer(data && { kind, data });
      }
    } catch (error) {
      if (NOT_AVAILABLE.includes(error.status)) key === this.key && this.setAnswer(null);
      else if (!REPORTED_BY_STREAM.includes(error.status)) this.failed(error);
    }
    if (request !== this.busy) return; // another question was asked meanwhile
    this.busy = null;
    const rest = Math.max(POLL_INTERVAL, 2 * (performance.now() - began)); // the chains need the processor, too
    if (key === this.key) Object.assign(this, { asked: moment, due: performance.now() + rest });
    this.schedule();
  }

  setAnswer(answer) {
    this.answer = answer;
    this.changed();
  }
}
