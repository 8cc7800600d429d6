// @ts-check
/*
 * The charts' library: a megabyte. It comes when the visitor touches the page, or as soon as the page
 * rests with a chart in view.
 */

import { nextTurn } from "#assets/live/turns.js";

const PLOTLY = new URL("./plotly-basic.min.js", import.meta.url); // bundled, this is in assets/
const TOUCHES = ["pointermove", "pointerdown", "wheel", "keydown"];

const touched = new Promise((resolve) => {
  for (const touch of TOUCHES) addEventListener(touch, resolve, { once: true, passive: true });
});
/** @type {(value?: unknown) => void} */
let need = () => {};
const needed = new Promise((resolve) => { need = resolve; });

/** @type {Promise<any> | undefined} */
let plotly;

/** Plotly, loaded once. */
export function loadPlotly() {
  plotly ??= Promise.race([touched, needed.then(rest)]).then(load).then(warm);
  return plotly;
}

/** A chart is in view. */
export function needPlotly() {
  need();
}

/** @returns {Promise<unknown>} */
function rest() {
  return new Promise((resolve) => {
    const wait = () => (globalThis.requestIdleCallback ?? setTimeout)(resolve);
    if (document.readyState === "complete") wait();
    else addEventListener("load", wait, { once: true });
  });
}

/** @returns {Promise<any>} */
function load() {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = PLOTLY.href;
    script.dataset.handled = ""; // no notice of the page's own, see first.html
    script.onload = () => resolve(/** @type {any} */ (globalThis).Plotly);
    script.onerror = () => {
      plotly = undefined;
      script.remove();
      reject(new Error("the chart library did not load"));
    };
    document.head.append(script);
  });
}

/**
 * Let the library draw an empty chart that nobody sees: what it does once takes half as long as
 * the first chart, and the two are works for themselves.
 * @type {(library: any) => Promise<any>}
 */
async function warm(library) {
  await nextTurn();
  const unseen = document.createElement("div");
  await library.newPlot(unseen, [], { width: 200, height: 100 }, { displayModeBar: false });
  library.purge(unseen);
  await nextTurn();
  return library;
}
