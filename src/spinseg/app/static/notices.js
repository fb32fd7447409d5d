// Sentences for the person: the state of things, said politely, and errors, said at once.

import { byId, write } from "./dom.js";
import { count } from "./numbers.js";

const LONG_ENOUGH = 12000; // milliseconds that an error stays
const QUIET = ["running", "paused"]; // states that the picture itself shows well enough

const BUSY = ["building", "compiling"];

let timer;

export function showError({ message }) {
  byId("error-box").hidden = false;
  write(byId("error"), message);
  clearTimeout(timer);
  timer = setTimeout(hideError, LONG_ENOUGH);
}

export function hideError() {
  byId("error-box").hidden = true;
  write(byId("error"), "");
}

const STATES = {
  building: () => "Cutting the picture into sites (superpixels).",
  compiling: () => "Compiling the sampler for this machine, this once: about half a minute.",
  running: () => "Running.",
  paused: () => "Paused.",
  done: ({ most_sweeps }) => `The page keeps ${count(most_sweeps)} sweeps at most: restart, or export what there is.`,
};

export function showState(frame, note) {
  const quiet = QUIET.includes(frame.state);
  byId("status").classList.toggle("unseen", quiet && !note);
  byId("status").classList.toggle("busy", BUSY.includes(frame.state));
  write(byId("status"), (quiet && note) || STATES[frame.state]?.(frame) || "");
}

export function tell(sentence) {
  byId("status").classList.remove("unseen");
  write(byId("status"), sentence);
}
