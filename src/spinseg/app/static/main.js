// The page as a whole: creates its parts and connects them.

import { Answers } from "./answers.js";
import { bytesOf, fetchDescription } from "./api.js";
import { ChainList, RunButtons, showAgreement } from "./chains.js";
import { SizeChart, TraceCharts, Traces } from "./charts.js";
import { Controls, SPEEDS, SettingsSchema, readAddress, writeAddress } from "./controls.js";
import {
  DisplayOptions, ariaDescription, caption, displayedLabels, legendTitle, neededAnswer, pictureLayers, unitName,
} from "./display.js";
import { DetailResults } from "./details.js";
import { byId, count, debounced, onKeys, throttled, write } from "./dom.js";
import { Exports } from "./exports.js";
import { hideError, showError, showMessage, showState } from "./notices.js";
import { drawLegend, loadSiteImage, packedPalette } from "./painting.js";
import { Scribbles } from "./scribbles.js";
import { Poller, Session } from "./session.js";
import { StartPage } from "./start.js";
import { PictureView } from "./view.js";

const SETTINGS_DELAY = 250; // milliseconds from the last change until the settings are sent
const DETAIL_DELAY = 40; // the same for the detail, which restarts nothing
const BUSY_DELAY = 500; // milliseconds until a message says that work is in progress
const NOTE_DURATION = 8000; // milliseconds
const ONE_COLUMN = matchMedia("(max-width: 1080px)");

class App {
  constructor(description) {
    const palette = packedPalette(bytesOf(description.palette));
    this.schema = new SettingsSchema(description);
    const found = readAddress(this.schema, description.examples.map(({ name }) => name));
    this.settings = { ...this.schema.defaults(), ...found.settings };
    byId("speed").value = found.speed;

    this.session = new Session(this, SPEEDS[found.speed]);
    this.display = new DisplayOptions(() => this.displayChanged());
    this.controls = new Controls(this.schema, this.settings, (name) => this.settingChanged(name));
    this.sendSettings = debounced(() => this.applySettings(), SETTINGS_DELAY);
    this.runButtons = new RunButtons(this.session, () => this.displayChanged(), showError);
    this.exports = new Exports(showError);
    this.answers = new Answers(showError);
    this.charts = new TraceCharts();
    this.sizes = new SizeChart(palette);
    this.chainList = new ChainList(palette, description.starts, (chain) => this.showChain(chain));
    this.poller = new Poller(() => this.present(), showError);
    this.details = new DetailResults(() => Boolean(this.poller.busy));
    this.presentRestSoon = throttled(() => this.presentRest(), 250);
    this.scribbles = new Scribbles(() => this.seedsChanged(), () => this.picture.showStrokes());
    this.picture = new PictureView(byId("canvas"), palette, this.display, this.scribbles);
    this.startPage = new StartPage(description, (source) => this.open(source), showError);
    this.connectButtons();
    this.display.set(found.display);

    if (found.example) this.open({ example: found.example });
    else if (Object.keys(found.settings).length || found.picture) this.startPage.askFor(found.picture);
  }

  connectButtons() {
    const { runButtons, picture } = this;
    byId("zoom-in").addEventListener("click", picture.zoomIn);
    byId("zoom-out").addEventListener("click", picture.zoomOut);
    byId("zoom-fit").addEventListener("click", picture.fit);
    byId("another").addEventListener("click", () => this.showStartPage(true));
    byId("back").addEventListener("click", () => this.showStartPage(false));
    byId("error-close").addEventListener("click", hideError);
    addEventListener("hashchange", () => location.reload());
    if (ONE_COLUMN.matches) document.querySelectorAll("aside details").forEach((section) => (section.open = false));

    const keys = { " ": runButtons.toggle, s: runButtons.step, r: () => runButtons.restart() };
    Object.assign(keys, { "+": picture.zoomIn, "=": picture.zoomIn, "-": picture.zoomOut, 0: picture.fit });
    Object.assign(keys, { "?": () => this.showKeys(), Escape: () => this.display.closeMap() });
    keys.a = () => this.answers.show();
    for (const n of [1, 2, 3, 4]) keys[n] = () => this.showChain(n - 1);
    onKeys(keys, () => !byId("work").hidden && !this.answers.isOpen);
  }

  // Opening an image.

  async open(source) {
    hideError();
    document.body.dataset.state = "opening";
    try {
      await this.session.open(source, { ...this.applicableSettings(), seeds: null });
    } catch (error) {
      showError(error);
    }
    if (document.body.dataset.state === "opening") document.body.dataset.state = this.frame?.state ?? "welcome";
  }

  showStartPage(choosing) {
    if (choosing) this.resume = this.session.running;
    if (choosing && this.resume) this.runButtons.reportErrors(this.session.pause());
    if (!choosing && this.resume) this.runButtons.reportErrors(this.session.run());
    byId("welcome").hidden = !choosing;
    byId("work").hidden = byId("another").hidden = byId("picture-name").hidden = choosing;
    byId("back").hidden = !choosing;
    scrollTo(0, 0);
    (choosing ? byId("choose") : byId("another")).focus();
  }

