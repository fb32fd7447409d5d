// Messages: what is being done, the state of the chains, and errors.

import { byId, count, write } from "./dom.js";

const ERROR_DURATION = 12000; // milliseconds
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
  building: () => "Preparing the image.",
  compiling: () => "Compiling the sampler. This takes half a minute or more, once on each computer.",
  done: ({ most_sweeps }) => `The maximum of ${count(most_sweeps)} sweeps is reached. Export the result, or restart.`,
};
const SPOKEN = { running: "Sampling.", paused: "Paused." }; // for screen readers alone: the image shows these states

// `note` is about something that has just happened.
export function showState(frame, note) {
  const { state, doing } = frame;
  const busy = BUSY.includes(state) || Boolean(doing);
  const text = (state !== "compiling" && doing) || note || STATES[state]?.(frame);
  byId("status").classList.toggle("visually-hidden", !text);
  byId("status").classList.toggle("busy", busy);
  write(byId("status"), text || SPOKEN[state] || "");
}

export function showMessage(sentence) {
  byId("status").classList.remove("visually-hidden");
  byId("status").classList.add("busy");
  write(byId("status"), sentence);
}
