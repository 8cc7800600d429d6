// @ts-check
/*
 * The answer's figures. The markup was rendered when the site was built; each element says which
 * figure it shows (`data-text`) or which sizes CSS draws it by (`data-lengths`).
 */

import { copyOf, find, findAll, make } from "#assets/elements.js";

const NO_FIGURE = "–";
const NO_VERDICT = "No figures for these choices yet.";
const COMPUTING = "Computing \u2026";
const NOTHING = "Nothing can be counted for these choices.";
// What a visitor who begins with choices that are refused would wait for in vain.
const WAITING = "#advice-note, .curve__note, #calculator-frontier [role=status]";
const NONE = { "verdict.text": NO_VERDICT, "verdict.words": NO_VERDICT, "verdict.sum": "", "beside.words": "", time: "", training: "", evidence: "" };

/**
 * What stands at a dotted path.
 * @param {any} value
 * @param {string} path
 */
const lookUp = (value, path) => path.split(".").reduce((found, name) => found?.[name], value);

/**
 * Show figures. Those that the value lacks go, if they do not come soon: without a simulation of the
 * allocator it has neither what this reserves nor, where that decides, the verdict.
 * @param {any} value The value that calculator.protocol returns for "glance" or "answer".
 */
export function showFigures(value) {
  const isWhole = Boolean(value.monitor);
  for (const element of findAll(document, "[data-text]")) {
    const text = value.figures[element.dataset.text ?? ""] ?? (isWhole ? "" : undefined);
    element.toggleAttribute("data-late", text === undefined);
    if (text !== undefined && element.textContent !== text) element.textContent = text;
  }
  for (const element of findAll(document, "[data-lengths]")) {
    for (const pair of (element.dataset.lengths ?? "").split(" ")) {
      const [name, path] = pair.split(":");
      const length = lookUp(value, path);
      if (length !== undefined) element.style.setProperty(`--${name}`, String(length));
    }
  }
  for (const element of findAll(document, "[data-phase]")) {
    element.toggleAttribute("data-peak", element.dataset.phase === value.report.gpu.phase);
  }
  showSavings(value.savings, value.figures);
  showNotes(value.notes);
  find(document, "#calculator-command").textContent = value.command;
  const answer = find(document, "#calculator-answer");
  answer.toggleAttribute("data-plain", value.is_plain);
  for (const state of ["data-stale", "data-none"]) answer.removeAttribute(state);
  find(document, "#calculator-refused").textContent = "";
  if (value.verdict) showFit(value.verdict.state);
  else showStale(COMPUTING, "", "verdict");
  answer.dataset.figuresId = String(Number(answer.dataset.figuresId ?? 0) + 1);
}

/** @param {any} value The value that calculator.protocol returns for "answer". */
export function showAnswer(value) {
  showFigures(value);
  const answer = find(document, "#calculator-answer");
  answer.dataset.answerId = String(Number(answer.dataset.answerId) + 1);
}

/** @param {string} state A verdict's, in which its marks are drawn. */
function showFit(state) {
  for (const element of findAll(document, "[data-fit]:not(.files__run)")) element.dataset.fit = state;
}

/**
 * Dim what is not of the form's present state: no verdict stands above it.
 * @param {string} words
 * @param {string} sum
 * @param {"" | "figures" | "verdict"} part Which alone is not; empty for both.
 */
function showStale(words, sum = "", part = "") {
  find(document, "#calculator-answer").dataset.stale = part;
  const texts = { "verdict.words": words, "verdict.sum": sum, "verdict.text": `${words} ${sum}`.trim() };
  for (const [path, text] of Object.entries(texts)) {
    for (const element of document.querySelectorAll(`[data-text='${path}']`)) {
      element.removeAttribute("data-late");
      element.textContent = text;
    }
  }
}

/** @param {string} subject What the figures will be for. */
export const showComputing = (subject) => showStale(COMPUTING, subject);

/**
 * Show a verdict that is known before the other figures of these choices.
 * @param {[string, string] | undefined} known Its state, and the sum behind it.
 */
export function showVerdict(known) {
  if (!known) return;
  const [state, sum] = known;
  showStale(`${state.charAt(0).toUpperCase()}${state.slice(1)}.`, sum, "figures");
  showFit(state);
}

/** Say that no figures will come, because Python is gone. */
export function showStopped() {
  if ("stale" in find(document, "#calculator-answer").dataset) showStale(NO_VERDICT);
}

/** Show that no figures are known: those that are in the page belong to other choices. */
export function showNone() {
  for (const element of document.querySelectorAll("[data-text]")) {
    element.removeAttribute("data-late");
    element.textContent = NO_FIGURE;
  }
  for (const [path, text] of Object.entries(NONE)) {
    for (const element of document.querySelectorAll(`[data-text='${path}']`)) element.textContent = text;
  }
  for (const element of findAll(document, "[data-lengths]")) {
    for (const pair of (element.dataset.lengths ?? "").split(" ")) element.style.setProperty(`--${pair.split(":")[0]}`, "0");
  }
  showSavings([], {});
  showNotes([]);
  find(document, "#calculator-no-savings").hidden = true;
  find(document, "#calculator-command").textContent = NO_FIGURE;
  find(document, "#calculator-answer").dataset.none = "";
}

/**
 * Say above the figures that they are not those of the form's present state.
 * @param {string} reason
 * @param {{words: string, take: () => void}} [way] The nearest choices that are answered.
 */
export function showRefused(reason, way) {
  showStale(NO_VERDICT);
  const place = find(document, "#calculator-refused");
  const none = "none" in find(document, "#calculator-answer").dataset;
  place.textContent = none ? `There are no figures for these choices. ${reason}` : `These figures are not for your choices. ${reason}`;
  if (way) {
    const button = make("button", { type: "button", class: "button button--small" }, way.words);
    button.addEventListener("click", way.take);
    place.append(" ", button);
  }
  if (none) for (const note of document.querySelectorAll(WAITING)) note.textContent = NOTHING;
}

/** Say that the figures are not yet those of the form's present state. @type {(busy: boolean) => void} */
export function showBusy(busy) {
  find(document, "#calculator-answer").setAttribute("aria-busy", String(busy));
}

/** @type {(savings: any[], figures: Record<string, string>) => void} */
function showSavings(savings, figures) {
  const rows = savings.map((saving, index) => {
    const [gpu, ram] = ["gpu", "ram"].map((name) => figures[`savings.${index}.${name}`]);
    const row = copyOf(find(document, "#saving-row"), { label: saving.label, gpu, ram });
    row.style.setProperty("--bytes", saving.gpu);
    row.toggleAttribute("data-costs", saving.gpu < 0);
    return row;
  });
  find(document, "#calculator-savings").replaceChildren(...rows);
  find(document, "#calculator-no-savings").hidden = rows.length > 0;
}

/** @param {string[]} notes */
function showNotes(notes) {
  find(document, "#calculator-notes").replaceChildren(...notes.map((note) => make("li", {}, note)));
  find(document, "#calculator-notes-block").hidden = notes.length === 0;
}