  // Calls from the session.

  opened(api, { example }) {
    const [rows, columns] = api.shape;
    Object.assign(document.body.dataset, { state: "building", stage: 0, sweeps: 0, outlined: "" });
    Object.assign(this, { example, traces: new Traces(), chain: 0 });
    this.frame = this.siteImage = this.siteImageNumber = this.appliedSettings = null;
    document.title = `${api.name} - spinseg`;
    write(byId("picture-name"), `${api.name}, ${count(columns)} × ${count(rows)} pixels`);
    write(byId("read-as"), `Read as ${api.readAs}${api.readOtherwise ? `; ${api.readOtherwise}` : ""}.`);
    this.showWarning(null);
    write(byId("back"), `Back to ${api.name}`);
    const leaving = byId("welcome").contains(document.activeElement);
    byId("welcome").hidden = true;
    byId("work").hidden = byId("another").hidden = byId("picture-name").hidden = false;
    if (leaving) byId("run").focus({ preventScroll: true });
    byId("frame").style.setProperty("--aspect", api.shown[1] / api.shown[0]);
    this.exports.open(api);
    this.answers.open(api);
    this.display.set({ place: null });
    if (!this.session.settings.seeds) {
      this.settings.seeds = null;
      this.scribbles.forget();
    }
    this.picture.showStrokes();
    showMessage("Reading the image.");
    scrollTo(0, 0);
  }

  receive(frame) {
    const before = this.frame;
    this.frame = frame;
    if (frame.chains.length) this.traces.add(frame);
    this.chain = Math.min(this.chain, Math.max(0, frame.chains.length - 1));
    Object.assign(document.body.dataset, { state: frame.state, stage: frame.stage, sweeps: frame.sweeps });
    this.scribbles.allow(this.schema.chosen("preset", this.session.settings).connected);
    if (frame.stage !== before?.stage) this.showNote(frame.note);
    this.showState();
    this.runButtons.show(frame, frame.chains[this.chain]);
    this.exports.receive(frame);
    this.answers.receive(frame);
    if (frame.chains.length && frame.scene !== this.siteImageNumber) this.fetchSiteImage(frame.scene);
    else if (this.siteImage && frame.outlined) this.fetchOutlines(`${frame.stage} ${frame.outlined}`);
    const moment = frame.sweeps ? `${frame.stage} ${frame.sweeps}` : null;
    this.poller.setMoment(moment);
    const known = frame.n_details > 1 && this.siteImage ? moment : null;
    this.details.setMoment(known, this.session.api, frame.state === "running");
    this.present();
  }

  async fetchSiteImage(number) {
    const { api } = this.session;
    Object.assign(this, { siteImageNumber: number, siteImage: null, outlinesMoment: null });
    this.requestAnswer();
    try {
      const siteImage = await loadSiteImage(api);
      if (this.session.api !== api || this.siteImageNumber !== number) return;
      this.siteImage = siteImage;
      this.picture.setSiteImage(siteImage);
      this.chainList.setSiteImage(siteImage);
      this.displayChanged();
    } catch (error) {
      showError(error);
    }
  }

  // The same sites with other outlines, which the server has refined.
  async fetchOutlines(moment) {
    const { siteImage } = this;
    if (moment === this.outlinesMoment) return;
    this.outlinesMoment = moment;
    try {
      const sites = await this.session.api.outlines();
      if (this.siteImage !== siteImage || this.outlinesMoment !== moment) return;
      siteImage.setOutlines(sites);
      document.body.dataset.outlined = moment;
      this.picture.setSiteImage(siteImage);
      this.displayChanged();
    } catch (error) {
      showError(error);
    }
  }

  applied(settings, note) {
    this.appliedSettings = settings;
    if (note) this.showNote(note);
    this.writeAddress();
    this.requestAnswer();
  }

  showNote(note) {
    this.note = note;
    clearTimeout(this.noteTimer);
    this.noteTimer = setTimeout(() => {
      this.note = null;
      this.showState();
    }, NOTE_DURATION);
  }

  showState() {
    if (this.frame) showState(this.frame, this.note, this.waiting);
  }

  refused(settings, error) {
    if (this.appliedSettings && this.lastChanged === "seeds") {
      this.settings.seeds = this.appliedSettings.seeds;
      this.scribbles.takeBack();
      return showError(error);
    }
    if (this.appliedSettings) {
      this.controls.setAll(this.appliedSettings);
      this.controls.showError(this.lastChanged, `${error.message} The previous settings are kept.`);
      return;
    }
    showError(error);
    const defaults = this.schema.defaults();
    if (Object.keys(defaults).every((name) => settings[name] === defaults[name])) return;
    this.controls.setAll(defaults);
    return this.session.apply(this.applicableSettings());
  }

