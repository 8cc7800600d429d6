// @ts-check
/* 'Train in this tab': everything else is loaded when the visitor presses Start. */

const FIGURE = "#tab:not([data-mounted])";

function mountIfHere() {
  const root = document.querySelector(FIGURE);
  if (!(root instanceof HTMLElement)) return;
  root.dataset.mounted = "";
  const start = /** @type {HTMLButtonElement} */ (root.querySelector("[data-start]"));
  const begin = async () => {
    start.disabled = true;
    try {
      const { Figure } = await import("./figure.js");
      await Figure.begin(root);
    } catch (error) {
      console.warn("Training could not begin.", error);
      /** @type {HTMLElement} */ (root.querySelector("[data-said]")).textContent = "The files did not load. Check your connection, then press Start again.";
    }
    start.disabled = false;
  };
  start.addEventListener("click", () => void (root.dataset.begun === undefined && begin()));
}

// Material's instant navigation replaces the content and emits each new document.
const documents = /** @type {any} */ (globalThis).document$;
if (documents) documents.subscribe(mountIfHere);
else mountIfHere();
