// The life of one picture at the server: made, set, run, listened to, and made anew if the server forgot it.

import { Page } from "./api.js";
import { listen } from "./stream.js";

const PATIENCE = 3000; // milliseconds: chains of a page just left still run for two seconds

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

export class Session {
  // `listener` has opened(page, source), heard(frame), applied(settings, note), refused(settings, error),
  // told(sentence), failed(error).
  constructor(listener, speed) {
    this.listener = listener;
    this.speed = speed;
    addEventListener("pagehide", () => this.page?.pauseOnLeaving());
  }

  // The former picture stays until the new one is there: a file may turn out to be none.
  async open(source, settings, running = true) {
    this.wanted = source;
    const page = await Page.create(source);
    if (this.wanted !== source) return;
    this.close();
    Object.assign(this, { page, source, settings });
    this.listener.opened(page, source);
    this.stopListening = listen(page, {
      frame: (frame) => this.page === page && this.listener.heard(frame),
      lost: () => this.listener.told("The connection to the server was lost; trying to get it back."),
      back: () => this.cameBack(),
      gone: () => this.page === page && this.openAgain(),
    });
    await this.apply(settings);
    if (running && this.page === page) await this.runWhenFree();
  }

  close() {
    this.stopListening?.();
    this.page?.pause().catch(() => {}); // a page that is gone already needs no pause
    this.page = this.stopListening = null;
    this.running = false;
  }

  // Never rejects: what the server refuses is the listener's to show.
  async apply(settings) {
    const page = this.page;
    try {
      const { note } = await page.settings(settings);
      this.settings = settings;
      if (this.page === page) this.listener.applied(settings, note);
    } catch (error) {
      if (this.page === page) await this.listener.refused(settings, error);
    }
  }

  async run() {
    this.running = true;
    try {
      await this.page.run(this.speed);
    } catch (error) {
      this.running = false;
      throw error;
    }
  }

  async runWhenFree() {
    const page = this.page;
    try {
      await this.run();
    } catch (error) {
      if (error.status !== 429) throw error;
      await wait(PATIENCE);
      if (this.page === page) await this.run();
    }
  }

  pause() {
    this.running = false;
    return this.page.pause();
  }

  step() {
    this.running = false;
    return this.page.step();
  }

  async setSpeed(speed) {
    this.speed = speed;
    if (this.running) await this.run();
  }

  async cameBack() {
    this.listener.told("The connection to the server is back.");
    if (this.running) await this.run().catch(this.listener.failed);
  }

  async openAgain() {
    const { source, settings, running } = this;
    this.listener.told("The server had forgotten this picture; it is being sent again.");
    this.wanted = source;
    while (this.wanted === source) {
      try {
        return await this.open(source, settings, running);
      } catch (error) {
        if (error.status !== 0) return this.listener.failed(error);
        await wait(PATIENCE);
      }
    }
  }
}
