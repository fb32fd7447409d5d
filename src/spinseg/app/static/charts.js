// Charts of the traces, one line for each chain; by default as high as the latest half under the present posterior.

import uPlot from "./vendor/uPlot.esm.js";
import { byId, cssColour, onScheme } from "./dom.js";
import { count, decimals } from "./numbers.js";

const HEIGHT = 190;
const QUANTITIES = { log_posterior: (value) => decimals(value, 1), n_clusters: count };

export class Charts {
  constructor() {
    this.whole = byId("whole-trace");
    this.whole.addEventListener("change", () => this.draw());
    onScheme(() => this.build());
    this.nChains = 0;
    this.plots = {};
    for (const quantity of Object.keys(QUANTITIES)) {
      new ResizeObserver(([{ contentRect }]) => {
        this.plots[quantity]?.setSize({ width: contentRect.width, height: HEIGHT });
      }).observe(host(quantity));
    }
  }

  update(traces, nChains) {
    const same = nChains === this.nChains;
    Object.assign(this, { traces, nChains });
    if (!same) this.build();
    this.draw();
  }

  draw() {
    for (const [quantity, plot] of Object.entries(this.plots)) {
      plot.setData(this.traces.columns(quantity, this.nChains));
    }
  }

  build() {
    for (const [quantity, format] of Object.entries(QUANTITIES)) {
      this.plots[quantity]?.destroy();
      const options = this.options(host(quantity).clientWidth, format);
      this.plots[quantity] = new uPlot(options, Array.from({ length: this.nChains + 1 }, () => []), host(quantity));
    }
  }

  // The first sweep that must be in sight: the worst come first, and posteriors are not to be compared.
  firstSeen(sweeps) {
    if (this.whole.checked || !sweeps.length) return 0;
    return ((this.traces.changes.at(-1) ?? 0) + sweeps.at(-1)) / 2;
  }

  options(width, format) {
    const quiet = cssColour("--quiet");
    const grid = { stroke: cssColour("--rule"), width: 1 };
    const axis = { stroke: quiet, grid, ticks: { show: false }, font: "12px system-ui" };
    const values = (_, splits) => splits.map((split) => split.toLocaleString("en"));
    const value = (_, number) => (number === null ? "–" : format(number));
    return {
      width,
      height: HEIGHT,
      scales: { x: { time: false }, y: { range: (plot) => yRange(plot.data, this.firstSeen(plot.data[0])) } },
      axes: [{ ...axis, size: 32 }, { ...axis, size: 62, values }],
      series: [
        { label: "Sweep", value: (_, number) => (number === null ? "–" : count(number)) },
        ...Array.from({ length: this.nChains }, (_, i) => ({
          label: `Chain ${i + 1}`,
          stroke: cssColour(`--c${i}`),
          width: 1.3,
          points: { show: false },
          value,
        })),
      ],
      cursor: { drag: { x: false, y: false }, sync: { key: "traces" }, points: { size: 6 } },
      hooks: { drawAxes: [(plot) => drawChanges(plot, this.traces?.changes ?? [], quiet)] },
    };
  }
}

const host = (quantity) => byId(`trace-${quantity}`);

function yRange([sweeps, ...chains], first) {
  const from = Math.max(0, sweeps.findIndex((sweep) => sweep >= first));
  let low = Infinity;
  let high = -Infinity;
  for (const numbers of chains) {
    for (let i = from; i < numbers.length; i++) {
      if (numbers[i] === null) continue;
      low = Math.min(low, numbers[i]);
      high = Math.max(high, numbers[i]);
    }
  }
  if (low > high) return [0, 1];
  const room = Math.max(1, 0.06 * (high - low));
  return [low - room, high + room];
}

function drawChanges(plot, changes, colour) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const change of changes) {
    const x = Math.round(plot.valToPos(change, "x", true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
