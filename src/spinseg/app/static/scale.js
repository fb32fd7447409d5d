// The way of a slider: its positions 0..STEPS to a control's values and back, even in the value or in its logarithm.

import { significant } from "./numbers.js";

export const STEPS = 1000;
const STEEP = 3; // power that stands in for a logarithm where the least value is 0

export function toValue(control, position) {
  const { least, most, whole } = control;
  const value = waysOf(control).value(position / STEPS);
  return whole ? Math.round(value) : significant(Math.min(Math.max(value, least), most), 3);
}

export function toPosition(control, value) {
  const kept = Math.min(Math.max(value, control.least), control.most);
  return Math.round(waysOf(control).share(kept) * STEPS);
}

// From the share of the slider's length to the value, and back.
function waysOf({ least, most, scale }) {
  if (scale !== "log") {
    return { value: (share) => least + share * (most - least), share: (value) => (value - least) / (most - least) };
  }
  if (least === 0) return { value: (share) => most * share ** STEEP, share: (value) => (value / most) ** (1 / STEEP) };
  const ratio = most / least;
  return { value: (share) => least * ratio ** share, share: (value) => Math.log(value / least) / Math.log(ratio) };
}
