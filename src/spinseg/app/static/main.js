// The web app as a whole: creates its parts and connects them.

import { Answers } from "./answers.js";
import { bytesOf, fetchDescription } from "./api.js";
import { ChainList, RunButtons, showAgreement } from "./chains.js";
import { SizeChart, TraceCharts, Traces } from "./charts.js";
import { Controls, SPEEDS, SettingsSchema, readAddress, writeAddress } from "./controls.js";
import {
  DisplayOptions, ariaDescription, caption, displayedPartition, legendTitle, neededAnswer, pictureLayers, valueAt,
} from "./display.js";
import {
  byId, count, counted, debounced, hideError, onKeys, showError, showErrorUntilAction, showMessage, showState, throttled,
  write,
} from "./dom.js";
import { Exports } from "./exports.js";
import { DetailResults, Poller, Sites } from "./fetching.js";
import { drawLegend, packedPalette, pixelInImage, setOutlineColors } from "./painting.js";
import { Scribbles } from "./scribbles.js";
import { Session } from "./session.js";
import { StartPage } from "./start.js";
import { PictureView } from "./view.js";

// Milliseconds from the last change until the settings are sent. The detail restarts nothing, and a stroke is complete.
const SETTINGS_DELAY = 250;
const SHORT_DELAYS = { detail: 40, seeds: 0 };
const NOTE_DURATION = 8000; // milliseconds
const UNKNOWN_FRAME = { state: "building", sweeps: 0, agreement: null, chains: [], per_second: null };
const APPLYING = "Applying the change.";
const DISCARD = "Another image discards the scribbles. Open it?";
const MIN_SWEEPS = 8; // after a change, before new outlines replace the old ones: the first few are far from typical
const COMMON = ["preset", "detail"]; // settings that are not under Advanced

class App {
  constructor(description) {
    const palette = packedPalette(bytesOf(description.palette));
    setOutlineColors(description.outlines);
    this.schema = new SettingsSchema(description);
    const found = readAddress(this.schema, description.examples.map(({ name }) => name));
    this.settings = { ...this.schema.defaults(), ...found.settings };
    byId("speed").value = found.speed;
    byId("advanced").open = Object.keys(found.settings).some((name) => !COMMON.includes(name));

    this.sources = []; // of all images that were opened, for the browser's Back
    this.session = new Session(this, SPEEDS[found.speed]);
    this.sites = new Sites((what) => this.sitesChanged(what), showError);
    this.display = new DisplayOptions(() => this.displayChanged());
    this.controls = new Controls(this.schema, this.settings, (name) => this.settingChanged(name));
    this.sendSettings = debounced(() => this.applySettings(), SETTINGS_DELAY);
    this.runButtons = new RunButtons(this.session, () => this.displayChanged(), showError);
    this.exports = new Exports(showError);
    const choose = (draw) => this.chooseDraw(draw);
    this.answers = new Answers({ choose, navigate: (to) => this.navigate(to), failed: showError });
    this.charts = new TraceCharts();
    this.sizes = new SizeChart(palette);
    this.chainList = new ChainList(palette, description.starts, (chain) => this.showChain(chain));
    this.poller = new Poller(() => this.answered(), showError);
    this.details = new DetailResults(() => Boolean(this.poller.busy));
    this.presentRestSoon = throttled(() => this.presentRest(), 250);
    const showStrokes = () => this.picture.showStrokes();
    this.scribbles = new Scribbles(() => this.seedsChanged(), showStrokes, showErrorUntilAction);
    this.picture = new PictureView(byId("canvas"), palette, this.display, this.scribbles, () => this.showValue());
    this.startPage = new StartPage(description, (source) => this.open(source), showError);
    this.connectButtons();
    this.display.set(found.display);

    history.replaceState({ image: null }, "");
    if (found.example) this.open({ example: found.example }, "replaceState");
    else if (Object.keys(found.settings).length || found.picture) this.startPage.askFor(found.picture, true);
  }

