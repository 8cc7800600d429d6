// The home page's texts about a run and the figure of its swarm before its script runs, from that
// script's own modules: node texts.mjs FOLDER
// @ts-check
import { figures, kindOf, longestOf, stepInWords } from "./figures.js";
import { drawing } from "./ring.js";
import { addressOf, answer, readRun } from "../../pieces/run_files.mjs";

const data = await readRun(process.argv[2]);
const { samples: { prompts, checkpoints }, folder, peers, progress } = data;
const now = stepInWords(data, progress.length - 1);
const longest = longestOf(prompts);

answer({
  kind: kindOf(data.card),
  figures: figures(data),
  now,
  prompt: prompts[longest],
  picture: `live/${addressOf(checkpoints.at(-1)?.images[longest]?.[0], folder)}`,
  swarm: textOf(drawing(peers, now.share)),
});

/**
 * An element as HTML has it; names in it come from others.
 * @param {import("./ring.js").Mark | string} mark
 * @returns {string}
 */
function textOf(mark) {
  if (typeof mark === "string") return escaped(mark);
  const attributes = Object.entries(mark.attributes).map(([name, value]) => (value ? ` ${name}="${escaped(value)}"` : ` ${name}`));
  return `<${mark.name}${attributes.join("")}>${mark.inside.map(textOf).join("")}</${mark.name}>`;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
