// The address bar: settings that differ from the defaults, the picture, the look and the speed, to be read and shared.

import { LOOK_FLAGS, VIEWS } from "./look.js";

export const SPEEDS = { 1: 1, 5: 5, 20: 20, full: null };

export function readAddress(choices, examples) {
  const fields = new URLSearchParams(location.hash.slice(1));
  const found = { settings: {}, look: {}, speed: "full", picture: fields.get("picture") };
  for (const [name, text] of fields) {
    const value = choices.read(name, text);
    if (value !== undefined) found.settings[name] = value;
    else if (LOOK_FLAGS.includes(name)) found.look[name] = text === "1";
    else if (name === "view" && VIEWS.includes(text)) found.look.view = text;
    else if (name === "speed" && Object.hasOwn(SPEEDS, text)) found.speed = text;
    else if (name === "example" && examples.includes(text)) found.example = text;
  }
  return found;
}

export function writeAddress({ settings, defaults, look, speed, example, picture }) {
  const fields = new URLSearchParams();
  if (example) fields.set("example", example);
  else if (picture) fields.set("picture", picture);
  for (const [name, value] of Object.entries(settings)) {
    if (value !== defaults[name] && value !== null) fields.set(name, value);
  }
  if (look.view !== VIEWS[0]) fields.set("view", look.view);
  for (const flag of LOOK_FLAGS) if (look[flag]) fields.set(flag, "1");
  if (speed !== "full") fields.set("speed", speed);
  const hash = fields.size ? `#${fields}` : "";
  if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname);
}