  connectButtons() {
    const { runButtons, picture } = this;
    byId("zoom-in").addEventListener("click", picture.zoomIn);
    byId("zoom-out").addEventListener("click", picture.zoomOut);
    byId("zoom-fit").addEventListener("click", picture.fit);
    byId("another").addEventListener("click", () => this.navigate({ image: null }));
    byId("back").addEventListener("click", () => this.navigate({ image: this.image }));
    byId("error-close").addEventListener("click", hideError);
    addEventListener("popstate", ({ state }) => this.navigated(state));
    addEventListener("beforeunload", (event) => this.scribbles.strokes.length && event.preventDefault());

    const keys = { " ": runButtons.toggle, s: runButtons.step, r: runButtons.restart };
    Object.assign(keys, { "+": picture.zoomIn, "=": picture.zoomIn, "-": picture.zoomOut, 0: picture.fit });
    Object.assign(keys, { "?": () => this.showKeys(), Escape: () => this.display.close() });
    keys.a = () => this.answers.show();
    for (const n of [1, 2, 3, 4]) keys[n] = () => this.showChain(n - 1);
    onKeys(keys, () => !byId("work").hidden && !this.answers.isOpen);
  }

  // Where the user is: {image, draws}, the number of the image or null for the start page, and what `Answers.turnTo`
  // takes. The browser's history has it, so that Back works.

  navigate(to) {
    history.pushState("image" in to ? to : { ...history.state, ...to }, "", to.image === null ? location.pathname : null);
    this.navigated(history.state);
  }

  navigated(state) {
    if (state === null) return location.reload(); // another link was typed
    this.answers.turnTo(state.draws);
    if (state.image === null) this.showStartPage(true);
    else if (state.image === this.image) this.showStartPage(false);
    else if (this.sources[state.image]) this.open(this.sources[state.image], null);
    else location.reload();
  }

  // Opening an image; `entry` is how it gets into the browser's history, null if it is there.

  async open(source, entry = "pushState") {
    if (entry && this.scribbles.strokes.length && !confirm(DISCARD)) return;
    hideError();
    document.body.dataset.state = "opening";
    this.entry = entry;
    try {
      await this.session.open(source, { ...this.applicableSettings(), seeds: null });
    } catch (error) {
      showError(error);
    }
    if (document.body.dataset.state === "opening") document.body.dataset.state = this.frame?.state ?? "welcome";
  }

  showStartPage(choosing) {
    if (choosing === byId("work").hidden) return;
    if (choosing) this.resume = this.session.running || this.session.willRun;
    if (choosing && this.resume) this.runButtons.reportErrors(this.session.pause());
    if (!choosing && this.resume) this.runButtons.reportErrors(this.session.run());
    byId("welcome").hidden = !choosing;
    byId("work").hidden = byId("another").hidden = byId("picture-name").hidden = choosing;
    byId("back").hidden = !choosing;
    scrollTo(0, 0);
    (choosing ? byId("choose") : byId("another")).focus();
    this.writeAddress();
  }

  // Calls from the session.

  opened(api, source) {
    const [rows, columns] = api.shape;
    Object.assign(document.body.dataset, { state: "building", stage: 0, sweeps: 0, outlined: "" });
    Object.assign(this, { example: source.example, traces: new Traces(), chain: 0, resume: false });
    this.frame = this.said = this.appliedSettings = this.partition = null;
    this.outlined = null; // the stage of the latest result that was displayed
    this.changing = this.applying = this.isApplied = false;
    if (!this.sources.includes(source)) this.sources.push(source);
    this.image = this.sources.indexOf(source);
    if (this.entry) history[this.entry]({ image: this.image }, "");
    this.entry = null;
    document.title = `${api.name} - spinseg`;
    write(byId("picture-file"), api.name);
    write(byId("picture-size"), `, ${count(columns)} × ${count(rows)} pixels`);
    write(byId("read-as"), `Read as ${api.readAs}${api.readOtherwise ? `; ${api.readOtherwise}` : "."}`);
    this.showWarning(null);
    write(byId("back"), `Back to ${api.name}`);
    const leaving = byId("welcome").contains(document.activeElement);
    byId("welcome").hidden = true;
    byId("work").hidden = byId("another").hidden = byId("picture-name").hidden = false;
    if (leaving) byId("run").focus({ preventScroll: true });
    byId("frame").style.setProperty("--aspect", api.shown[1] / api.shown[0]);
    this.exports.open(api);
    this.answers.open(api);
    this.display.set({ place: null, lastPlace: null, draw: null });
    if (!this.session.settings.seeds) {
      this.settings.seeds = null;
      this.appliedStrokes = [];
      this.scribbles.forget();
    }
    this.picture.showStrokes();
    write(byId("caption"), "");
    showMessage("Reading the image.");
    showAgreement(UNKNOWN_FRAME);
    this.runButtons.show(UNKNOWN_FRAME, true);
    scrollTo(0, 0);
    this.sites.open(api);
  }

