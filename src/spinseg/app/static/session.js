// The session of one image at the server: created, configured, run, and created again if the server closed it.

import { SessionApi, listenToFrames } from "./api.js";

const RETRY_DELAY = 3000; // milliseconds; the chains of a page that was just closed still run for two seconds

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

export class Session {
  // `listener` has opened(api, source), receive(frame), conditioned(result or null), applied(settings, strokes),
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
    Object.assign(this, { api, source, settings, willRun: running });
    this.listener.opened(api, source);
    this.stopListening = listenToFrames(api, {
      frame: (frame) => this.api === api && this.listener.receive(frame),
      lost: () => this.listener.showMessage("The connection to the server was lost. Trying to reconnect."),
      back: () => this.reconnected(),
      gone: () => this.api === api && this.reopen(),
    });
    await this.apply(settings);
    if (this.willRun && this.api === api) await this.runWhenFree();
  }

  close() {
    this.stopListening?.();
    this.api?.pause().catch(() => {}); // the session may be closed already
    this.api = this.stopListening = null;
    this.halt();
  }

  // Never rejects: the listener shows what the server refuses. The first answer to other scribbles comes from the draws
  // that there are, if these can be used; then the chains go on with them.
  async apply(settings, strokes) {
    const api = this.api;
    try {
      if (settings.seeds !== this.settings.seeds) {
        const found = settings.seeds && (await api.conditioned(settings.seeds));
        if (this.api === api) this.listener.conditioned(found);
      }
      await api.settings(settings);
      this.settings = settings;
      if (this.api === api) this.listener.applied(settings, strokes);
    } catch (error) {
      if (this.api === api) await this.listener.refused(settings, error);
    }
  }

  async run() {
    Object.assign(this, { running: true, willRun: true, stoppedItself: false });
    try {
      await this.api.run(this.speed);
    } catch (error) {
      this.running = false;
      throw error;
    } finally {
      this.willRun = false;
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
    Object.assign(this, { running: false, willRun: false, stoppedItself: false });
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
