// Charts: traces of the chains, and sizes of the regions.

import { byId, count, counted, cssColor, decimals, make, onSchemeChange, percent, write } from "./dom.js";
import { cssOf } from "./painting.js";
import uPlot from "./vendor/uPlot.esm.js";

const MAX_POINTS = 2000;

// The traces of all runs since the chains were last restarted.
export class Traces {
  constructor() {
    this.runs = [];
  }

  add({ stage: number, began, traces }) {
    if (this.runs.at(-1)?.number !== number) this.begin(number, began);
    const { from, ...quantities } = traces;
    const { values } = this.runs.at(-1);
    for (const [quantity, chains] of Object.entries(quantities)) {
      values[quantity] ??= chains.map(() => []);
      chains.forEach((trace, chain) => {
        trace.forEach((value, i) => (values[quantity][chain][from + i] = value));
      });
    }
  }

  begin(number, began) {
    this.runs = this.runs.filter((earlier) => earlier.began < began);
    const last = this.runs.at(-1);
    for (const trace of Object.values(last?.values ?? {}).flat()) trace.splice(began - last.began);
    this.runs.push({ number, began, values: {} });
  }

  // Sweeps at which the posterior was changed.
  get changes() {
    return this.runs.map(({ began }) => began).filter(Boolean);
  }

  // The columns of a chart, thinned: sweeps, then the quantity in each chain.
  columns(quantity, nChains) {
    const lengths = this.runs.map(({ values }) => values[quantity]?.[0]?.length ?? 0);
    const stride = Math.max(1, Math.ceil(lengths.reduce((sum, length) => sum + length, 0) / MAX_POINTS));
    const columns = Array.from({ length: nChains + 1 }, () => []);
    this.runs.forEach(({ began, values }, run) => {
      for (let i = 0; i < lengths[run]; i += stride) {
        columns[0].push(began + i + 1);
        for (let chain = 0; chain < nChains; chain++) columns[chain + 1].push(values[quantity][chain]?.[i] ?? null);
      }
    });
    return columns;
  }
}

const HEIGHT = 190; // CSS pixels
const QUANTITIES = { log_posterior: (value) => decimals(value, 1), n_clusters: count };

// One chart for each quantity, with a line for each chain.
export class TraceCharts {
  constructor() {
    this.whole = byId("whole-trace");
    this.whole.addEventListener("change", () => this.draw());
    onSchemeChange(() => this.build());
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

  // The first sweep that the vertical range must include: by default, the latter half of the sweeps under the present
  // posterior. Early values would stretch the range, and values of different posteriors cannot be compared.
  firstInRange(sweeps) {
    if (this.whole.checked || !sweeps.length) return 0;
    return ((this.traces.changes.at(-1) ?? 0) + sweeps.at(-1)) / 2;
  }

  options(width, format) {
    const quiet = cssColor("--quiet");
    const grid = { stroke: cssColor("--rule"), width: 1 };
    const axis = { stroke: quiet, grid, ticks: { show: false }, font: "12px system-ui" };
    const values = (_, splits) => splits.map((split) => split.toLocaleString("en"));
    const value = (_, number) => (number === null ? "–" : format(number));
    return {
      width,
      height: HEIGHT,
      scales: { x: { time: false }, y: { range: (plot) => yRange(plot.data, this.firstInRange(plot.data[0])) } },
      axes: [{ ...axis, size: 32 }, { ...axis, size: 62, values }],
      series: [
        { label: "Sweep", value: (_, number) => (number === null ? "–" : count(number)) },
        ...Array.from({ length: this.nChains }, (_, i) => ({
          label: `Chain ${i + 1}`,
          stroke: cssColor(`--c${i}`),
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
  for (const trace of chains) {
    for (let i = from; i < trace.length; i++) {
      if (trace[i] === null) continue;
      low = Math.min(low, trace[i]);
      high = Math.max(high, trace[i]);
    }
  }
  if (low > high) return [0, 1];
  const margin = Math.max(1, 0.06 * (high - low));
  return [low - margin, high + margin];
}

// Draws a dashed line at each change of the posterior.
function drawChanges(plot, changes, color) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = color;
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

const MAX_BARS = 24;

// Bars of the share of the image that each region has, in its color, the largest first.
export class SizeChart {
  constructor(palette) {
    this.palette = palette;
    this.host = byId("sizes");
  }

  // `areas` and their `total` are those of the labels of a partition of `n` regions, called `unit`, by this `name`.
  show({ areas, total }, { n, unit, name }) {
    const sorted = [...areas.entries()].filter(([, area]) => area > 0).sort((a, b) => b[1] - a[1]);
    const color = (label) => cssOf(this.palette[label % this.palette.length]);
    const bars = sorted.slice(0, MAX_BARS).map(([label, area]) => ({ share: area / total, color: color(label) }));
    const others = sorted.slice(MAX_BARS);
    if (others.length) {
      const share = others.reduce((sum, [, area]) => sum + area, 0) / total;
      bars.push({ share, color: "", name: `${count(others.length)} smaller` });
    }
    this.draw(bars, unit);
    const all = `${name}: ${counted(n, unit)}`;
    write(byId("sizes-caption"), `${all}, percentage of the image, largest first`);
    this.host.setAttribute("aria-label", `${all}; the largest has ${percent(bars[0].share)} of the image.`);
  }

  draw(bars, unit) {
    while (this.host.children.length > bars.length) this.host.lastChild.remove();
    while (this.host.children.length < bars.length) {
      this.host.append(make("div", { className: "size" }, make("span"), make("i")));
    }
    const most = Math.max(...bars.map(({ share }) => share));
    bars.forEach(({ share, color, name }, i) => {
      const [text, bar] = this.host.children[i].children;
      this.host.children[i].title = `${name ?? unit}: ${percent(share)}`;
      this.host.children[i].classList.toggle("others", Boolean(name));
      write(text, name ?? (share >= 0.01 ? String(Math.round(100 * share)) : ""));
      bar.style.height = `${(100 * share) / most}%`;
      bar.style.background = color;
    });
  }
}
