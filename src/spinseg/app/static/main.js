// The page as a whole: makes its parts and carries word from one to the other.

import { SPEEDS, readAddress, writeAddress } from "./address.js";
import * as api from "./api.js";
import { Charts } from "./charts.js";
import { Controls } from "./controls.js";
import { byId, write } from "./dom.js";
import { Exports } from "./exports.js";
import { drawScale } from "./heat.js";
import { listenToKeys } from "./keys.js";
import { LargePicture } from "./large.js";
import { Look } from "./look.js";
import { hideError, showError, showState, tell } from "./notices.js";
import { bytesOf, count } from "./numbers.js";
import { packedPalette } from "./painting.js";
import { Refresh } from "./refresh.js";
import { loadScene } from "./scene.js";
import { Session } from "./session.js";
import { Choices } from "./settings.js";
import { caption, description, legendTitle, partition, shownPicture, wantedAnswer, wordOf } from "./showing.js";
import { Sizes } from "./sizes.js";
import { Strip } from "./strip.js";
import { atMostEvery, settled } from "./timing.js";
import { Traces } from "./traces.js";
import { Transport } from "./transport.js";
import { showVerdict } from "./verdict.js";
import { Welcome } from "./welcome.js";

const REST = 250; // milliseconds after the last change until settings are sent
const LONG = 500; // milliseconds after which one wonders whether anything happens
const NOTE_STAYS = 8000;
const ONE_COLUMN = matchMedia("(max-width: 1080px)");

class App {
  constructor(about) {
    const palette = packedPalette(bytesOf(about.palette));
    this.choices = new Choices(about);
    const found = readAddress(this.choices, about.examples.map(({ name }) => name));
    this.settings = { ...this.choices.defaults(), ...found.settings };
    byId("speed").value = found.speed;

    this.session = new Session(this, SPEEDS[found.speed]);
    this.look = new Look(() => this.lookChanged());
    this.controls = new Controls(this.choices, this.settings, (name) => this.settingChanged(name));
    this.sendSettings = settled(() => this.takeUpSettings(), REST);
    this.transport = new Transport(this.session, () => this.lookChanged(), showError);
    this.exports = new Exports(showError);
    this.charts = new Charts();
    this.sizes = new Sizes(palette);
    this.strip = new Strip(palette, about.starts, (chain) => this.showChain(chain));
    this.refresh = new Refresh(() => this.present(), showError);
    this.presentSlowly = atMostEvery(250, () => this.presentRest());
    this.large = new LargePicture(byId("stage"), palette, this.look);
    drawScale(byId("legend-scale"));
    this.welcome = new Welcome(about, (source) => this.open(source), showError);
    this.connectButtons();
    this.look.set(found.look);

    if (found.example) this.open({ example: found.example });
    else if (Object.keys(found.settings).length || found.picture) this.welcome.askFor(found.picture);
  }

  connectButtons() {
    const { transport, large } = this;
    byId("zoom-in").addEventListener("click", large.zoomIn);
    byId("zoom-out").addEventListener("click", large.zoomOut);
    byId("zoom-fit").addEventListener("click", large.fit);
    byId("another").addEventListener("click", () => this.showWelcome(true));
    byId("back").addEventListener("click", () => this.showWelcome(false));
    byId("error-close").addEventListener("click", hideError);
    addEventListener("hashchange", () => location.reload());
    if (ONE_COLUMN.matches) document.querySelectorAll("aside details").forEach((section) => (section.open = false));

    const keys = { " ": transport.toggle, s: transport.step, r: () => transport.restart(), "?": () => this.showKeys() };
    Object.assign(keys, { "+": large.zoomIn, "=": large.zoomIn, "-": large.zoomOut, 0: large.fit });
    keys.Escape = () => this.look.back();
    for (const n of [1, 2, 3, 4]) keys[n] = () => this.showChain(n - 1);
    listenToKeys(keys, () => !byId("work").hidden);
  }

  // Choosing a picture.

  async open(source) {
    hideError();
    document.body.dataset.state = "opening";
    try {
      await this.session.open(source, this.wanted());
    } catch (error) {
      showError(error);
    }
    if (document.body.dataset.state === "opening") document.body.dataset.state = this.frame?.state ?? "welcome";
  }

  showWelcome(choosing) {
    if (choosing) this.resume = this.session.running;
    if (choosing && this.resume) this.transport.attempt(this.session.pause());
    if (!choosing && this.resume) this.transport.attempt(this.session.run());
    byId("welcome").hidden = !choosing;
    byId("work").hidden = byId("another").hidden = byId("picture-name").hidden = choosing;
    byId("back").hidden = !choosing;
    scrollTo(0, 0);
    (choosing ? byId("choose") : byId("another")).focus();
  }

  // What the session tells.

  opened(page, { example }) {
    const [rows, columns] = page.shape;
    Object.assign(document.body.dataset, { state: "building", stage: 0, sweeps: 0 });
    Object.assign(this, { example, traces: new Traces(), chain: 0 });
    this.frame = this.scene = this.sceneNumber = this.inForce = null;
    document.title = `${page.name} - spinseg`;
    write(byId("picture-name"), `${page.name}, ${count(columns)} × ${count(rows)} pixels`);
    write(byId("back"), `Back to ${page.name}`);
    const leaving = byId("welcome").contains(document.activeElement);
    byId("welcome").hidden = true;
    byId("work").hidden = byId("another").hidden = byId("picture-name").hidden = false;
    if (leaving) byId("run").focus({ preventScroll: true });
    byId("frame").style.setProperty("--aspect", page.shown[1] / page.shown[0]);
    this.exports.open(page);
    this.look.set({ place: null });
    tell("Preparing the picture.");
    scrollTo(0, 0);
  }