  receive(frame) {
    const before = this.frame;
    this.frame = frame;
    this.doing = frame.doing ?? this.doing;
    if (frame.chains.length && frame !== before) this.traces.add(frame);
    this.chain = Math.min(this.chain, Math.max(0, frame.chains.length - 1));
    Object.assign(document.body.dataset, { stage: frame.stage, sweeps: frame.sweeps });
    this.scribbles.allow(this.schema.chosen("preset", this.session.settings).connected);
    if (this.schema.took !== (frame.preset ?? null)) {
      this.schema.took = frame.preset ?? null;
      this.controls.show();
    }
    if (frame.stage !== before?.stage) this.showNote(frame.note);
    if (this.isApplied) this.changing = this.applying = this.isApplied = false;
    this.sites.receive(frame);
    this.requestAnswer(); // none while the sites are fetched
    const fast = frame.state === "running" && this.runButtons.speed === "full";
    const needed = fast && this.outlined && this.outlined !== frame.stage ? MIN_SWEEPS : 1;
    const moment = frame.sweeps >= needed ? `${frame.stage} ${frame.sweeps}` : null;
    this.poller.setMoment(moment, frame.state !== "running");
    const known = frame.n_details > 1 && this.sites.isReady ? moment : null;
    this.details.setMoment(known, this.session.api, frame.state === "running");
    this.present();
    this.say();
  }

  // Says where the chains are. Those that have stopped by themselves are said to run until the result of all their
  // sweeps is displayed, so that it does not change any more once they are said to have converged.
  say() {
    const { frame, said: before } = this;
    if (!frame) return;
    const stopped = frame.state === "paused" && frame.agreement?.enough && this.session.running;
    const { isReady, awaited } = this.sites;
    const waits = stopped && !(isReady && !awaited && this.poller.isUpToDate);
    const known = before?.stage === frame.stage ? before.agreement : null;
    this.said = waits ? { ...frame, state: "running", agreement: known } : frame;
    const { state, agreement, sweeps } = this.said;
    Object.assign(document.body.dataset, { state, enough: Boolean(agreement?.enough) });
    if (before?.state === "running" && agreement?.enough && state === "paused") {
      this.showNote(`${agreement.converged ? "Converged" : "More sweeps are of no use"} after ${count(sweeps)} sweeps.`);
    }
    if (!this.isPreparing) this.runButtons.receive(this.said);
    this.showState();
  }

  answered() {
    this.present();
    this.say();
  }

  // The image, its sites or their outlines have arrived.
  sitesChanged(what) {
    const { image } = this.sites;
    if (what === "image") {
      this.picture.setSiteImage(image);
      this.answers.setSiteImage(image);
      if (this.frame) this.receive(this.frame);
    } else if (what === "sites") {
      this.chainList.setSiteImage(image);
      this.display.set({ draw: null });
    } else {
      document.body.dataset.outlined = this.sites.outlined;
      this.picture.repaint();
      this.displayChanged();
      this.say();
    }
  }

  // The first answer to scribbles, from the draws that there are; null where they cannot be used.
  conditioned(data) {
    this.changing = !data;
    if (data) this.poller.preview({ kind: "result", data }, true);
    else this.present();
  }

