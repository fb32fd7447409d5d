// Whether the chains agree, in plain words, with R-hat of each quantity.

import { byId, write } from "./dom.js";

const NAMES = { log_posterior: "log posterior", n_clusters: "clusters", entropy: "entropy", edge_agreement: "edges" };

export function showVerdict(agreement, nChains) {
  const { mark, headline } = judged(agreement, nChains);
  byId("verdict").dataset.agree = mark;
  write(byId("verdict-headline"), headline);
  const numbers = Object.entries(agreement?.r_hat ?? {}).filter(([, value]) => value !== null);
  const words = numbers.map(([name, value]) => `${NAMES[name] ?? name} ${shown(value)}`).join(", ");
  write(byId("verdict-numbers"), words && `R-hat: ${words}.`);
  write(byId("verdict-text"), agreement?.verdict ?? "");
}

function judged(agreement, nChains) {
  if (agreement?.agree === true) return { mark: "yes", headline: "The chains agree" };
  if (agreement?.agree === false) return { mark: "no", headline: "The chains do not agree yet" };
  if (nChains === 1) return { mark: "unknown", headline: "Agreement cannot be told from one chain" };
  return { mark: "unknown", headline: "Agreement cannot be told yet" };
}

function shown(value) {
  if (value === "inf") return "infinite";
  return value > 1.1 ? value.toFixed(2) : value.toFixed(3);
}
