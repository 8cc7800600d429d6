// @ts-check
/* Buttons that copy what their `data-copies` holds, or else the text of the element before them. */

const SHOWN_MS = 2000;

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-copies]") : null;
  if (!(button instanceof HTMLElement)) return;
  const { copies } = button.dataset;
  const source = /** @type {Element} */ (button.previousElementSibling);
  try {
    await navigator.clipboard.writeText(copies || (source.textContent ?? ""));
    say(button, "Copied");
  } catch {
    if (!copies) getSelection()?.selectAllChildren(source);
    say(button, copies ? "Not allowed here" : "Selected: press Ctrl+C");
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