  // The next frame is of these settings, unless one of their chains has come already.
  applied(settings, strokes = this.appliedStrokes) {
    this.appliedSettings = settings;
    this.appliedStrokes = strokes;
    this.isApplied = true;
    this.writeAddress();
    this.requestAnswer();
    if (this.frame && this.frame.stage !== this.stageBefore) this.receive(this.frame);
  }

  showNote(note) {
    this.note = note;
    clearTimeout(this.noteTimer);
    this.noteTimer = setTimeout(() => {
      this.note = null;
      this.showState();
    }, NOTE_DURATION);
  }

  // Whether there will soon be another posterior, for which nothing holds that is known of the present one.
  get isPreparing() {
    return this.applying || Boolean(this.frame?.doing);
  }

  // Everything that says what is being done, or what is known so far, says it of the same state.
  showState() {
    if (!this.said) return;
    const { said, isPreparing, session } = this;
    const state = said.state === "paused" && session.willRun ? "running" : said.state;
    const known = isPreparing ? { sweeps: 0, agreement: null, doing: this.doing } : {};
    const shown = { ...said, state, ...known };
    showState(shown, this.note);
    showAgreement(shown);
    this.runButtons.show(shown, isPreparing);
    this.exports.receive(shown);
    this.answers.receive(shown);
  }

