// @ts-check
/* Buttons that copy the text of another element: `data-copies` has its id. */

const SHOWN_MS = 2000;

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-copies]") : null;
  if (!(button instanceof HTMLElement)) return;
  const source = /** @type {HTMLElement} */ (document.getElementById(button.dataset.copies ?? ""));
  try {
    await navigator.clipboard.writeText(source.textContent ?? "");
    say(button, "Copied");
  } catch {
    getSelection()?.selectAllChildren(source);
    say(button, "Selected: press Ctrl+C");
  }
});

/** Say on a button, and to screen readers, what was done. @type {(button: HTMLElement, words: string) => void} */
function say(button, words) {
  const status = button.nextElementSibling;
  for (const element of [button, status]) if (element) element.textContent = words;
  setTimeout(() => {
    button.textContent = "Copy";
    if (status) status.textContent = "";
  }, SHOWN_MS);
}
