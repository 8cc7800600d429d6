// @ts-check
/* Long work in parts: between two of them the browser does what waits, such as a click. */

const TURN_MS = 10;

/** The next turn of the event loop. @type {() => Promise<void>} */
export function nextTurn() {
  const { scheduler } = /** @type {any} */ (globalThis);
  return scheduler?.yield?.() ?? new Promise((resolve) => { setTimeout(resolve); });
}

/** One work that is done in parts. */
export class Turns {
  #began = performance.now();

  /** Wait for the next turn if this one has lasted long. */
  async pause() {
    if (performance.now() - this.#began < TURN_MS) return;
    await nextTurn();
    this.#began = performance.now();
  }
}
