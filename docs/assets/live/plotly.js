// @ts-check
/* The charts' library: a megabyte, so it is loaded only where something is drawn, and not at once. */

const PLOTLY = new URL("./plotly-basic.min.js", import.meta.url); // bundled, this is in assets/
const TOUCHES = ["pointermove", "pointerdown", "wheel", "keydown"];

/** @type {Promise<any> | undefined} */
let plotly;

/** Plotly, loaded once: when the page is there and rests, or is touched. */
export function loadPlotly() {
  plotly ??= restOrTouch().then(load);
  return plotly;
}

/** @returns {Promise<unknown>} */
function restOrTouch() {
  return new Promise((resolve) => {
    const rest = () => (globalThis.requestIdleCallback ?? setTimeout)(resolve);
    for (const touch of TOUCHES) addEventListener(touch, resolve, { once: true, passive: true });
    if (document.readyState === "complete") rest();
    else addEventListener("load", rest, { once: true });
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
