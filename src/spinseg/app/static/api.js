// Requests to the server and the stream of frames that it sends; errors become a ServerError with one sentence.

export class ServerError extends Error {
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
    throw new ServerError("The server does not answer. Is `spinseg app` still running?", 0);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw new ServerError(body?.error ?? `The server refused the request (status ${response.status}).`, response.status);
}

const json = async (path, options) => (await call(path, options)).json();
const bytes = async (path) => (await call(path)).arrayBuffer();
const post = (path, body) =>
  json(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const labelsOf = (base64) => new Uint16Array(bytesOf(base64).buffer);
const unpacked = (found) => found && { ...found, labels: labelsOf(found.labels) };

// Examples, controls and limits, from which the page is built.
export const fetchDescription = () => json("/api/about");

// The requests of one session of the server: one image and its chains.
export class SessionApi {
  constructor({ id, shape, shown, name, read_as, read_otherwise }) {
    Object.assign(this, { shape, shown, name, readAs: read_as, readOtherwise: read_otherwise });
    this.path = `/api/pages/${encodeURIComponent(id)}`;
  }

  static async create({ file, example, reading }) {
    const query = file ? { name: file.name || "picture", ...reading } : { example };
    const options = { method: "POST", body: file ?? null };
    return new SessionApi(await json(`/api/pages?${new URLSearchParams(query)}`, options));
  }

  settings = (values) => post(`${this.path}/settings`, values);
  conditioned = async (seeds) => unpacked(await post(`${this.path}/conditioned`, { seeds }));
  run = (speed) => post(`${this.path}/run`, { speed });
  pause = () => post(`${this.path}/pause`, {});
  step = () => post(`${this.path}/step`, {});
  restart = () => post(`${this.path}/restart`, {});
  pauseOnLeaving = () => navigator.sendBeacon(`${this.path}/pause`, new Blob(["{}"], { type: "application/json" }));

  picture = async () => createImageBitmap(await (await call(`${this.path}/picture`)).blob());
  sites = async () => new Int32Array(await bytes(`${this.path}/sites`));
  outlines = async () => new Int32Array(await bytes(`${this.path}/outlines`));
  boundaries = async () => new Uint8Array(await bytes(`${this.path}/boundaries`));
  together = async (site) => new Uint8Array(await bytes(`${this.path}/together?site=${site}`));
  answers = async () => (await json(`${this.path}/answers`)).map(unpacked);
  repeat = () => json(`${this.path}/repeat`);
  events = () => new EventSource(`${this.path}/events`);
  // An export; one of a region needs a pixel of it, [row, column].
  exported = async (name, [row, column] = []) => {
    const query = row === undefined ? "" : `?${new URLSearchParams({ row, column })}`;
    return (await call(`${this.path}/export/${name}${query}`)).blob();
  };

  // The result at the chosen detail, or at another one; null before the first sweep.
  result = async () => unpacked(await json(`${this.path}/result`));
  resultAt = async (detail) => unpacked(await json(`${this.path}/result?detail=${detail}`));
}

// Calls `frame` with each frame, `lost` and `back` with the connection, `gone` if the server has closed the session.
export function listenToFrames(api, { frame, back, lost, gone }) {
  const source = api.events();
  const decode = frameDecoder();
  let interrupted = false;
  source.onmessage = (message) => frame(decode(JSON.parse(message.data)));
  source.onopen = () => {
    if (interrupted) back();
    interrupted = false;
  };
  source.onerror = () => {
    interrupted = true;
    if (source.readyState === EventSource.CLOSED) gone();
    else lost();
  };
  return () => source.close();
}

// Decodes frames. Labels that did not change stay the same array, so that they need not be painted again.
function frameDecoder() {
  const known = new Map();
  const decode = (place, base64) => {
    if (known.get(place)?.base64 !== base64) known.set(place, { base64, labels: labelsOf(base64) });
    return known.get(place).labels;
  };
  return (event) => ({
    ...event,
    chains: event.chains.map((chain, i) => ({
      ...chain,
      labels: decode(`labels ${i}`, chain.labels),
      spins: decode(`spins ${i}`, chain.spins),
    })),
  });
}