  refused(settings, error) {
    this.changing = this.applying = false;
    this.present();
    this.showState();
    if (this.appliedSettings && this.lastChanged === "seeds") {
      const n = this.scribbles.strokes.length - this.appliedStrokes.length;
      const removed = n > 0 ? ` The last ${n === 1 ? "stroke was" : `${counted(n, "stroke")} were`} removed.` : "";
      this.settings.seeds = this.appliedSettings.seeds;
      this.scribbles.restore(this.appliedStrokes);
      return showErrorUntilAction(new Error(error.message + removed));
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

  // Scribbles apply where regions are connected.
  applicableSettings = () => {
    const settings = this.schema.applicable(this.settings);
    const { connected } = this.schema.chosen("preset", settings);
    return { ...settings, seeds: (connected && settings.seeds) || null };
  };

  seedsChanged() {
    const { sites, scribbles, picture, settings, session } = this;
    picture.showStrokes();
    if (!sites.isReady) return;
    settings.seeds = scribbles.seeds(sites.image, session.api.shape);
    hideError();
    this.display.set({ place: null, lastPlace: null, draw: null }); // its region may be another one now
    this.settingChanged("seeds");
  }

  settingChanged(name) {
    this.lastChanged = name;
    if (name === "detail") this.previewDetail();
    else if (this.frame) Object.assign(this, { applying: true, doing: APPLYING });
    if (!["detail", "seeds"].includes(name)) this.changing = true;
    this.present();
    this.showState();
    this.sendSettings(SHORT_DELAYS[name]);
  }

  // Shows the nearest result that is known, until the one that was asked for arrives.
  previewDetail() {
    const detail = this.settings.detail ?? this.schema.preset(this.settings).values.detail;
    const data = this.poller.kind === "result" && this.details.nearest(detail);
    if (data) this.poller.preview({ kind: "result", data });
  }

  async applySettings() {
    const settings = this.applicableSettings();
    const before = this.appliedSettings ?? {};
    this.stageBefore = this.frame?.stage;
    const applied = this.session.apply(settings, this.scribbles.strokes);
    if (Object.keys(settings).every((name) => name === "detail" || settings[name] === before[name])) return applied;
    return this.poller.suspendDuring(applied); // the draws do not stay
  }

  showChain(chain) {
    if (chain >= (this.frame?.chains.length ?? 0)) return;
    this.chain = chain;
    this.present();
  }

  chooseDraw(draw) {
    history.go(-2); // the dialog closes
    this.display.set({ draw, result: true, boundaries: false, place: null });
  }

  showKeys() {
    byId("advanced").open = byId("keys-section").open = true;
    byId("keys-section").scrollIntoView({ block: "nearest" });
    byId("keys-section").querySelector("summary").focus();
  }

  displayChanged() {
    this.writeAddress();
    this.requestAnswer();
    this.picture.mark();
    this.present();
    this.showPlace();
  }

  // The region that can be cut out: there is none where the image is masked.
  showPlace() {
    const { isReady, image } = this.sites;
    const { lastPlace } = this.display;
    const inRegion = isReady && lastPlace && image.siteAt(lastPlace) >= 0;
    this.exports.setPlace(inRegion ? pixelInImage(lastPlace, image, this.session.api.shape) : null);
  }

  // Requests from the server what is displayed in addition to the frames.
  requestAnswer() {
    const { display } = this;
    const { api } = this.session;
    const { isReady, image, scene, outlined } = this.sites;
    const site = isReady && display.place && image.siteAt(display.place);
    const needed = isReady && neededAnswer(display);
    const kind = needed === "together" && site < 0 ? null : needed; // a masked pixel has no site
    const questions = { together: () => api.together(site), lines: api?.boundaries, result: () => api.result() };
    const scope = `${api?.path} ${isReady && scene}`;
    this.details.setScope(scope);
    const drawn = kind === "lines" ? outlined : this.appliedSettings?.detail;
    this.poller.setQuestion(scope, [scope, kind, site, drawn].join(" "), kind, questions[kind]);
  }

  writeAddress() {
    const { api } = this.session;
    if (!api || !this.appliedSettings || history.state?.image !== this.image) return;
    const { example, display, appliedSettings: settings } = this;
    const defaults = this.schema.defaults();
    writeAddress({ settings, defaults, display, speed: this.runButtons.speed, example, picture: api.name });
  }

  // Displaying.

  present() {
    const { display, chain, frame, sites } = this;
    if (!sites.fits(frame, chain) || this.changing) return sites.image && this.picture.dim(); // what was painted last
    const { answer } = this.poller;
    const result = display.showsMap ? this.poller.result : answer;
    this.partition = displayedPartition(display, frame, chain, result, !this.outlined);
    if (answer?.kind === "result") this.details.keep(answer.data, `${frame.stage} ${answer.data.sweeps}`);
    this.chainList.show(frame, chain);
    const layers = pictureLayers(display, frame.chains[chain], this.partition, answer);
    if (layers) this.picture.show(layers);
    else this.picture.dim();
    if (answer?.kind === "result" && !this.poller.held) this.outlined = frame.stage;
    write(byId("caption"), caption(display, frame, this.partition, answer, this.scribbles.isDrawing));
    write(byId("clusters"), this.partition ? count(this.partition.n) : "–");
    write(byId("unit"), frame.unit === "region" ? "Regions" : "Clusters");
    this.showValue();
    this.showWarning(answer?.kind === "result" ? answer.data.warning : null);
    write(byId("legend-title"), legendTitle(display));
    if (display.showsMap) drawLegend(byId("legend-scale"), display.place ? "together" : "lines");
    byId("slow").hidden = !display.spins || display.showsMap || this.runButtons.speed === "1";
    this.presentRestSoon();
  }

  // The value under the pointer.
  showValue() {
    const { sites, partition, display, frame, chain } = this;
    const place = sites.fits(frame, chain) && this.picture.pointedAt;
    write(byId("value"), place ? valueAt(place, display, sites.image, partition, this.poller.answer) : "");
  }

  // What to try where an image of visible contrast came back as one region.
  showWarning(warning) {
    write(byId("warning"), warning ?? "");
    byId("warning").hidden = !warning;
  }

  // The parts that need not be updated with every frame.
  presentRest() {
    const { display, sites, partition, frame, chain } = this;
    if (!sites.fits(frame, chain)) return;
    this.charts.update(this.traces, frame.chains.length);
    if (partition) this.sizes.show(sites.image.sizesOf(partition.labels), partition);
    byId("canvas").setAttribute("aria-label", ariaDescription(display, frame, partition, this.session.api.name));
  }
}

try {
  new App(await fetchDescription());
} catch (error) {
  showError(error);
}
