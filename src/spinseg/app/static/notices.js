// Messages: the state of the chains, and errors.

import { byId, count, write } from "./dom.js";

const ERROR_DURATION = 12000; // milliseconds
const QUIET = ["running", "paused"]; // states that need no message: the picture shows them
const BUSY = ["building", "compiling"];

let timer;

export function showError({ message }) {
  byId("error-box").hidden = false;
  write(byId("error"), message);
  clearTimeout(timer);
  timer = setTimeout(hideError, ERROR_DURATION);
}

export function hideError() {
  byId("error-box").hidden = true;
  write(byId("error"), "");
}

const STATES = {
  building: () => "Dividing the image into sites (superpixels).",
  compiling: () => "Compiling the sampler, which takes half a minute or more and is needed only once on a computer.",
  running: () => "Running.",
  paused: () => "Paused.",
  done: ({ most_sweeps }) => `The maximum of ${count(most_sweeps)} sweeps is reached. Export the result, or restart.`,
};

// `waiting` is a message about work in progress, `note` one about something that has just happened.
export function showState(frame, note, waiting) {
  const quiet = QUIET.includes(frame.state);
  byId("status").classList.toggle("visually-hidden", quiet && !note && !waiting);
  byId("status").classList.toggle("busy", Boolean(waiting) || BUSY.includes(frame.state));
  write(byId("status"), waiting || (quiet && note) || STATES[frame.state]?.(frame) || "");
}

export function showMessage(sentence) {
  byId("status").classList.remove("visually-hidden");
  write(byId("status"), sentence);
}
