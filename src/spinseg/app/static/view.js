// The large image: zooming, panning and choosing a place, by pointer or keyboard. All lengths are CSS pixels.

import { PictureCanvas } from "./painting.js";

const MAX_SCALE = 40; // CSS pixels for a pixel of the image
const CLICK_TOLERANCE = 4; // a pointer that moved less is a click

// Zoom and pan.
class Viewport {
  // `listener` has changed(), clicked({x, y}) with a pixel of the image, pointed(pixel or null), isDrawing(), and
  // drawn(pixel, phase) with the phases "begin", "extend" and "end".
  constructor(canvas, listener) {
    this.canvas = canvas;
    this.listener = listener;
    this.picture = { width: 1, height: 1 };
    this.pointers = new Map();
    this.drawing = null; // the pointer that draws
    this.fitted = true;
    this.scale = 1;
    this.x = this.y = 0;
    new ResizeObserver(() => this.update()).observe(canvas);
    canvas.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => this.released(event, true));
    canvas.addEventListener("pointercancel", (event) => this.released(event, false));
    canvas.addEventListener("pointerleave", () => listener.pointed(null));
  }

  show(picture) {
    const same = picture.width === this.picture.width && picture.height === this.picture.height;
    this.picture = picture;
    if (same) this.update();
    else this.fit();
  }

  get fitScale() {
    const { clientWidth, clientHeight } = this.canvas;
    return Math.min(clientWidth / this.picture.width, clientHeight / this.picture.height);
  }

  fit() {
    this.fitted = true;
    this.update();
  }

  zoom(factor, center = { x: this.canvas.clientWidth / 2, y: this.canvas.clientHeight / 2 }) {
    const scale = Math.min(Math.max(this.scale * factor, this.fitScale), Math.max(MAX_SCALE, this.fitScale));
    this.x = center.x - ((center.x - this.x) * scale) / this.scale;
    this.y = center.y - ((center.y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.fitted = scale <= this.fitScale * 1.001;
    this.update();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.update();
  }

  // Keeps the picture visible: centered if it is smaller than the canvas, without a gap if it is larger.
  update() {
    const { canvas, picture } = this;
    if (this.fitted) this.scale = this.fitScale;
    const within = (at, size, room) => (size <= room ? (room - size) / 2 : Math.min(0, Math.max(room - size, at)));
    this.x = within(this.x, picture.width * this.scale, canvas.clientWidth);
    this.y = within(this.y, picture.height * this.scale, canvas.clientHeight);
    const scrolls = this.fitted && !this.listener.isDrawing();
    canvas.style.touchAction = scrolls ? "pan-y" : "none"; // a fitted picture lets a finger scroll the page
    canvas.classList.toggle("drawing", this.listener.isDrawing());
    canvas.classList.toggle("movable", !this.fitted);
    this.listener.changed();
  }

  // Pans so that a pixel of the image is visible.
  reveal({ x, y }) {
    const margin = 24;
    const shift = (at, room) => Math.max(margin - at, 0) + Math.min(room - margin - at, 0);
    const at = this.toCanvas({ x, y });
    this.pan(shift(at.x, this.canvas.clientWidth), shift(at.y, this.canvas.clientHeight));
  }

  toCanvas = ({ x, y }) => ({ x: this.x + (x + 0.5) * this.scale, y: this.y + (y + 0.5) * this.scale });

  toPicture({ x, y }) {
    const place = { x: Math.floor((x - this.x) / this.scale), y: Math.floor((y - this.y) / this.scale) };
    const inside = place.x >= 0 && place.y >= 0 && place.x < this.picture.width && place.y < this.picture.height;
    return inside ? place : null;
  }

  wheeled(event) {
    if (this.fitted && event.deltaY > 0) return; // the whole picture is visible: the page scrolls
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), { x: event.offsetX, y: event.offsetY });
  }

  pressed(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const place = this.listener.isDrawing() && this.toPicture({ x: event.offsetX, y: event.offsetY });
    if (place && this.pointers.size === 0 && this.drawing === null) {
      this.drawing = event.pointerId;
      return this.listener.drawn(place, "begin");
    }
    if (this.pointers.size === 0) this.distance = 0;
    else this.distance = Infinity;
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  }

  moved(event) {
    this.listener.pointed(this.toPicture({ x: event.offsetX, y: event.offsetY }));
    if (event.pointerId === this.drawing) {
      const place = this.toPicture({ x: event.offsetX, y: event.offsetY });
      return place && this.listener.drawn(place, "extend");
    }
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.offsetX, y: event.offsetY };
    this.distance += Math.hypot(now.x - before.x, now.y - before.y);
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, now);
    else if (this.distance > CLICK_TOLERANCE) this.pan(now.x - before.x, now.y - before.y);
    this.pointers.set(event.pointerId, now);
  }

  pinch(id, before, now) {
    const [, other] = [...this.pointers].find(([each]) => each !== id);
    const gap = (point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
    this.zoom(gap(now) / gap(before), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
    this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  }

  released(event, completed) {
    if (event.pointerId === this.drawing) {
      this.drawing = null;
      return this.listener.drawn(null, "end");
    }
    if (!this.pointers.delete(event.pointerId) || !completed || this.distance > CLICK_TOLERANCE) return;
    const place = this.toPicture({ x: event.offsetX, y: event.offsetY });
    if (place) this.listener.clicked(place);
  }
}

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// A cross that the arrow keys move; Enter chooses the place under it.
class Cursor {
  // `listener` has moved() and chosen({x, y}).
  constructor(canvas, viewport, listener) {
    this.viewport = viewport;
    this.listener = listener;
    this.place = null;
    canvas.addEventListener("keydown", (event) => this.pressed(event));
    canvas.addEventListener("blur", () => this.move(null));
    canvas.addEventListener("pointerdown", () => this.move(null));
  }

  pressed(event) {
    if (event.key in DIRECTIONS) this.step(DIRECTIONS[event.key], event.shiftKey ? 40 : 10);
    else if (event.key === "Enter" && this.place) this.listener.chosen(this.place);
    else return;
    event.preventDefault();
  }

  step([dx, dy], length) {
    const { width, height } = this.viewport.picture;
    const from = this.place ?? { x: width >> 1, y: height >> 1 };
    const stride = Math.max(1, Math.round(length / this.viewport.scale));
    const within = (at, size) => Math.min(Math.max(at, 0), size - 1);
    this.move({ x: within(from.x + dx * stride, width), y: within(from.y + dy * stride, height) });
    this.viewport.reveal(this.place);
  }

  move(place) {
    this.place = place;
    this.listener.moved();
  }
}

const DOUBLE_CLICK = 500; // milliseconds between the clicks of a double click, at most
const ZOOM_STEP = 1.5;

// The image with its viewport, its cursor and the mark at the chosen place.
export class PictureView {
  // `pointed` is called when another pixel, `this.pointedAt`, is under the pointer or under the cursor.
  constructor(canvas, palette, display, scribbles, pointed) {
    Object.assign(this, { display, scribbles, pointed, pointedAt: null });
    this.clickedAt = -Infinity;
    const choose = (place) => display.set({ place });
    const listener = {
      changed: () => this.canvas?.refresh(),
      clicked: (place) => this.clicked(place),
      pointed: (place) => this.pointTo(place),
      isDrawing: () => this.scribbles.isDrawing,
      drawn: (place, phase) => this.drawn(place, phase),
    };
    this.viewport = new Viewport(canvas, listener);
    this.canvas = new PictureCanvas(canvas, this.viewport, palette);
    this.cursor = new Cursor(canvas, this.viewport, { moved: () => this.cursorMoved(), chosen: choose });
    canvas.addEventListener("dblclick", () => {
      this.fit();
      if (this.justClicked) display.set(this.before);
    });
  }

  zoomIn = () => this.viewport.zoom(ZOOM_STEP);
  zoomOut = () => this.viewport.zoom(1 / ZOOM_STEP);
  fit = () => this.viewport.fit();
  show = (layers) => this.canvas.show(layers);
  dim = () => this.canvas.dim();
  repaint = () => this.canvas.repaint();

  setSiteImage(siteImage) {
    this.canvas.setSiteImage(siteImage);
    this.viewport.show(siteImage);
  }

  pointTo(place) {
    this.pointedAt = place;
    this.pointed();
  }

  // Strokes are displayed while they are drawn.
  drawn(place, phase) {
    this.scribbles[phase](place);
    this.showStrokes();
  }

  showStrokes() {
    this.canvas.strokes = this.scribbles.drawn;
    this.viewport.update();
  }

  // The first click of a double click chooses a place, too; the place before it is restored by the second.
  clicked(place) {
    const { display } = this;
    if (!this.justClicked) this.before = { place: display.place, lastPlace: display.lastPlace };
    this.clickedAt = performance.now();
    this.display.set({ place });
  }

  get justClicked() {
    return performance.now() - this.clickedAt < DOUBLE_CLICK;
  }

  cursorMoved() {
    this.pointTo(this.cursor.place);
    this.mark();
  }

  mark() {
    const marks = [{ place: this.display.place, kind: "chosen" }, { place: this.cursor.place, kind: "cursor" }];
    this.canvas.marks = marks.filter(({ place }) => place);
    this.canvas.refresh();
  }
}
