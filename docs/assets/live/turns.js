// @ts-check
/* Long work in parts: between two of them the browser does what waits, such as a click. */

/** The next turn of the event loop. @type {() => Promise<void>} */
export function nextTurn() {
  const { scheduler } = /** @type {any} */ (globalThis);
  return scheduler?.yield?.() ?? new Promise((resolve) => { setTimeout(resolve); });
}
