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

// `waiting` says what is under way and takes long, `note` what has just happened.
export function showState(frame, note, waiting) {
  const quiet = QUIET.includes(frame.state);
  byId("status").classList.toggle("unseen", quiet && !note && !waiting);
  byId("status").classList.toggle("busy", Boolean(waiting) || BUSY.includes(frame.state));
  write(byId("status"), waiting || (quiet && note) || STATES[frame.state]?.(frame) || "");
}

export function tell(sentence) {
  byId("status").classList.remove("unseen");
  write(byId("status"), sentence);
}
