// @ts-check
/*
 * An answer that is folded away at first: Python is asked for it once it is unfolded and nothing has
 * been edited for a while, since the figures come first.
 */

const QUIET_MS = 250;

/** @typedef {(answer: import("#assets/python.js").Answer) => void} Show */
/** @typedef {(method: string, more: Record<string, string>, show: Show) => void} Ask Asks Python about the present state and what is added to it; nothing is shown after an edit. */

export class Folded {
  // States by their names. The page is built with what one of them has, or with nothing.
  /** @type {string | undefined} */
  #shown;
  /** @type {string | undefined} */
  #wanted;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #quiet;

  /**
   * @param {HTMLDetailsElement} place
   * @param {(show: Show) => void} ask
   * @param {(answer: import("#assets/python.js").Answer) => boolean} show Returns whether the place is up to date now.
   */
  constructor(place, ask, show) {
    this.place = place;
    this.ask = ask;
    this.show = show;
    this.#shown = place.dataset.for;
    place.addEventListener("toggle", () => this.#request());
  }

  /** Show that what is there is not of the present state. */
  showStale() {
    clearTimeout(this.#quiet);
    this.#wanted = undefined;
    this.place.setAttribute("aria-busy", "true");
  }

  /** Note that what is there is of no state any more. */
  forget() {
    this.#shown = undefined;
    this.place.setAttribute("aria-busy", "true");
  }

  /** Ask once more about the same state, since something else is asked. */
  again() {
    this.forget();
    this.#request();
  }

  /** Show what a state has, once nothing is edited any more. @param {string} state */
  follow(state) {
    clearTimeout(this.#quiet);
    this.#wanted = state;
    if (this.#shown === state) this.place.removeAttribute("aria-busy");
    else this.#quiet = setTimeout(() => this.#request(), QUIET_MS);
  }

  #request() {
    if (!this.place.open || this.#wanted === undefined || this.#shown === this.#wanted) return;
    const asked = this.#wanted;
    this.ask((answer) => {
      if (!this.show(answer)) return;
      this.#shown = asked;
      this.place.removeAttribute("aria-busy");
    });
  }
}
