// The ways a picture comes in: dropped anywhere, pasted, chosen as a file, or one of the examples.

import { byId, make, write } from "./dom.js";

export class Welcome {
  // `chose` is called with {file} or {example}, `failed` with an Error.
  constructor({ examples, limits }, chose, failed) {
    this.limits = limits;
    this.chose = chose;
    this.failed = failed;
    byId("examples").append(...examples.map((example) => this.card(example)));
    byId("choose").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", () => this.takeChosen());
    addEventListener("paste", ({ clipboardData }) => this.take(clipboardData.files));
    this.acceptDrops();
    this.takeChosen(); // somebody may have been quicker than this page
  }

  card({ name, credit, picture }) {
    const image = make("img", { src: picture, alt: `${name}, ${credit}`, loading: "eager" });
    const caption = make("span", {}, name);
    const button = make("button", { type: "button", className: "example", title: credit }, image, caption);
    button.dataset.name = name;
    button.addEventListener("click", () => this.chose({ example: name }));
    return button;
  }

  acceptDrops() {
    const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
    const cover = byId("dropping");
    addEventListener("dragover", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      cover.hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) cover.hidden = true;
    });
    addEventListener("drop", (event) => {
      cover.hidden = true;
      if (!carriesFiles(event)) return;
      event.preventDefault();
      this.take(event.dataTransfer.files);
    });
  }

  takeChosen() {
    this.take(byId("file").files);
    byId("file").value = ""; // so that the same file can be chosen again
  }

  take([file]) {
    if (!file) return;
    const most = this.limits.upload_bytes;
    const megabytes = (bytes) => `${Math.ceil(bytes / 2 ** 20)} MB`;
    if (file.size <= most) this.chose({ file });
    else this.failed(new Error(`This file has ${megabytes(file.size)}; ${megabytes(most)} are the most.`));
  }

  // A link brought settings for a picture that only the person has.
  askFor(picture) {
    write(byId("invitation"), picture ? `Drop ${picture} here` : "Drop a photograph here");
    write(byId("drop-note"), "This link brought its settings; only the picture is missing. It stays on this computer.");
  }
}
