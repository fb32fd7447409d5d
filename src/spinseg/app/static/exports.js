// Downloads, and the Python and the command that repeat the run, with buttons that copy them.

import { byId, write } from "./dom.js";

const NOW = "The result as it is now, in the picture's full size.";
const LATER = "There is something to repeat after the first sweep.";
const RESTING = ["paused", "done"];
const BEGUN_ANEW = 409; // no sweep since
const COPIED = 1500; // milliseconds for which a button says so

export class Exports {
  constructor(failed) {
    this.failed = failed;
    this.links = [...document.querySelectorAll("[data-export]")];
    byId("repeat-section").addEventListener("toggle", () => this.refresh());
    for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
    this.setReady(false);
  }

  open(page) {
    this.page = page;
    this.setReady(false);
  }

  // What is shown while the chains rest is what would be exported.
  heard({ state, stage, sweeps }) {
    this.setReady(sweeps > 0);
    const moment = RESTING.includes(state) ? `${stage} ${sweeps}` : null;
    if (moment && moment !== this.rested) this.refresh();
    this.rested = moment;
  }

  // Before the first sweep there is nothing to export.
  setReady(ready) {
    if (ready === this.ready && this.page === this.readyFor) return;
    Object.assign(this, { ready, readyFor: this.page });
    write(byId("export-note"), ready ? NOW : "There is something to export after the first sweep.");
    for (const link of this.links) {
      if (ready) link.href = this.page.exportPath(link.dataset.export);
      else link.removeAttribute("href");
      link.setAttribute("aria-disabled", String(!ready));
    }
    if (ready) this.refresh();
    else this.show({ python: "", command: null, note: LATER });
  }

  async refresh() {
    const { page } = this;
    if (!this.ready || !byId("repeat-section").open) return;
    try {
      const found = await page.repeat();
      if (page === this.page && this.ready) this.show(found);
    } catch (error) {
      if (error.status !== BEGUN_ANEW) this.failed(error);
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
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = "Selected: copy it by keyboard";
  }
  button.disabled = true;
  setTimeout(() => Object.assign(button, { textContent: words, disabled: false }), COPIED);
}
