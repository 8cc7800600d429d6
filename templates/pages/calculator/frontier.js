// @ts-check
/*
 * The largest micro-batch at each length, as bars; a bar leads to its state. Python says how long
 * each is and what it is called; here is only the drawing.
 */

/** @typedef {{length: string, batch: string, share: number, here: boolean, query: string | null}} Row */

const QUIET_MS = 250;

/**
 * @param {HTMLDetailsElement} place
 * @param {(show: (answer: import("#assets/python.js").Answer) => void) => void} ask Asks Python for the frontier of the present state.
 * @param {(query: string) => void} go Goes to a state.
 */
export function mountFrontier(place, ask, go) {
  const rows = /** @type {HTMLElement} */ (place.querySelector(".frontier"));
  const note = /** @type {HTMLElement} */ (place.querySelector("[role='status']"));
  const template = /** @type {HTMLTemplateElement} */ (place.querySelector("template"));
  // States by their names; the default's is empty.
  /** @type {string | undefined} */
  let shown;
  /** @type {string | undefined} */
  let wanted;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let quiet;

  function request() {
    if (!place.open || wanted === undefined || shown === wanted) return;
    const asked = wanted;
    ask((answer) => {
      note.textContent = answer.kind === "error" ? answer.error.message : answer.value.note;
      if (answer.kind === "error") return;
      shown = asked;
      rows.replaceChildren(...answer.value.rows.map(draw));
      place.removeAttribute("aria-busy");
    });
  }

  /** @param {Row} row */
  function draw({ length, batch, share, here, query }) {
    const item = /** @type {HTMLElement} */ (/** @type {Element} */ (template.content.firstElementChild).cloneNode(true));
    const button = /** @type {HTMLButtonElement} */ (item.querySelector("button"));
    for (const [name, text] of Object.entries({ length, batch })) {
      /** @type {HTMLElement} */ (item.querySelector(`[data-part='${name}']`)).textContent = text;
    }
    item.style.setProperty("--share", String(share));
    item.toggleAttribute("data-here", here);
    button.disabled = query === null;
    button.addEventListener("click", () => go(query ?? ""));
    return item;
  }

  place.addEventListener("toggle", request);

  return {
    showStale() {
      clearTimeout(quiet);
      wanted = undefined;
      place.setAttribute("aria-busy", "true");
    },
    /** Draw the frontier of a state, once nothing is edited any more. @type {(state: string) => void} */
    follow(state) {
      clearTimeout(quiet);
      wanted = state;
      if (shown === state) place.removeAttribute("aria-busy");
      else quiet = setTimeout(request, QUIET_MS);
    },
  };
}
