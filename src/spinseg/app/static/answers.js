// Ten draws of the posterior side by side, in a dialog; each can be enlarged, and chosen for the large image.

import { byId, byPointer, make, write } from "./dom.js";

const LOADING = "Fetching the draws.";
const ABOUT =
  "Single draws of the posterior so far. None of them is the result: the probabilities count how often these and all " +
  `other draws have a boundary. ${byPointer("Click", "Tap")} one to enlarge it.`;

export class Answers {
  // `choose` is called with a draw, {words, n_regions, labels}; `navigate` with {draws} opens and closes the dialog,
  // so that the browser's Back does the same; `failed` is called with an Error.
  constructor({ choose, navigate, failed }) {
    Object.assign(this, { choose, navigate, failed, found: [] });
    this.dialog = byId("answers");
    byId("ten").addEventListener("click", () => this.show());
    byId("answers-close").addEventListener("click", () => history.back());
    byId("answers-choose").addEventListener("click", () => this.choose(this.found[history.state.draws]));
    this.dialog.addEventListener("click", ({ target }) => target === this.dialog && history.back()); // outside
    this.dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      history.back();
    });
    this.dialog.addEventListener("close", () => {
      const { draws } = history.state; // of a dialog that the browser has closed
      if (draws !== undefined) history.go(draws === "all" ? -1 : -2);
    });
  }

  get isOpen() {
    return this.dialog.open;
  }

  open(api) {
    this.api = api;
    this.dialog.close();
    this.receive({ sweeps: 0 });
  }

  receive({ sweeps }) {
    byId("ten").disabled = sweeps === 0;
  }

  setSiteImage(siteImage) {
    this.siteImage = siteImage;
  }

  async show() {
    const { api } = this;
    if (byId("ten").disabled || this.isOpen) return;
    this.found = [];
    this.navigate({ draws: "all" });
    try {
      const found = await api.answers();
      if (api !== this.api || !this.isOpen) return;
      this.found = found;
      this.turnTo(history.state.draws);
    } catch (error) {
      history.back(); // the dialog would hide the message
      this.failed(error);
    }
  }

  // Shows "all" draws, the one of this number, or none for undefined.
  turnTo(draws) {
    if (draws === undefined || (draws !== "all" && !this.found[draws])) return this.dialog.close();
    const all = draws === "all";
    write(byId("answers-title"), all ? "Ten draws" : `Draw ${draws + 1} of ${this.found.length}`);
    write(byId("answers-close"), all ? "Close" : "All draws");
    write(byId("answers-about"), !all ? this.found[draws].words : this.found.length ? ABOUT : LOADING);
    byId("answers-choose").hidden = all;
    byId("answers-grid").hidden = !all;
    byId("answers-one").hidden = all;
    if (all) byId("answers-grid").replaceChildren(...this.found.map((draw, i) => this.thumbnail(draw, i)));
    else byId("answers-one").replaceChildren(this.painted(this.found[draws]));
    if (!this.dialog.open) this.dialog.showModal();
  }

  painted({ words, labels }) {
    const canvas = this.siteImage.outlined(labels);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Outlines of one draw. ${words}`);
    return canvas;
  }

  thumbnail(draw, i) {
    const button = make("button", { type: "button", title: "Enlarge" }, this.painted(draw), make("span", {}, draw.words));
    button.addEventListener("click", () => this.navigate({ draws: i }));
    return button;
  }
}
