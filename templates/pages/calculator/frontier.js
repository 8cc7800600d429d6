// @ts-check
/*
 * The largest micro-batch at each length, as bars; a bar leads to its state. Python says how long
 * each is and what it is called; here is only the drawing.
 */

import { copyOf, find } from "#assets/elements.js";
import { Folded } from "./folded.js";

/** @typedef {{length: string, batch: string, share: number, here: boolean, query: string | null}} Row */

/**
 * @param {HTMLDetailsElement} place
 * @param {import("./folded.js").Ask} ask
 * @param {(query: string) => void} go Goes to a state.
 */
export function mountFrontier(place, ask, go) {
  /** @param {Row} row */
  function draw({ length, batch, share, here, query }) {
    const item = copyOf(find(place, "template"), { length, batch });
    const button = /** @type {HTMLButtonElement} */ (find(item, "button"));
    item.style.setProperty("--share", String(share));
    item.toggleAttribute("data-here", here);
    button.disabled = query === null;
    button.addEventListener("click", () => go(query ?? ""));
    return item;
  }

  return new Folded(place, (show) => ask("frontier", {}, show), (answer) => {
    find(place, "[role='status']").textContent = answer.kind === "error" ? answer.error.message : answer.value.note;
    if (answer.kind === "error") return false;
    find(place, ".frontier").replaceChildren(...answer.value.rows.map(draw));
    return true;
  });
}
