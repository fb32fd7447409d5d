// The start page: an image is dropped, pasted, chosen as a file, or one of the examples.

import { byId, byPointer, make, write } from "./dom.js";

const STAYS = "The image stays on this computer.";

export class StartPage {
  // `choose` is called with {file} or {example}, `failed` with an Error.
  constructor({ examples, limits }, choose, failed) {
    this.limits = limits;
    this.choose = choose;
    this.failed = failed;
    this.askFor(null);
    byId("examples").append(...examples.map((example) => this.card(example)));
    byId("choose").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", () => this.openChosen());
    addEventListener("paste", ({ clipboardData }) => this.openFirst(clipboardData.files));
    this.acceptDrops();
    this.openChosen(); // a file may have been chosen before this script ran
  }

  card({ name, credit, picture }) {
    const image = make("img", { src: picture, alt: `${name}, ${credit}`, loading: "eager" });
    const caption = make("span", {}, name);
    const button = make("button", { type: "button", className: "example", title: credit }, image, caption);
    button.dataset.name = name;
    button.addEventListener("click", () => this.choose({ example: name }));
    return button;
  }

  acceptDrops() {
    const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
    const overlay = byId("dropping");
    addEventListener("dragover", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      overlay.hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) overlay.hidden = true;
    });
    addEventListener("drop", (event) => {
      overlay.hidden = true;
      if (!carriesFiles(event)) return;
      event.preventDefault();
      this.openFirst(event.dataTransfer.files);
    });
  }

  openChosen() {
    this.openFirst(byId("file").files);
    byId("file").value = ""; // so that the same file can be chosen again
  }

  openFirst([file]) {
    if (!file) return;
    const limit = this.limits.upload_bytes;
    const megabytes = (bytes) => `${Math.ceil(bytes / 2 ** 20)} MB`;
    if (file.size <= limit) this.choose({ file, reading: this.readingOptions() });
    else this.failed(new Error(`This file has ${megabytes(file.size)}; the maximum is ${megabytes(limit)}.`));
  }

  // How to read the file, as the server takes it; what is left to the program is not there.
  readingOptions() {
    const axis = byId("channel-axis").value;
    const ends = ["intensity-low", "intensity-high"].map((id) => byId(id).value);
    return {
      ...(axis === "auto" ? {} : { channel_axis: axis }),
      ...(ends.some(Boolean) ? { intensity_range: ends.join(",") } : {}),
    };
  }

  // Asks for an image; for that of a link with settings, which only the user has.
  askFor(picture, fromLink = false) {
    const wanted = picture ?? "an image";
    write(byId("invitation"), byPointer(`Drop ${wanted} here`, `Choose ${wanted}`));
    write(byId("drop-note"), `${fromLink ? "The link contains the settings, but not the image. " : ""}${STAYS}`);
  }
}
