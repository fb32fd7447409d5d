// The settings: what can be set, the address bar that stores them, and the panel with its sliders and fields.

import { OPTION_FLAGS, VIEWS } from "./display.js";
import { byId, make, significant, write } from "./dom.js";

// What can be set, from the description that the server gives: defaults, and what applies to which preset and prior.
export class SettingsSchema {
  constructor(description) {
    this.presets = description.presets;
    this.priors = description.priors;
    this.starts = description.starts;
    this.controls = description.controls;
    this.selects = { preset: this.presets, prior: this.priors, start: this.starts };
    this.took = null; // what the preset "auto" chose for the image
  }

  defaults() {
    const values = {};
    for (const [name, options] of Object.entries(this.selects)) values[name] = options[0].name;
    for (const { name, usual } of this.controls) values[name] = usual;
    return values;
  }

  chosen = (select, settings) => this.selects[select].find((option) => option.name === settings[select]);

  // The preset in use: the chosen one, or what "auto" chose for the image, once that is known.
  preset(settings) {
    const used = settings.preset === "auto" && this.presets.find((option) => option.name === this.took);
    return used || this.chosen("preset", settings);
  }

  hasAutomatic = (control) => control.usual === null;

  applies(control, settings) {
    if (control.presets && !control.presets.includes(settings.preset)) return false;
    return control.group !== "prior" || this.chosen("prior", settings).parameters.includes(control.name);
  }

  // The settings without those that do not apply now.
  applicable(settings) {
    const values = { ...settings };
    for (const control of this.controls) {
      if (!this.applies(control, settings)) values[control.name] = null;
    }
    return values;
  }

  // The value of a control that is not set, or null if it is computed from the image.
  automatic(control, settings) {
    const ofPreset = this.preset(settings).values[control.name];
    const prior = this.chosen("prior", settings);
    const value = prior === this.priors[0] ? ofPreset : prior.defaults?.[control.name] ?? ofPreset;
    return typeof value === "number" ? value : null;
  }

  // A value from the address bar; undefined if it is invalid.
  parse(name, text) {
    if (Object.hasOwn(this.selects, name)) return this.selects[name].find((option) => option.name === text)?.name;
    const control = this.controls.find((each) => each.name === name);
    const value = Number(text);
    const fits = control && text.trim() && value >= control.least && value <= control.most;
    return fits && (!control.whole || Number.isInteger(value)) ? value : undefined;
  }
}

// The address bar holds the settings that differ from the defaults, the image, the display options and the speed.

export const SPEEDS = { 1: 1, 5: 5, 20: 20, full: null };

export function readAddress(schema, examples) {
  const fields = new URLSearchParams(location.hash.slice(1));
  const found = { settings: {}, display: {}, speed: "full", picture: fields.get("picture") };
  for (const [name, text] of fields) {
    const value = schema.parse(name, text);
    if (value !== undefined) found.settings[name] = value;
    else if (Object.hasOwn(OPTION_FLAGS, name)) found.display[name] = text === "1";
    else if (name === "view" && VIEWS.includes(text)) found.display.view = text;
    else if (name === "speed" && Object.hasOwn(SPEEDS, text)) found.speed = text;
    else if (name === "example" && examples.includes(text)) found.example = text;
  }
  return found;
}

export function writeAddress({ settings, defaults, display, speed, example, picture }) {
  const fields = new URLSearchParams();
  if (example) fields.set("example", example);
  else if (picture) fields.set("picture", picture);
  for (const [name, value] of Object.entries(settings)) {
    if (value !== defaults[name] && typeof value !== "object") fields.set(name, value); // seeds are not in the link
  }
  if (display.view !== VIEWS[0]) fields.set("view", display.view);
  for (const [flag, usual] of Object.entries(OPTION_FLAGS)) {
    if (display[flag] !== usual) fields.set(flag, display[flag] ? "1" : "0");
  }
  if (speed !== "full") fields.set("speed", speed);
  const hash = fields.size ? `#${fields}` : "";
  if (hash !== location.hash) history.replaceState(history.state, "", hash || location.pathname);
}

// Sliders have positions 0..STEPS, linear in the value or in its logarithm.

const STEPS = 1000;
const POWER = 3; // of the position, instead of a logarithm, if the smallest value is 0

function toValue(control, position) {
  const { least, most, whole } = control;
  const value = mapping(control).value(position / STEPS);
  if (control.step) return significant(Math.round(value / control.step) * control.step, 3);
  return whole ? Math.round(value) : significant(Math.min(Math.max(value, least), most), 3);
}

function toPosition(control, value) {
  const clipped = Math.min(Math.max(value, control.least), control.most);
  return Math.round(mapping(control).share(clipped) * STEPS);
}

// From the share of the slider's length to the value, and the inverse.
function mapping({ least, most, scale }) {
  if (scale !== "log") {
    return { value: (share) => least + share * (most - least), share: (value) => (value - least) / (most - least) };
  }
  if (least === 0) return { value: (share) => most * share ** POWER, share: (value) => (value / most) ** (1 / POWER) };
  const ratio = most / least;
  return { value: (share) => least * ratio ** share, share: (value) => Math.log(value / least) / Math.log(ratio) };
}

const GROUPS = { prior: "Prior", posterior: "Posterior", sampler: "Sampler" };
const SELECTS = {
  preset: { label: "Preset", group: "posterior", restarts: false },
  prior: { label: "Prior on partitions", group: "prior", restarts: false },
  start: { label: "Start of chains", group: "sampler", restarts: true },
};
const MAX_SLIDER_RANGE = 100000; // of whole numbers: over a wider range, a slider could not reach most of them

