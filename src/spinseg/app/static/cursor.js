// Choosing a place of the picture by keyboard: arrows move a cross, Enter chooses what is under it.

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Cursor {
  // `listener` has moved() and chosen({x, y}).
  constructor(canvas, view, listener) {
    this.view = view;
    this.listener = listener;
    this.place = null;
    canvas.addEventListener("keydown", (event) => this.pressed(event));
    canvas.addEventListener("blur", () => this.move(null));
    canvas.addEventListener("pointerdown", () => this.move(null));
  }

  pressed(event) {
    if (event.key in STEPS) this.step(STEPS[event.key], event.shiftKey ? 40 : 10);
    else if (event.key === "Enter" && this.place) this.listener.chosen(this.place);
    else return;
    event.preventDefault();
  }

  step([dx, dy], length) {
    const { width, height } = this.view.picture;
    const from = this.place ?? { x: width >> 1, y: height >> 1 };
    const stride = Math.max(1, Math.round(length / this.view.scale));
    const within = (at, size) => Math.min(Math.max(at, 0), size - 1);
    this.move({ x: within(from.x + dx * stride, width), y: within(from.y + dy * stride, height) });
    this.view.reveal(this.place);
  }

  move(place) {
    this.place = place;
    this.listener.moved();
  }
}
