// What may be set, from the server's account of itself: the defaults, what applies now, and what a control then shows.

const ALWAYS_NUMBERS = { chains: 2, seed: 0 };

export class Choices {
  constructor(about) {
    this.presets = about.presets;
    this.priors = about.priors;
    this.starts = about.starts;
    this.controls = about.controls;
    this.selects = { preset: this.presets, prior: this.priors, start: this.starts };
  }

  defaults() {
    const values = {};
    for (const [name, options] of Object.entries(this.selects)) values[name] = options[0].name;
    for (const { name } of this.controls) values[name] = ALWAYS_NUMBERS[name] ?? null;
    return values;
  }

  chosen = (select, settings) => this.selects[select].find((option) => option.name === settings[select]);
  mayBeAutomatic = (control) => !(control.name in ALWAYS_NUMBERS);

  applies(control, settings) {
    if (control.only && control.only !== settings.preset) return false;
    return control.group !== "prior" || this.chosen("prior", settings).parameters.includes(control.name);
  }

  // What the server is told: nothing of controls that do not apply now.
  effective(settings) {
    const told = { ...settings };
    for (const control of this.controls) {
      if (!this.applies(control, settings)) told[control.name] = null;
    }
    return told;
  }

  // The number in force for a control that nobody touched, or null where it is found from the picture.
  automatic(control, settings) {
    const ofPreset = this.chosen("preset", settings).values[control.name];
    const prior = this.chosen("prior", settings);
    const value = prior === this.priors[0] ? ofPreset : prior.defaults?.[control.name] ?? ofPreset;
    return typeof value === "number" ? value : null;
  }

  // A value that came from outside, such as the address bar; undefined where it cannot be one.
  read(name, text) {
    if (Object.hasOwn(this.selects, name)) return this.selects[name].find((option) => option.name === text)?.name;
    const control = this.controls.find((each) => each.name === name);
    const value = Number(text);
    const fits = control && text.trim() && value >= control.least && value <= control.most;
    return fits && (!control.whole || Number.isInteger(value)) ? value : undefined;
  }
}
