// @ts-check
/* The program that carries out the plan. Python writes it; it is asked for once it is unfolded. */

import { find } from "#assets/elements.js";
import { Folded } from "./folded.js";

/** @typedef {{program: string, reason: string}} Written One of them is empty. */

/** @type {(place: HTMLDetailsElement, ask: import("./folded.js").Ask) => {follow: (state: string) => void, showStale: () => void, forget: () => void}} */
export function mountProgram(place, ask) {
  const form = /** @type {HTMLSelectElement} */ (find(place, "#program-form"));
  const folded = new Folded(place, (given) => ask("code", { form: form.value }, given), (answer) => {
    show(answer.kind === "error" ? { program: "", reason: answer.error.message } : answer.value);
    return true;
  });
  /** @type {string | undefined} */
  let wanted;

  /** @param {Written} written */
  function show({ program, reason }) {
    find(place, "#program-text").textContent = program;
    find(place, ".program").hidden = !program;
    find(place, ".program__note").textContent = reason && `There is no program for these choices. ${reason}`;
  }

  form.addEventListener("change", () => {
    place.setAttribute("aria-busy", "true");
    if (wanted !== undefined) follow(wanted);
  });

  /** @param {string} state */
  function follow(state) {
    wanted = state;
    folded.follow(form.value === "loop" ? state : `${form.value}\n${state}`);
  }

  return {
    follow,
    showStale() {
      wanted = undefined;
      folded.showStale();
    },
    /** Take away the program: the state is not the one that the page was built with. */
    forget() {
      show({ program: "", reason: "" });
      folded.forget();
    },
  };
}
