// The panel of settings, built from what the server says may be set.

import { byId, make, write } from "./dom.js";
import { STEPS, toPosition, toValue } from "./scale.js";

const GROUPS = { prior: "Prior", posterior: "Posterior", sampler: "Sampler" };
const SELECTS = {
  preset: { label: "Preset", group: "posterior", restarts: true },
  prior: { label: "Prior on partitions", group: "prior", restarts: false },
  start: { label: "Start of chains", group: "sampler", restarts: true },
};
const WIDEST = 100000; // a slider over more whole numbers than that would hit none

export class Controls {
  // `changed` is called with the name of what was changed; `settings` is changed in place.
  constructor(choices, settings, changed) {
    this.choices = choices;
    this.settings = settings;
    this.changed = changed;
    this.rows = new Map();
    const host = byId("settings");
    host.append(this.select("preset"));
    for (const [group, title] of Object.entries(GROUPS)) {
      const section = make("div", { className: "group", role: "group", "aria-label": title }, make("h3", {}, title));
      for (const name of Object.keys(SELECTS)) {
        if (SELECTS[name].group === group && name !== "preset") section.append(this.select(name));
      }
      for (const control of choices.controls) if (control.group === group) section.append(this.row(control));
      host.append(section);
    }
    this.show();
  }

  select(name) {
    const { label, restarts } = SELECTS[name];
    const select = make("select", { id: name, "aria-describedby": `${name}-about` });
    for (const option of this.choices.selects[name]) {
      select.append(make("option", { value: option.name }, option.label ?? option.name));
    }
    select.addEventListener("change", () => this.set(name, select.value));
    const about = make("p", { className: "fine", id: `${name}-about` });
    const refusal = make("p", { className: "refusal", role: "alert" });
    const show = () => {
      select.value = this.settings[name];
      write(about, this.choices.chosen(name, this.settings).about ?? "");
    };
    this.rows.set(name, { show, refusal, label, field: select });
    const title = make("label", { htmlFor: name }, label, ...mark(restarts));
    return make("div", { className: "control choice" }, title, select, about, refusal);
  }

  row(control) {
    const { name, label, symbol } = control;
    const id = `control-${name}`;
    const automatic = this.choices.mayBeAutomatic(control);
    const { about, why } = explanation(`${id}-about`, control);
    const field = make("input", { type: "number", id, step: "any", placeholder: "automatic" });
    field.setAttribute("aria-describedby", about.id);
    const slider = sliderOf(control, `${id}-slider`);
    const back = { className: "reset", title: "Back to automatic", "aria-label": `${label}: back to automatic` };
    const reset = make("button", { type: "button", ...back }, "auto");
    const refusal = make("p", { className: "refusal", role: "alert" });

    field.addEventListener("change", () => {
      if (field.validity.badInput) this.refuse(name, "This is not a number.");
      else this.set(name, field.value === "" ? this.choices.defaults()[name] : field.valueAsNumber);
    });
    slider?.addEventListener("input", () => this.set(name, toValue(control, slider.valueAsNumber)));
    reset.addEventListener("click", () => {
      this.set(name, null);
      field.focus();
    });

    const symbols = symbol ? [make("i", {}, ` ${symbol}`)] : [];
    const title = make("label", { htmlFor: id }, label, ...symbols, ...mark(control.restarts));
    const parts = [title, why, slider, field, automatic && reset, about, refusal];
    const row = make("div", { className: "control" }, ...parts.filter(Boolean));
    const show = () => {
      row.hidden = !this.choices.applies(control, this.settings);
      const touched = !automatic || this.settings[name] !== null;
      const value = this.settings[name] ?? this.choices.automatic(control, this.settings);
      row.classList.toggle("untouched", !touched);
      reset.disabled = !touched;
      field.value = value ?? "";
      if (!slider) return;
      const words = value === null ? "automatic" : `${value}${touched ? "" : ", automatic"}`;
      slider.setAttribute("aria-valuetext", words);
      if (document.activeElement !== slider) slider.value = value === null ? STEPS / 2 : toPosition(control, value);
    };
    this.rows.set(name, { show, refusal, label, field });
    return row;
  }

  set(name, value) {
    this.take({ [name]: value });
    this.changed(name);
  }

  // Settings came into force, be they those shown or others.
  take(settings) {
    Object.assign(this.settings, settings);
    for (const name of this.rows.keys()) this.refuse(name, "");
    this.show();
  }

  // The server's sentence beside the field, with the name that people see; "" takes it back.
  refuse(name, sentence) {
    const { refusal, label, field } = this.rows.get(name);
    write(refusal, sentence.startsWith(`${name} `) ? label + sentence.slice(name.length) : sentence);
    field.setAttribute("aria-invalid", String(sentence !== ""));
  }

  show() {
    for (const { show } of this.rows.values()) show();
  }
}

const mark = (restarts) =>
  restarts ? [" ", make("span", { className: "anew", title: "begins the chains anew" }, "anew")] : [];

// A sentence on what a control does, and the button that shows it.
function explanation(id, { label, about: sentence }) {
  const about = make("p", { className: "fine", id, hidden: true }, sentence);
  const aria = { "aria-expanded": "false", "aria-controls": id, "aria-label": `What ${label} does` };
  const why = make("button", { type: "button", className: "why", ...aria }, "?");
  why.addEventListener("click", () => {
    about.hidden = !about.hidden;
    why.setAttribute("aria-expanded", String(!about.hidden));
  });
  return { about, why };
}

function sliderOf({ label, least, most, scale, whole }, id) {
  if (whole && scale !== "log" && most - least > WIDEST) return null;
  return make("input", { type: "range", id, min: 0, max: STEPS, step: 1, "aria-label": label });
}
