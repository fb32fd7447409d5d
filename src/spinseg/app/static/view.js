// Zoom and pan of a picture in a canvas, by mouse, touch and buttons; all lengths are CSS pixels.

const MOST = 40; // CSS pixels for a pixel of the picture
const STILL = 4; // a pointer that moved less has clicked

export class View {
  // `listener` has changed() and clicked({x, y}) with a pixel of the picture.
  constructor(canvas, listener) {
    this.canvas = canvas;
    this.listener = listener;
    this.picture = { width: 1, height: 1 };
    this.pointers = new Map();
    this.fitted = true;
    this.scale = 1;
    this.x = this.y = 0;
    new ResizeObserver(() => this.settle()).observe(canvas);
    canvas.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => this.released(event, true));
    canvas.addEventListener("pointercancel", (event) => this.released(event, false));
  }

  show(picture) {
    const same = picture.width === this.picture.width && picture.height === this.picture.height;
    this.picture = picture;
    if (same) this.settle();
    else this.fit();
  }

  get fitScale() {
    const { clientWidth, clientHeight } = this.canvas;
    return Math.min(clientWidth / this.picture.width, clientHeight / this.picture.height);
  }

  fit() {
    this.fitted = true;
    this.settle();
  }

  zoom(factor, centre = { x: this.canvas.clientWidth / 2, y: this.canvas.clientHeight / 2 }) {
    const scale = Math.min(Math.max(this.scale * factor, this.fitScale), Math.max(MOST, this.fitScale));
    this.x = centre.x - ((centre.x - this.x) * scale) / this.scale;
    this.y = centre.y - ((centre.y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.fitted = scale <= this.fitScale * 1.001;
    this.settle();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.settle();
  }

  // Keeps the picture in sight: centred where it is smaller than the canvas, without a gap where it is larger.
  settle() {
    const { canvas, picture } = this;
    if (this.fitted) this.scale = this.fitScale;
    const within = (at, size, room) => (size <= room ? (room - size) / 2 : Math.min(0, Math.max(room - size, at)));
    this.x = within(this.x, picture.width * this.scale, canvas.clientWidth);
    this.y = within(this.y, picture.height * this.scale, canvas.clientHeight);
    canvas.style.touchAction = this.fitted ? "pan-y" : "none"; // unless it can be dragged, a finger scrolls the page
    canvas.classList.toggle("movable", !this.fitted);
    this.listener.changed();
  }

  // Brings a pixel of the picture into sight.
  reveal({ x, y }) {
    const margin = 24;
    const shift = (at, room) => Math.max(margin - at, 0) + Math.min(room - margin - at, 0);
    const at = this.onCanvas({ x, y });
    this.pan(shift(at.x, this.canvas.clientWidth), shift(at.y, this.canvas.clientHeight));
  }

  onCanvas = ({ x, y }) => ({ x: this.x + (x + 0.5) * this.scale, y: this.y + (y + 0.5) * this.scale });

  onPicture({ x, y }) {
    const place = { x: Math.floor((x - this.x) / this.scale), y: Math.floor((y - this.y) / this.scale) };
    const inside = place.x >= 0 && place.y >= 0 && place.x < this.picture.width && place.y < this.picture.height;
    return inside ? place : null;
  }

  wheeled(event) {
    if (this.fitted && event.deltaY > 0) return; // nothing to zoom out of: the page scrolls
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), { x: event.offsetX, y: event.offsetY });
  }

  pressed(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    if (this.pointers.size === 0) this.travelled = 0;
    else this.travelled = Infinity;
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  }

  moved(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.offsetX, y: event.offsetY };
    this.travelled += Math.hypot(now.x - before.x, now.y - before.y);
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, now);
    else if (this.travelled > STILL) this.pan(now.x - before.x, now.y - before.y);
    this.pointers.set(event.pointerId, now);
  }

  pinch(id, before, now) {
    const [, other] = [...this.pointers].find(([each]) => each !== id);
    const gap = (point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
    this.zoom(gap(now) / gap(before), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
    this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  }

  released(event, properly) {
    if (!this.pointers.delete(event.pointerId) || !properly || this.travelled > STILL) return;
    const place = this.onPicture({ x: event.offsetX, y: event.offsetY });
    if (place) this.listener.clicked(place);
  }
}
