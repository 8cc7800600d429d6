// @ts-check
/*
 * The small calculator: looks up what templates/pages/index/fit.py computed when the site was built.
 */

import { find } from "#assets/elements.js";

const TABLE = new URL("./fit.json", import.meta.url);

/**
 * Needs of one kind of GPU: bytes of each part and of the overhead, and the need in words.
 * @typedef {[number, number, number, number, number, number, string]} Need
 */

/**
 * A way: for each GPU the digit of its kind's needs and that of a verdict, then the needs. Null
 * where the calculator does not count the model that way.
 * @typedef {[string, string, ...Need[]] | null} Way
 */

/**
 * @typedef {object} Table
 * @property {Record<string, [number, string]>} cards memory of each GPU, in bytes and in words
 * @property {number[]} batches
 * @property {number} longest the longest bar that is drawn whole, in the GPU's memory
 * @property {string[]} ways their part of the calculator's address
 * @property {string[]} verdicts
 * @property {string[]} answers
 * @property {Record<string, {about: string, query: string, ways: Way[][], answers: string[]}>} models
 */

/** @param {HTMLElement} root */
export async function mountFit(root) {
  const form = /** @type {HTMLFormElement} */ (find(root, "form"));
  const answer = find(root, "[data-fit-answer]");
  try {
    const response = await fetch(TABLE);
    if (!response.ok) throw new Error(`${TABLE}: ${response.status}`);
    const table = /** @type {Table} */ (await response.json());
    const show = () => showState(root, table, new FormData(form));
    form.addEventListener("input", show);
    // The browser may have kept the choices of an earlier visit, or one was made meanwhile.
    if (isChanged(form)) show();
  } catch (error) {
    console.warn("The table of answers could not be read.", error);
    const tell = () => (answer.textContent = "These figures did not load. The full calculator has them.");
    form.addEventListener("input", tell);
    if (isChanged(form)) tell();
  }
}

/** @param {HTMLFormElement} form */
const isChanged = (form) =>
  [...form.querySelectorAll("option")].some((option) => option.selected !== option.defaultSelected);

/** @type {(root: HTMLElement, table: Table, chosen: FormData) => void} */
function showState(root, table, chosen) {
  const [name, gpu, place] = ["model", "gpu", "batch_size"].map((field) => String(chosen.get(field)));
  const batch = Number(place);
  const model = table.models[name];
  const card = Object.keys(table.cards).indexOf(gpu);
  const [memory, words] = table.cards[gpu];
  const list = find(root, "ol");
  const rows = /** @type {HTMLLIElement[]} */ ([...list.children]);
  const verdicts = model.ways[batch].map((way, index) => {
    const start = [model.query, `gpu=${gpu}`, `batch_size=${table.batches[batch]}`];
    return showRow(rows[index], way, card, table.verdicts, [...start, table.ways[index]].filter(Boolean).join("&"));
  });
  const needs = model.ways[batch].map((way) => (way ? bytesOf(needOf(way, card)).reduce((sum, size) => sum + size, 0) : 0));
  rows.forEach((row, index) => row.toggleAttribute("data-beyond", needs[index] > table.longest * memory));
  list.style.setProperty("--memory", String(memory));
  list.style.setProperty("--largest", String(Math.max(...needs)));
  find(root, "[data-fit-memory]").textContent = words;
  find(root, "[data-fit-about]").textContent = model.about;
  find(root, "[data-fit-answer]").textContent = table.answers[Number(model.answers[batch][card])];
  find(root, ".fit__answer").dataset.fit = table.verdicts[Math.min(...verdicts)];
}

/** @type {(way: NonNullable<Way>, card: number) => Need} */
const needOf = (way, card) => /** @type {Need} */ (way[2 + Number(way[0][card])]);

/** @param {Need} need */
const bytesOf = (need) => /** @type {number[]} */ (need.slice(0, 6));

/**
 * Show a way in its row, and return its verdict's place.
 * @type {(row: HTMLLIElement, way: Way, card: number, verdicts: string[], query: string) => number}
 */
function showRow(row, way, card, verdicts, query) {
  row.hidden = !way;
  if (!way) return verdicts.length - 1;
  const verdict = Number(way[1][card]);
  const need = needOf(way, card);
  row.dataset.fit = verdicts[verdict];
  find(row, "[data-fit-need]").textContent = need[6];
  find(row, "[data-fit-verdict]").textContent = verdicts[verdict];
  const link = /** @type {HTMLAnchorElement} */ (find(row, "a"));
  link.search = query;
  bytesOf(need).forEach((size, index) => {
    /** @type {HTMLElement} */ (find(row, ".bar").children[index]).style.setProperty("--bytes", String(size));
  });
  return verdict;
}
