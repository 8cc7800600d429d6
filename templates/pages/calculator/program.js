// @ts-check
/* The program that carries out the plan. Python writes it; it is asked for once it is unfolded. */

import { find } from "#assets/elements.js";
import { Folded } from "./folded.js";

/** @typedef {{program: string, reason: string}} Written One of them is empty. */

/** @type {(place: HTMLDetailsElement, ask: import("./folded.js").Ask) => Folded} */
export function mountProgram(place, ask) {
  const form = /** @type {HTMLSelectElement} */ (find(place, "#program-form"));

  /** @param {Written} written */
  function show({ program, reason }) {
    find(place, "#program-text").textContent = program;
    find(place, ".program").hidden = !program;
    find(place, ".program__note").textContent = reason && `There is no program for these choices. ${reason}`;
  }

  const folded = new Folded(place, (given) => ask("code", { form: form.value }, given), (answer) => {
    show(answer.kind === "error" ? { program: "", reason: answer.error.message } : answer.value);
    return true;
  });
  form.addEventListener("change", () => folded.again());
  return folded;
}
