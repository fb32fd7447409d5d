// Calls to the server; what it refuses becomes a Refusal that carries its sentence.

import { labelsOf } from "./numbers.js";

export class Refusal extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

async function call(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refusal("The server does not answer. Is `spinseg app` still running?", 0);
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => null);
  throw new Refusal(told?.error ?? `The server refused this (${response.status}).`, response.status);
}

const json = async (path, options) => (await call(path, options)).json();
const bytes = async (path) => (await call(path)).arrayBuffer();
const post = (path, body) =>
  json(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const about = () => json("/api/about");

// A page of the server: one picture and its chains.
export class Page {
  constructor({ id, shape, shown, name }) {
    Object.assign(this, { shape, shown, name });
    this.path = `/api/pages/${encodeURIComponent(id)}`;
  }

  static async create({ file, example }) {
    const query = file ? { name: file.name || "picture" } : { example };
    const options = { method: "POST", body: file ?? null };
    return new Page(await json(`/api/pages?${new URLSearchParams(query)}`, options));
  }

  settings = (values) => post(`${this.path}/settings`, values);
  run = (speed) => post(`${this.path}/run`, { speed });
  pause = () => post(`${this.path}/pause`, {});
  step = () => post(`${this.path}/step`, {});
  restart = () => post(`${this.path}/restart`, {});
  pauseOnLeaving = () => navigator.sendBeacon(`${this.path}/pause`, new Blob(["{}"], { type: "application/json" }));

  picture = async () => createImageBitmap(await (await call(`${this.path}/picture`)).blob());
  sites = async () => new Int32Array(await bytes(`${this.path}/sites`));
  boundaries = async () => new Uint8Array(await bytes(`${this.path}/boundaries`));
  together = async (site) => new Uint8Array(await bytes(`${this.path}/together?site=${site}`));
  repeat = () => json(`${this.path}/repeat`);
  events = () => new EventSource(`${this.path}/events`);
  exportPath = (name) => `${this.path}/export/${name}`;

  async result() {
    const found = await json(`${this.path}/result`);
    return { ...found, labels: labelsOf(found.labels) };
  }
}
