// @ts-check
/* An out-of-memory message that the visitor pastes: what Python reads in it beside the plan. */

import { copyOf, find, make } from "#assets/elements.js";

/** @typedef {{label: string, text: string}} Row */
/** @typedef {{title: string, words: string, remedy: string, advice: boolean, query: string | null}} Finding */
/** @typedef {{rows: Row[], plan: Row, findings: Finding[]}} Explained */

/**
 * @param {HTMLDetailsElement} place
 * @param {import("./folded.js").Ask} ask
 * @param {(query: string) => void} follow Goes to a state.
 */
export function mountMessage(place, ask, follow) {
  const text = /** @type {HTMLTextAreaElement} */ (find(place, "textarea"));
  const answer = find(place, ".message__answer");
  const error = find(place, "#message-error");

  function request() {
    const message = text.value.trim();
    if (!message) return show(undefined);
    place.setAttribute("aria-busy", "true");
    ask("explain", { message }, (given) => {
      if (message !== text.value.trim()) return;
      place.removeAttribute("aria-busy");
      if (given.kind === "error") refuse(given.error.rule ?? given.error.message);
      else show(given.value);
    });
  }

  /** @param {string} rule */
  function refuse(rule) {
    show(undefined);
    text.setAttribute("aria-invalid", "true");
    error.textContent = `This message ${rule}.`;
  }

  /** @param {Explained | undefined} explained */
  function show(explained) {
    text.removeAttribute("aria-invalid");
    error.textContent = "";
    answer.hidden = !explained;
    if (!explained) return;
    find(place, ".message__rows").replaceChildren(...[...explained.rows, explained.plan].map(rowOf));
    find(place, ".message__findings").replaceChildren(...explained.findings.map(findingOf));
  }

  /** @param {Finding} finding */
  function findingOf(finding) {
    const row = copyOf(find(place, "#message-finding"), finding);
    const { query, remedy } = finding;
    const words = find(row, "[data-part='remedy']");
    // What there is to do becomes something to press.
    if (finding.advice) words.replaceWith(make("a", { href: "#advice" }, remedy));
    if (query !== null) {
      const button = make("button", { type: "button", class: "button button--small" }, remedy);
      button.addEventListener("click", () => follow(query));
      words.replaceWith(button);
    }
    return row;
  }

  text.addEventListener("input", request);
  return { request };
}

/** @param {Row} row */
const rowOf = ({ label, text }) => make("div", {}, make("dt", {}, label), make("dd", {}, text));
