// @ts-check
/* The charts' library: a megabyte, so it is loaded only where something is drawn. */

const PLOTLY = new URL("../plotly-basic.min.js", import.meta.url);

/** @type {Promise<any> | undefined} */
let plotly;

/** Plotly, loaded once. */
export function loadPlotly() {
  plotly ??= new Promise((resolve, reject) => {
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
  return plotly;
}
