// Ten answers: single draws of the posterior side by side, in a dialog.

import { bytesOf } from "./api.js";
import { byId, make, write } from "./dom.js";

const LOADING = "Fetching the draws.";
const ABOUT =
  "Single draws of the posterior so far. No one of them is the answer: the probabilities count how often they, and " +
  "all others, have a boundary.";

export class Answers {
  // `failed` is called with an Error.
  constructor(failed) {
    this.failed = failed;
    this.dialog = byId("answers");
    byId("ten").addEventListener("click", () => this.show());
    byId("answers-close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.fill([]));
    this.dialog.addEventListener("click", ({ target }) => target === this.dialog && this.dialog.close()); // outside
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

  async show() {
    const { api } = this;
    if (byId("ten").disabled || this.isOpen) return;
    write(byId("answers-about"), LOADING);
    this.dialog.showModal();
    try {
      const found = await api.answers();
      if (api !== this.api || !this.isOpen) return;
      write(byId("answers-about"), ABOUT);
      this.fill(found);
    } catch (error) {
      this.dialog.close(); // it would hide the message
      this.failed(error);
    }
  }

  fill(answers) {
    for (const image of byId("answers-grid").querySelectorAll("img")) URL.revokeObjectURL(image.src);
    byId("answers-grid").replaceChildren(...answers.map(figure));
  }
}

function figure({ words, picture }) {
  const src = URL.createObjectURL(new Blob([bytesOf(picture)], { type: "image/jpeg" }));
  return make("figure", {}, make("img", { src, alt: `Outlines of one draw. ${words}` }), make("figcaption", {}, words));
}
