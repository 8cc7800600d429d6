// @ts-check
/* 'Train in this tab': everything else is loaded when the visitor presses Start. */

const FIGURE = "#tab:not([data-mounted])";

function mountIfHere() {
  const root = document.querySelector(FIGURE);
  if (!(root instanceof HTMLElement)) return;
  root.dataset.mounted = "";
  const start = /** @type {HTMLButtonElement} */ (root.querySelector("[data-start]"));
  /** @type {Promise<import("./figure.js").Figure> | undefined} */
  let begun;
  const begin = async () => {
    start.disabled = true;
    try {
      const { Figure } = await import("./figure.js");
      begun ??= Figure.begin(root);
      await begun;
    } catch (error) {
      begun = undefined;
      console.warn("Training could not begin.", error);
      /** @type {HTMLElement} */ (root.querySelector("[data-said]")).textContent = "The files did not load. Check your connection, then press Start again.";
    }
    start.disabled = false;
  };
  start.addEventListener("click", () => void (begun ?? begin()));
  for (const button of document.querySelectorAll("[data-try]")) {
    button.addEventListener("click", async () => {
      if (!begun) await begin();
      (await begun)?.attempt(/** @type {HTMLElement} */ (button).dataset.try ?? "");
    });
  }
}

// Material's instant navigation replaces the content and emits each new document.
const documents = /** @type {any} */ (globalThis).document$;
if (documents) documents.subscribe(mountIfHere);
else mountIfHere();