  heard(frame) {
    const before = this.frame;
    this.frame = frame;
    if (frame.chains.length) this.traces.add(frame);
    this.chain = Math.min(this.chain, Math.max(0, frame.chains.length - 1));
    Object.assign(document.body.dataset, { state: frame.state, stage: frame.stage, sweeps: frame.sweeps });
    if (frame.stage !== before?.stage) this.noted(frame.note);
    this.showState();
    this.transport.show(frame, frame.chains[this.chain]);
    this.exports.heard(frame);
    if (frame.chains.length && frame.scene !== this.sceneNumber) this.fetchScene(frame.scene);
    this.refresh.happened(frame.sweeps ? `${frame.stage} ${frame.sweeps}` : null);
    this.present();
  }

  async fetchScene(number) {
    const { page } = this.session;
    this.sceneNumber = number;
    this.scene = null;
    this.ask();
    try {
      const scene = await loadScene(page);
      if (this.session.page !== page || this.sceneNumber !== number) return;
      this.scene = scene;
      this.large.setScene(scene);
      this.strip.setScene(scene);
      this.lookChanged();
    } catch (error) {
      showError(error);
    }
  }

  applied(settings, note) {
    this.inForce = settings;
    if (note) this.noted(note);
    this.writeAddress();
  }

  noted(note) {
    this.note = note;
    clearTimeout(this.noteTimer);
    this.noteTimer = setTimeout(() => {
      this.note = null;
      this.showState();
    }, NOTE_STAYS);
  }

  showState() {
    if (this.frame) showState(this.frame, this.note, this.waiting);
  }

  refused(settings, error) {
    if (this.inForce) {
      this.controls.take(this.inForce);
      this.controls.refuse(this.lastChanged, `${error.message} What was set before stays in force.`);
      return;
    }
    showError(error);
    const defaults = this.choices.defaults();
    if (Object.keys(defaults).every((name) => settings[name] === defaults[name])) return;
    this.controls.take(defaults);
    return this.session.apply(this.wanted());
  }

  told = tell;
  failed = showError;

  // What the person does.

  wanted = () => this.choices.effective(this.settings);

  settingChanged(name) {
    this.lastChanged = name;
    this.sendSettings();
  }

  async takeUpSettings() {
    const slow = setTimeout(() => {
      this.waiting = "Taking up the new settings.";
      this.showState();
    }, LONG);
    await this.refresh.restDuring(this.session.apply(this.wanted()));
    clearTimeout(slow);
    this.waiting = null;
    this.showState();
  }

  showChain(chain) {
    if (chain >= (this.frame?.chains.length ?? 0)) return;
    this.chain = chain;
    this.present();
  }

  showKeys() {
    const section = byId("keys-section");
    section.open = !section.open;
    section.scrollIntoView({ block: "nearest" });
    section.querySelector("summary").focus();
  }

  lookChanged() {
    this.writeAddress();
    this.ask();
    this.large.mark();
    this.present();
  }

  ask() {
    const { look, scene, session } = this;
    const site = look.place && scene?.siteAt(look.place);
    const wanted = scene && wantedAnswer(look);
    const kind = wanted === "together" && site < 0 ? null : wanted; // outside, where nothing is together
    const { page } = session;
    const questions = { together: () => page.together(site), lines: page?.boundaries, result: () => page.result() };
    this.refresh.want([page?.path, this.sceneNumber, kind, site].join(" "), kind, questions[kind]);
  }

  writeAddress() {
    const { page } = this.session;
    if (!page || !this.inForce) return;
    const { example, look, inForce: settings } = this;
    const defaults = this.choices.defaults();
    writeAddress({ settings, defaults, look, speed: this.transport.speed, example, picture: page.name });
  }

  // Showing it.

  // The frame, if it is of the scene that is there to paint on.
  get presentable() {
    const { frame, scene } = this;
    const fits = scene && frame?.scene === this.sceneNumber && frame.chains[this.chain]?.labels.length === scene.nSites;
    return fits ? frame : null;
  }

  present() {
    const frame = this.presentable;
    if (!frame) return;
    const { look, chain } = this;
    const { answer } = this.refresh;
    this.strip.show(frame.chains, chain);
    this.large.show(shownPicture(look, frame.chains[chain], answer));
    write(byId("caption"), caption(look, frame, chain, answer));
    write(byId("legend-title"), legendTitle(look));
    byId("slow").hidden = !look.spins || look.heat || this.transport.speed === "1";
    this.presentSlowly();
  }

  // What need not follow every frame.
  presentRest() {
    const frame = this.presentable;
    if (!frame) return;
    const { look, chain, scene } = this;
    const { answer } = this.refresh;
    this.charts.update(this.traces, frame.chains.length);
    showVerdict(frame.agreement, frame.chains.length);
    const result = look.result && answer?.kind === "result";
    const areas = scene.areasOf(partition(look, frame.chains[chain], answer));
    this.sizes.show(areas, result ? wordOf(answer) : "cluster", result ? "the result" : `chain ${chain + 1}`);
    byId("stage").setAttribute("aria-label", description(look, frame, chain, answer, this.session.page.name));
  }
}

try {
  new App(await api.about());
} catch (error) {
  showError(error);
}
