// @ts-check
/* Elements made in one expression. Texts become text nodes: names and captions come from others. */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Text into the element that shows it, only where it differs.
 * @type {(element: Element | null, text: string) => void}
 */
export function write(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

/**
 * Copy a text; say so on the button.
 * @param {HTMLButtonElement} button
 * @param {string} text
 * @param {Element} [shown] selected where the clipboard may not be used
 */
export async function copy(button, text, shown) {
  const before = (button.dataset.before ??= button.textContent ?? "");
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    if (shown) getSelection()?.selectAllChildren(shown);
    button.textContent = shown ? "Selected: press Ctrl+C" : "Not allowed here";
  }
  setTimeout(() => (button.textContent = before), 2000);
}
