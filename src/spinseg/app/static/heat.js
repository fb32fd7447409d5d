// The colour scale of probabilities, perceptually even (magma): as a table for painting, and as a legend.

import { packed } from "./painting.js";

const STOPS = [
  [0, 0, 4], [28, 16, 68], [79, 18, 123], [129, 37, 129], [181, 54, 122],
  [229, 80, 100], [251, 135, 97], [254, 194, 135], [252, 253, 191],
];

function colourAt(value) {
  const place = (value / 255) * (STOPS.length - 1);
  const below = Math.min(Math.floor(place), STOPS.length - 2);
  return STOPS[below].map((from, i) => Math.round(from + (place - below) * (STOPS[below + 1][i] - from)));
}

const table = (opacityOf) =>
  Uint32Array.from({ length: 256 }, (_, value) => packed(...colourAt(value), opacityOf(value)));

const HEAT = table(() => 255);
// Where nothing is likely, the picture is still seen, so that one knows where one is.
export const HEAT_OF_SITES = table((value) => Math.round(140 + 115 * Math.min(1, value / 80)));
// Where no boundary is, the picture is seen; what is there stands out.
export const HEAT_OF_LINES = table((value) => Math.round(255 * Math.min(1, Math.sqrt(value / 255) * 1.6)));

export function drawScale(canvas) {
  const image = new ImageData(256, 1);
  new Uint32Array(image.data.buffer).set(HEAT);
  canvas.getContext("2d").putImageData(image, 0, 0);
}
