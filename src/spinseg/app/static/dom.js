// Helpers: elements of the page, numbers as text, messages, delayed calls and keyboard shortcuts.

// Elements.

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Writing the same text again would still make the browser compute the layout again.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const onSchemeChange = (work) => matchMedia("(prefers-color-scheme: dark)").addEventListener("change", work);
export const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const isCoarse = matchMedia("(pointer: coarse)").matches;

// Words for a mouse, and others for a finger.
export const byPointer = (fine, coarse) => (isCoarse ? coarse : fine);

// Numbers as text.

export const count = (value) => Math.round(value).toLocaleString("en");
export const counted = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
export const decimals = (value, digits) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const percent = (share) => (share < 0.001 ? "under 0.1 %" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`);
export const significant = (value, digits) => Number(value.toPrecision(digits));

// Messages: what is being done, the state of the chains, and errors.

const ERROR_DURATION = 12000; // milliseconds
const BUSY = ["building"];

const NO_ACTIONS = ["Tab", "Shift", "Control", "Alt", "Meta"]; // keys

let timer;

export function showError({ message }) {
  byId("error-box").hidden = false;
  write(byId("error"), message);
  clearTimeout(timer);
  timer = setTimeout(hideError, ERROR_DURATION);
}

// An error that stays until the next action, since the user must know what it says before.
export function showErrorUntilAction(error) {
  showError(error);
  clearTimeout(timer);
  const hiding = new AbortController();
  const hide = ({ key }) => { // a click that ends the last action may still come
    if (NO_ACTIONS.includes(key)) return;
    hiding.abort();
    hideError();
  };
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, hide, { capture: true, signal: hiding.signal });
}

export function hideError() {
  byId("error-box").hidden = true;
  write(byId("error"), "");
}

const STATES = {
  building: () => "Preparing the image.",
  done: ({ most_sweeps }) => `The maximum of ${count(most_sweeps)} sweeps is reached. Export the result, or restart.`,
};
// For screen readers alone: the image shows these states.
const SPOKEN = {
  running: () => "Sampling.",
  paused: ({ agreement }) => (agreement?.enough ? "Finished." : "Paused."),
};

// `note` is about something that has just happened.
export function showState(frame, note) {
  const { state, doing } = frame;
  const busy = BUSY.includes(state) || Boolean(doing);
  const text = doing || note || STATES[state]?.(frame);
  byId("status").classList.toggle("visually-hidden", !text);
  byId("status").classList.toggle("busy", busy);
  write(byId("status"), text || SPOKEN[state]?.(frame) || "");
}

export function showMessage(sentence) {
  byId("status").classList.remove("visually-hidden");
  byId("status").classList.add("busy");
  write(byId("status"), sentence);
}

// Delayed calls.

// Calls `work` after `delay` milliseconds without a call; never twice at a time, but once more if called meanwhile.
export function debounced(work, delay) {
  let timer, busy, again;
  const go = async () => {
    if (busy) return void (again = true);
    busy = true;
    await work();
    busy = false;
    if (!again) return;
    again = false;
    go();
  };
  return (shorter = delay) => {
    clearTimeout(timer);
    timer = setTimeout(go, shorter);
  };
}

// Calls `work` at most once in `interval` milliseconds, and always after the last call.
export function throttled(work, interval) {
  let timer = null;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      work();
    }, interval);
  };
}

// Keyboard shortcuts.

const TEXT_FIELDS = "input:not([type=range], [type=radio], [type=checkbox]), select, textarea";
const USES_SPACE = `${TEXT_FIELDS}, input, button, summary, a, pre`;

// Calls the action of a key if `ready()`, unless the focused element uses the key itself.
export function onKeys(actions, ready) {
  addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || !ready() || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key !== "Escape" && event.target.matches(event.key === " " ? USES_SPACE : TEXT_FIELDS)) return;
    event.preventDefault();
    action();
  });
}
