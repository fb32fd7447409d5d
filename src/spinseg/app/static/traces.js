// What the chains went through, sweep by sweep, over all stages since they began; thinned when it is asked for.

const MOST_POINTS = 2000;

export class Traces {
  constructor() {
    this.stages = [];
  }

  add({ stage, began, traces }) {
    if (this.stages.at(-1)?.stage !== stage) this.begin(stage, began);
    const { from, ...quantities } = traces;
    const { values } = this.stages.at(-1);
    for (const [quantity, chains] of Object.entries(quantities)) {
      values[quantity] ??= chains.map(() => []);
      chains.forEach((numbers, chain) => {
        numbers.forEach((number, i) => (values[quantity][chain][from + i] = number));
      });
    }
  }

  begin(stage, began) {
    this.stages = this.stages.filter((earlier) => earlier.began < began);
    const last = this.stages.at(-1);
    for (const numbers of Object.values(last?.values ?? {}).flat()) numbers.splice(began - last.began);
    this.stages.push({ stage, began, values: {} });
  }

  // Sweeps at which the posterior was changed.
  get changes() {
    return this.stages.map(({ began }) => began).filter(Boolean);
  }

  // Columns for a chart: sweeps, then the quantity in each chain.
  columns(quantity, nChains) {
    const lengths = this.stages.map(({ values }) => values[quantity]?.[0]?.length ?? 0);
    const stride = Math.max(1, Math.ceil(lengths.reduce((sum, length) => sum + length, 0) / MOST_POINTS));
    const columns = Array.from({ length: nChains + 1 }, () => []);
    this.stages.forEach(({ began, values }, s) => {
      for (let i = 0; i < lengths[s]; i += stride) {
        columns[0].push(began + i + 1);
        for (let chain = 0; chain < nChains; chain++) columns[chain + 1].push(values[quantity][chain]?.[i] ?? null);
      }
    });
    return columns;
  }
}
