// Bars of the sizes of clusters: the share of the picture that each has, in its colour, the largest first.

import { byId, make, write } from "./dom.js";
import { count, counted, percent } from "./numbers.js";
import { cssOf } from "./painting.js";

const MOST_BARS = 24;

export class Sizes {
  constructor(palette) {
    this.palette = palette;
    this.host = byId("sizes");
  }

  // `word` is "cluster" or "region", `whose` says of what.
  show(areas, word, whose) {
    const total = areas.reduce((sum, area) => sum + area, 0);
    const sorted = [...areas.entries()].filter(([, area]) => area > 0).sort((a, b) => b[1] - a[1]);
    const colour = (label) => cssOf(this.palette[label % this.palette.length]);
    const bars = sorted.slice(0, MOST_BARS).map(([label, area]) => ({ share: area / total, colour: colour(label) }));
    const others = sorted.slice(MOST_BARS);
    if (others.length) {
      const share = others.reduce((sum, [, area]) => sum + area, 0) / total;
      bars.push({ share, colour: "", name: `${count(others.length)} smaller` });
    }
    this.draw(bars, word);
    const all = `${counted(sorted.length, word)} of ${whose}`;
    write(byId("sizes-caption"), `${all}: percent of the picture, largest first`);
    this.host.setAttribute("aria-label", `${all}; the largest has ${percent(bars[0].share)} of the picture.`);
  }

  draw(bars, word) {
    while (this.host.children.length > bars.length) this.host.lastChild.remove();
    while (this.host.children.length < bars.length) {
      this.host.append(make("div", { className: "size" }, make("span"), make("i")));
    }
    const most = Math.max(...bars.map(({ share }) => share));
    bars.forEach(({ share, colour, name }, i) => {
      const [text, bar] = this.host.children[i].children;
      this.host.children[i].title = `${name ?? word}: ${percent(share)}`;
      this.host.children[i].classList.toggle("others", Boolean(name));
      write(text, name ?? (share >= 0.01 ? String(Math.round(100 * share)) : ""));
      bar.style.height = `${(100 * share) / most}%`;
      bar.style.background = colour;
    });
  }
}
