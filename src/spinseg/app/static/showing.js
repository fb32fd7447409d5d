// From the look, a frame and the server's answers: what the large picture holds, and the words that say so.

import { counted } from "./numbers.js";

const VIEW_WORDS = {
  fill: "each cluster in a colour of its own",
  outlines: "the outlines of the clusters",
  means: "each cluster in its mean colour",
  picture: "the picture alone",
};

const SENTENCES = {
  asking: "Asking the server.",
  tooEarly: "This is there after the first sweep: start the chains, or take one step.",
  together:
    "How often, over the draws of all chains, each site (superpixel) was in one cluster with that of the marked place.",
  boundaries:
    "How often, over the draws of all chains, a boundary was there. Light lines are sure, dark ones seldom there.",
  spins:
    "White: spin-clusters, sites (superpixels) that were bonded in the last sweep and chose their cluster as one. " +
    "Yellow: clusters. Best seen slowly, or step by step.",
};

// The partition that is looked at: the chain's present one, or the result once there is one.
export function partition(look, chain, answer) {
  return look.result && answer?.kind === "result" ? answer.data.labels : chain.labels;
}

// What the result is made of; a preset may leave clusters as they are.
export const wordOf = ({ data }) => (data.cut === false ? "cluster" : "region");

export function shownPicture(look, chain, answer) {
  if (look.heat) {
    const kind = look.place ? "together" : "lines";
    const fill = answer?.kind === kind ? { kind, data: answer.data } : null;
    return { ground: "grey", fill, opacity: look.opacity, boundaries: null, spins: null };
  }
  const labels = partition(look, chain, answer);
  const fills = { fill: { kind: "labels", data: labels }, means: { kind: "means", data: labels } };
  return {
    ground: "picture",
    fill: fills[look.view] ?? null,
    opacity: look.opacity,
    boundaries: look.view === "outlines" || look.spins ? labels : null,
    spins: look.spins ? chain.spins : null,
  };
}

// What must be asked of the server beyond the stream: its name, or null.
export function wantedAnswer(look) {
  if (look.place) return "together";
  if (look.boundaries) return "lines";
  return look.result ? "result" : null;
}

export function legendTitle(look) {
  return look.place ? "Probability of being together" : "Probability of a boundary";
}

export function caption(look, frame, chainNumber, answer) {
  const waiting = wantedAnswer(look) && answer?.kind !== wantedAnswer(look);
  if (waiting) return frame.sweeps ? SENTENCES.asking : SENTENCES.tooEarly;
  if (look.place) return SENTENCES.together;
  if (look.boundaries) return SENTENCES.boundaries;
  if (look.spins) return SENTENCES.spins;
  if (look.result) {
    const made = wordOf(answer) === "region" ? "made into" : "with";
    const best = `the best partition that any chain visited, ${made} ${counted(answer.data.n_regions, wordOf(answer))}`;
    return `Result: ${best}; ${viewWords(look, answer)}.`;
  }
  return `Chain ${chainNumber + 1} now: ${VIEW_WORDS[look.view]}. Click a place to see what belongs with it.`;
}

function viewWords(look, answer) {
  const words = VIEW_WORDS[look.view];
  return look.result && answer?.kind === "result" ? words.replace("cluster", wordOf(answer)) : words;
}

// For those who do not see the picture.
export function description(look, frame, chainNumber, answer, pageName) {
  const chain = frame.chains[chainNumber];
  const heat = look.place ? "probability of belonging with the chosen place" : "boundary probability";
  const seen = `${pageName}: ${look.heat ? heat : viewWords(look, answer)}.`;
  const state = `${counted(chain.n_clusters, "cluster")} after ${counted(frame.sweeps, "sweep")}, ${frame.state}`;
  return `${seen} Chain ${chainNumber + 1} has ${state}. Arrow keys move to a place, Enter chooses it.`;
}
