// Downloads, and the Python code and the command that repeat the run, with buttons that copy them.

import { isFinished } from "./chains.js";
import { byId, byPointer, make, write } from "./dom.js";

const READY = "The result as displayed, at the full size of the image.";
const NOTHING_TO_EXPORT = "There is nothing to export yet.";
const NOTHING_TO_REPEAT = "There is nothing to repeat yet.";
const NO_PLACE = byPointer("Click a region first", "Tap a region first");
const PLACE = byPointer("The one that you clicked last", "The one that you tapped last");
const STOPPED = ["paused", "done"];
const NO_DRAWS = 409; // status after a restart
const HIGHLIGHTED = 700; // milliseconds
const COPIED_DURATION = 1500; // milliseconds

export class Exports {
  constructor(failed) {
    this.failed = failed;
    this.buttons = [...document.querySelectorAll("[data-export]")];
    this.place = null; // a pixel of the region to cut out, [row, column]
    byId("export").addEventListener("click", () => this.reveal());
    byId("repeat-section").addEventListener("toggle", () => this.refresh());
    for (const button of this.buttons) button.addEventListener("click", () => this.download(button));
    for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
    this.show(false);
  }

  open(api) {
    Object.assign(this, { api, preparing: null, place: null });
    this.show(false);
  }

  setPlace(place) {
    this.place = place;
    this.show(this.ready);
  }

  // Where the exports are, which is below the image on a narrow screen.
  reveal() {
    byId("export-section").scrollIntoView({ block: "nearest" });
    byId("export-section").animate({ background: ["var(--accent)", "transparent"] }, HIGHLIGHTED);
    this.buttons[0].focus({ preventScroll: true });
  }

  // The code is updated whenever the chains have stopped.
  receive(frame) {
    const { state, stage, sweeps } = frame;
    byId("export").classList.toggle("primary", isFinished(frame));
    const moment = STOPPED.includes(state) ? `${stage} ${sweeps}` : null;
    const refresh = sweeps > 0 && (!this.ready || (moment && moment !== this.stoppedAt));
    this.stoppedAt = moment;
    this.show(sweeps > 0);
    if (refresh) this.refresh();
  }

  show(ready) {
    const { preparing } = this;
    this.ready = ready;
    const note = preparing ? `Preparing ${preparing}… The chains pause meanwhile.` : ready ? READY : NOTHING_TO_EXPORT;
    write(byId("export-note"), note);
    byId("export-note").classList.toggle("busy", Boolean(preparing));
    for (const button of this.buttons) button.disabled = !ready || Boolean(preparing);
    byId("cutout").disabled ||= !this.place;
    write(byId("cutout-note"), this.place ? PLACE : NO_PLACE);
    byId("export").disabled = !ready;
    if (!ready) this.showCode({ python: "", command: null, note: NOTHING_TO_REPEAT });
  }

  async download(button) {
    const { api } = this;
    const name = (this.preparing = button.dataset.export);
    this.show(this.ready);
    try {
      const blob = await api.exported(name, button.id === "cutout" ? this.place : undefined);
      save(blob, `${api.name.replace(/\.[^.]*$/, "")}_${name}`);
    } catch (error) {
      if (api === this.api) this.failed(error);
    }
    if (api !== this.api) return;
    this.preparing = null;
    this.show(this.ready);
    button.focus(); // which it lost when it was disabled
  }

  async refresh() {
    const { api } = this;
    if (!this.ready || !byId("repeat-section").open) return;
    try {
      const found = await api.repeat();
      if (api === this.api && this.ready) this.showCode(found);
    } catch (error) {
      if (error.status !== NO_DRAWS) this.failed(error);
    }
  }

  showCode(found) {
    for (const name of ["python", "command"]) {
      write(byId(name), found[name] ?? "");
      byId(name).parentElement.hidden = !found[name];
    }
    write(byId("repeat-note"), found.note ?? "");
  }
}

function save(blob, name) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000); // the browser may still be asking where to save it
}

async function copy(button) {
  const source = byId(button.dataset.copy);
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = "Selected: copy it with the keyboard";
  }
  button.disabled = true;
  setTimeout(() => Object.assign(button, { textContent: label, disabled: false }), COPIED_DURATION);
}