  showMessage = showMessage;
  failed = showError;

  // Actions of the user.

  // Seeds apply where clusters are connected.
  applicableSettings = () => {
    const settings = this.schema.applicable(this.settings);
    const { connected } = this.schema.chosen("preset", settings);
    return { ...settings, seeds: (connected && settings.seeds) || null };
  };

  seedsChanged() {
    const { siteImage, scribbles, picture, settings, session } = this;
    picture.showStrokes();
    if (!siteImage) return;
    settings.seeds = scribbles.seeds(siteImage, session.api.shape);
    hideError();
    this.display.set({ place: null });
    this.settingChanged("seeds");
  }

  settingChanged(name) {
    this.lastChanged = name;
    if (name === "detail") this.previewDetail();
    this.sendSettings(name === "detail" ? DETAIL_DELAY : SETTINGS_DELAY);
  }

  // Shows the nearest result that is known, until the one that was asked for arrives.
  previewDetail() {
    const detail = this.settings.detail ?? this.schema.chosen("preset", this.settings).values.detail;
    const data = this.poller.kind === "result" && this.details.nearest(detail);
    if (data) this.poller.preview({ kind: "result", data });
  }

  async applySettings() {
    const settings = this.applicableSettings();
    const before = this.appliedSettings ?? {};
    if (Object.keys(settings).every((name) => name === "detail" || settings[name] === before[name])) {
      return this.session.apply(settings); // the draws stay
    }
    const slow = setTimeout(() => {
      this.waiting = "Applying the new settings.";
      this.showState();
    }, BUSY_DELAY);
    await this.poller.suspendDuring(this.session.apply(settings));
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

  displayChanged() {
    this.writeAddress();
    this.requestAnswer();
    this.picture.mark();
    this.present();
  }

  // Requests from the server what is displayed in addition to the frames.
  requestAnswer() {
    const { display, siteImage } = this;
    const { api } = this.session;
    const site = display.place && siteImage?.siteAt(display.place);
    const needed = siteImage && neededAnswer(display);
    const kind = needed === "together" && site < 0 ? null : needed; // a masked pixel has no site
    const questions = { together: () => api.together(site), lines: api?.boundaries, result: () => api.result() };
    const scope = `${api?.path} ${siteImage && this.siteImageNumber}`;
    this.details.setScope(scope);
    const drawn = kind === "lines" ? this.outlinesMoment : this.appliedSettings?.detail;
    this.poller.setQuestion(scope, [scope, kind, site, drawn].join(" "), kind, questions[kind]);
  }

  writeAddress() {
    const { api } = this.session;
    if (!api || !this.appliedSettings) return;
    const { example, display, appliedSettings: settings } = this;
    const defaults = this.schema.defaults();
    writeAddress({ settings, defaults, display, speed: this.runButtons.speed, example, picture: api.name });
  }

  // Displaying.

  // The frame, if it belongs to the site image that is loaded.
  get presentable() {
    const { frame, siteImage } = this;
    if (!siteImage || frame?.scene !== this.siteImageNumber) return null;
    return frame.chains[this.chain]?.labels.length === siteImage.nSites ? frame : null;
  }

  present() {
    const frame = this.presentable;
    if (!frame) return;
    const { display, chain } = this;
    const { answer } = this.poller;
    if (answer?.kind === "result") this.details.keep(answer.data, `${frame.stage} ${answer.data.sweeps}`);
    this.chainList.show(frame.chains, chain);
    this.picture.show(pictureLayers(display, frame.chains[chain], answer));
    write(byId("caption"), caption(display, frame, chain, answer));
    this.showWarning(answer?.kind === "result" ? answer.data.warning : null);
    write(byId("legend-title"), legendTitle(display));
    if (display.showsMap) drawLegend(byId("legend-scale"), display.place ? "together" : "lines");
    byId("slow").hidden = !display.spins || display.showsMap || this.runButtons.speed === "1";
    this.presentRestSoon();
  }

  // What to try where a picture of visible contrast came back as one region.
  showWarning(warning) {
    write(byId("warning"), warning ?? "");
    byId("warning").hidden = !warning;
  }

  // The parts that need not be updated with every frame.
  presentRest() {
    const frame = this.presentable;
    if (!frame) return;
    const { display, chain, siteImage } = this;
    const { answer } = this.poller;
    this.charts.update(this.traces, frame.chains.length);
    showAgreement(frame);
    const { labels } = frame.chains[chain];
    const result = display.result && answer?.kind === "result";
    const areas = siteImage.areasOf(displayedLabels(display, { labels }, answer) ?? labels);
    this.sizes.show(areas, result ? unitName(answer) : "cluster", result ? "the result" : `chain ${chain + 1}`);
    byId("canvas").setAttribute("aria-label", ariaDescription(display, frame, chain, answer, this.session.api.name));
  }
}

try {
  new App(await fetchDescription());
} catch (error) {
  showError(error);
}