// The panel of settings.
export class Controls {
  // `changed` is called with the name of the setting that was changed; `settings` is modified in place.
  constructor(schema, settings, changed) {
    this.schema = schema;
    this.settings = settings;
    this.changed = changed;
    this.rows = new Map();
    const host = byId("settings");
    for (const control of schema.controls) if (control.group === "result") byId(control.name).append(this.row(control));
    byId("preset-row").append(this.select("preset"));
    for (const [group, title] of Object.entries(GROUPS)) {
      const section = make("div", { className: "group", role: "group", "aria-label": title }, make("h3", {}, title));
      for (const name of Object.keys(SELECTS)) {
        if (SELECTS[name].group === group && name !== "preset") section.append(this.select(name));
      }
      for (const control of schema.controls) if (control.group === group) section.append(this.row(control));
      host.append(section);
    }
    this.show();
  }

  select(name) {
    const { label, restarts } = SELECTS[name];
    const select = make("select", { id: name, "aria-describedby": `${name}-about` });
    for (const option of this.schema.selects[name]) {
      select.append(make("option", { value: option.name }, option.label ?? option.name));
    }
    select.addEventListener("change", () => this.set(name, select.value));
    const about = make("p", { className: "fine", id: `${name}-about` });
    const error = make("p", { className: "error", role: "alert" });
    const show = () => {
      select.value = this.settings[name];
      const { name: chosen, about: words } = this.schema.chosen(name, this.settings);
      const used = name === "preset" ? this.schema.preset(this.settings) : { name: chosen };
      write(about, used.name === chosen ? words ?? "" : `For this image: ${used.name}. ${used.about}`);
    };
    this.rows.set(name, { show, error, field: select });
    const title = make("label", { htmlFor: name }, label, ...restartMark(restarts));
    return make("div", { className: "control choice" }, title, select, about, error);
  }

  row(control) {
    const { name, label, symbol } = control;
    const id = `control-${name}`;
    const automatic = this.schema.hasAutomatic(control);
    const { about, help } = explanation(`${id}-about`, control);
    const field = make("input", { type: "number", id, step: "any", placeholder: "automatic" });
    field.setAttribute("aria-describedby", about.id);
    const slider = makeSlider(control, `${id}-slider`);
    const hint = { title: "Use the automatic value", "aria-label": `${label}: use the automatic value` };
    const reset = make("button", { type: "button", className: "reset", ...hint }, "reset");
    const mark = make("span", { className: "auto", "aria-hidden": "true" }, "auto");
    const error = make("p", { className: "error", role: "alert" });

    field.addEventListener("change", () => {
      if (field.validity.badInput) this.showError(name, "This is not a number.");
      else this.set(name, field.value === "" ? this.schema.defaults()[name] : field.valueAsNumber);
    });
    slider?.addEventListener("input", () => this.set(name, toValue(control, slider.valueAsNumber)));
    reset.addEventListener("click", () => {
      this.set(name, null);
      field.focus();
    });

    const symbols = symbol ? [make("i", {}, ` ${symbol}`)] : [];
    const title = make("label", { htmlFor: id }, label, ...symbols, ...restartMark(control.restarts));
    const parts = [title, help, slider, field, automatic && reset, automatic && mark, about, error];
    const row = make("div", { className: "control" }, ...parts.filter(Boolean));
    const show = () => {
      row.hidden = !this.schema.applies(control, this.settings);
      const isSet = !automatic || this.settings[name] !== null;
      const value = this.settings[name] ?? this.schema.automatic(control, this.settings);
      row.classList.toggle("automatic", !isSet);
      row.classList.toggle("unknown", value === null);
      reset.disabled = !isSet;
      field.value = value ?? "";
      if (!slider) return;
      const words = value === null ? "automatic" : `${value}${isSet ? "" : ", automatic"}`;
      slider.setAttribute("aria-valuetext", words);
      if (document.activeElement !== slider) slider.value = value === null ? STEPS / 2 : toPosition(control, value);
    };
    this.rows.set(name, { show, error, field });
    return row;
  }

  set(name, value) {
    this.setAll({ [name]: value });
    this.changed(name);
  }

  // Replaces settings and removes all error messages.
  setAll(settings) {
    Object.assign(this.settings, settings);
    for (const name of this.rows.keys()) this.showError(name, "");
    this.show();
  }

  // Shows an error message beside a field; "" removes it.
  showError(name, sentence) {
    const { error, field } = this.rows.get(name);
    write(error, sentence);
    field.setAttribute("aria-invalid", String(sentence !== ""));
  }

  show() {
    for (const { show } of this.rows.values()) show();
  }
}

const restartMark = (restarts) =>
  restarts ? [" ", make("span", { className: "restarts", title: "A change restarts the chains." }, "restarts")] : [];

// The explanation of a control, and the button that shows it.
function explanation(id, { label, about: sentence }) {
  const about = make("p", { className: "fine", id, hidden: true }, sentence);
  const aria = { "aria-expanded": "false", "aria-controls": id, "aria-label": `Explain ${label}` };
  const help = make("button", { type: "button", className: "help", ...aria }, "?");
  help.addEventListener("click", () => {
    about.hidden = !about.hidden;
    help.setAttribute("aria-expanded", String(!about.hidden));
  });
  return { about, help };
}

function makeSlider({ label, least, most, scale, whole, step }, id) {
  if (whole && scale !== "log" && most - least > MAX_SLIDER_RANGE) return null;
  const distance = step ? (STEPS * step) / (most - least) : 1;
  return make("input", { type: "range", id, min: 0, max: STEPS, step: distance, "aria-label": label });
}
