// The server's events, unpacked; says when the connection was lost, came back, or when the page is gone.

import { labelsOf } from "./numbers.js";

export function listen(page, { frame, back, lost, gone }) {
  const source = page.events();
  const unpack = unpacker();
  let interrupted = false;
  source.onmessage = (message) => frame(unpack(JSON.parse(message.data)));
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

// Labels that did not change stay the same array, so that whoever paints them can tell at a glance.
function unpacker() {
  const known = new Map();
  const unpacked = (place, base64) => {
    if (known.get(place)?.base64 !== base64) known.set(place, { base64, labels: labelsOf(base64) });
    return known.get(place).labels;
  };
  return (event) => ({
    ...event,
    chains: event.chains.map((chain, i) => ({
      ...chain,
      labels: unpacked(`labels ${i}`, chain.labels),
      spins: unpacked(`spins ${i}`, chain.spins),
    })),
  });
}
