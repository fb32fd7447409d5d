// Downloads, and the Python code and the command that repeat the run, with buttons that copy them.

import { byId, write } from "./dom.js";

const READY = "The present result, in the full size of the image.";
const NOTHING_TO_EXPORT = "There is nothing to export before the first sweep.";
const NOTHING_TO_REPEAT = "There is nothing to repeat before the first sweep.";
const STOPPED = ["paused", "done"];
const NO_DRAWS = 409; // status after a restart
const COPIED_DURATION = 1500; // milliseconds

export class Exports {
  constructor(failed) {
    this.failed = failed;
    this.links = [...document.querySelectorAll("[data-export]")];
    byId("repeat-section").addEventListener("toggle", () => this.refresh());
    for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
    this.setReady(false);
  }

  open(api) {
    this.api = api;
    this.setReady(false);
  }

  // The code is updated whenever the chains have stopped.
  receive({ state, stage, sweeps }) {
    this.setReady(sweeps > 0);
    const moment = STOPPED.includes(state) ? `${stage} ${sweeps}` : null;
    if (moment && moment !== this.stoppedAt) this.refresh();
    this.stoppedAt = moment;
  }

  setReady(ready) {
    if (ready === this.ready && this.api === this.readyFor) return;
    Object.assign(this, { ready, readyFor: this.api });
    write(byId("export-note"), ready ? READY : NOTHING_TO_EXPORT);
    for (const link of this.links) {
      if (ready) link.href = this.api.exportPath(link.dataset.export);
      else link.removeAttribute("href");
      link.setAttribute("aria-disabled", String(!ready));
    }
    if (ready) this.refresh();
    else this.show({ python: "", command: null, note: NOTHING_TO_REPEAT });
  }

  async refresh() {
    const { api } = this;
    if (!this.ready || !byId("repeat-section").open) return;
    try {
      const found = await api.repeat();
      if (api === this.api && this.ready) this.show(found);
    } catch (error) {
      if (error.status !== NO_DRAWS) this.failed(error);
    }
  }

  show(found) {
    for (const name of ["python", "command"]) {
      write(byId(name), found[name] ?? "");
      byId(name).parentElement.hidden = !found[name];
    }
    write(byId("repeat-note"), found.note ?? "");
  }
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
