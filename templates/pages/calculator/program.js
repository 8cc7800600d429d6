// @ts-check
/* The program that carries out the plan. Python writes it; it is asked for once it is unfolded. */

/** @typedef {{program: string, reason: string}} Written One of them is empty. */

const QUIET_MS = 250;

/**
 * @param {HTMLDetailsElement} place
 * @param {(form: string, show: (answer: import("#assets/python.js").Answer) => void) => void} ask Asks Python for the program of the present state in a form.
 */
export function mountProgram(place, ask) {
  /** @param {string} selector */
  const find = (selector) => /** @type {HTMLElement} */ (place.querySelector(selector));
  const note = find(".program__note");
  const form = /** @type {HTMLSelectElement} */ (find("#program-form"));
  // States by their names. The page is built with the program of the state that it opens with.
  /** @type {string | undefined} */
  let shown = place.dataset.for;
  /** @type {string | undefined} */
  let wanted;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let quiet;

  /** @param {string} state */
  const named = (state) => (form.value === "loop" ? state : `${form.value}\n${state}`);

  function request() {
    if (!place.open || wanted === undefined || shown === named(wanted)) return;
    const asked = named(wanted);
    ask(form.value, (answer) => {
      shown = asked;
      if (answer.kind === "error") show({ program: "", reason: answer.error.message });
      else show(answer.value);
    });
  }

  /** @param {Written} written */
  function show({ program, reason }) {
    find("#program-text").textContent = program;
    find(".program").hidden = !program;
    note.textContent = reason && `There is no program for these choices. ${reason}`;
    place.removeAttribute("aria-busy");
  }

  place.addEventListener("toggle", request);
  form.addEventListener("change", () => {
    place.setAttribute("aria-busy", "true");
    if (wanted !== undefined) follow(wanted);
  });

  /** Show the program of a state, once nothing is edited any more. @type {(state: string) => void} */
  function follow(state) {
    clearTimeout(quiet);
    wanted = state;
    if (shown === named(state)) place.removeAttribute("aria-busy");
    else quiet = setTimeout(request, QUIET_MS);
  }

  return {
    follow,
    /** Take away the program: the state is not the one that the page was built with. */
    forget() {
      shown = undefined;
      show({ program: "", reason: "" });
      place.setAttribute("aria-busy", "true");
    },
    /** Show that the program is not that of the present state. */
    showStale() {
      clearTimeout(quiet);
      wanted = undefined;
      place.setAttribute("aria-busy", "true");
    },
  };
}
