// The large picture and what one does to it: zoom, pan, and choose a place, by pointer or by keys.

import { Cursor } from "./cursor.js";
import { Stage } from "./stage.js";
import { View } from "./view.js";

const DOUBLE = 500; // milliseconds within which a second click may make a double click
const STEP = 1.5;

export class LargePicture {
  constructor(canvas, palette, look) {
    this.look = look;
    this.clickedAt = -Infinity;
    const chose = (place) => look.set({ place });
    this.view = new View(canvas, { changed: () => this.stage?.refresh(), clicked: (place) => this.clicked(place) });
    this.stage = new Stage(canvas, this.view, palette);
    this.cursor = new Cursor(canvas, this.view, { moved: () => this.mark(), chosen: chose });
    canvas.addEventListener("dblclick", () => {
      this.fit();
      if (this.justClicked) chose(this.placeBefore);
    });
  }

  zoomIn = () => this.view.zoom(STEP);
  zoomOut = () => this.view.zoom(1 / STEP);
  fit = () => this.view.fit();
  show = (shown) => this.stage.show(shown);

  setScene(scene) {
    this.stage.setScene(scene);
    this.view.show(scene);
  }

  // The first click of a double click chooses a place too; what was chosen before is remembered.
  clicked(place) {
    if (!this.justClicked) this.placeBefore = this.look.place;
    this.clickedAt = performance.now();
    this.look.set({ place });
  }

  get justClicked() {
    return performance.now() - this.clickedAt < DOUBLE;
  }

  mark() {
    const marks = [{ place: this.look.place, kind: "chosen" }, { place: this.cursor.place, kind: "cursor" }];
    this.stage.marks = marks.filter(({ place }) => place);
    this.stage.refresh();
  }
}
