// @ts-check
/*
 * What would make it fit: the ways that Python finds, each a button that changes the form. The
 * search takes longer than the figures, so Python gives what it has, and is asked for more.
 */

import { copyOf, find } from "#assets/elements.js";

/** @typedef {{words: string, need: string, details: string, query: string | null}} Way */
/** @typedef {{title: string, note: string, done: boolean, ways: Way[]}} Advice */

const SEARCHING = "Searching \u2026";

/**
 * @param {HTMLElement} place
 * @param {(query: string) => () => void} follow Goes to a state; returns the way back.
 */
export function mountAdvice(place, follow) {
  const undo = /** @type {HTMLButtonElement} */ (place.querySelector("#advice-undo"));
  /** @type {(() => void) | undefined} */
  let back;
  place.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("button");
    if (!button) return;
    if (button.id === "advice-more") return unfold();
    if (button === undo) {
      back?.();
      say("Undone.");
      forget();
      return find(document, "#advice").focus();
    }
    back = follow(button.dataset.query ?? "");
    const words = button.querySelector("[data-part=words]")?.textContent ?? "";
    say(`Done: ${words}.`);
    undo.textContent = "Undo";
    undo.title = words;
    undo.hidden = false;
    undo.focus(); // the button that was pressed goes
  });

  function forget() {
    back = undefined;
    undo.hidden = true;
  }
  return { forget };
}

function unfold() {
  find(document, "#advice-ways").dataset.all = "";
  find(document, "#advice-more").hidden = true;
  /** @type {HTMLElement | null} */ (document.querySelector(".ways__more button"))?.focus();
}

/** @param {string} words */
function say(words) {
  find(document, "#advice-status").textContent = words;
}

/** Show that the ways on the page belong to other choices. */
export function showSearching() {
  find(document, "#calculator-advice").setAttribute("aria-busy", "true");
}

/** Show that nothing is known yet. */
export function showNoAdvice() {
  showSearching();
  delete find(document, "#calculator-advice").dataset.for;
  find(document, "#advice-ways").replaceChildren();
  find(document, "#advice-more").hidden = true;
  find(document, "#advice-note").textContent = SEARCHING;
}

/**
 * Whether the whole advice for a state is on the page; then it is no longer marked as another's.
 * @type {(state: string) => boolean}
 */
export function hasAdvice(state) {
  const place = find(document, "#calculator-advice");
  if (place.dataset.for !== state) return false;
  place.setAttribute("aria-busy", "false");
  return true;
}

/**
 * @param {Advice} advice As far as Python has come.
 * @param {string} state What it is for.
 */
export function showAdvice(advice, state) {
  const place = find(document, "#calculator-advice");
  place.setAttribute("aria-busy", String(!advice.done));
  if (advice.done) place.dataset.for = state;
  else delete place.dataset.for;
  find(document, "#advice").textContent = advice.title;
  find(document, "#advice-note").textContent = advice.note || (advice.ways.length || advice.done ? "" : SEARCHING);
  const shown = Number(place.dataset.shown);
  find(document, "#advice-ways").replaceChildren(...advice.ways.map((way, index) => rowOf(way, index >= shown)));
  delete find(document, "#advice-ways").dataset.all;
  const more = find(document, "#advice-more");
  more.hidden = !advice.done || advice.ways.length <= shown;
  more.textContent = `Show ${advice.ways.length - shown} more`;
}

/** @type {(way: Way, folded: boolean) => HTMLElement} */
function rowOf(way, folded) {
  const row = copyOf(find(document, way.query === null ? "#way-words" : "#way-button"), way);
  row.classList.toggle("ways__more", folded);
  if (way.query !== null) /** @type {HTMLElement} */ (row.firstElementChild).dataset.query = way.query;
  return row;
}
