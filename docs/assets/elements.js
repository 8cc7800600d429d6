// @ts-check
/* A page's elements: found, made and filled. Texts become text nodes: names and captions come from others. */

/**
 * Call `mount` with each element of that selector, once, also after instant navigation.
 * @template {HTMLElement} E
 * @param {string} selector
 * @param {(root: E) => void} mount
 */
export function mountEach(selector, mount) {
  const mountNew = () => {
    for (const root of /** @type {E[]} */ (findAll(document, `${selector}:not([data-mounted])`))) {
      root.dataset.mounted = "";
      mount(root);
    }
  };
  // Material's instant navigation replaces the content and emits each new document.
  const documents = /** @type {any} */ (globalThis).document$;
  if (documents) documents.subscribe(mountNew);
  else mountNew();
}

/** @type {(root: ParentNode, selector: string) => HTMLElement} */
export const find = (root, selector) => /** @type {HTMLElement} */ (root.querySelector(selector));

/**
 * @template {Element} [E=HTMLElement]
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {E[]}
 */
export const findAll = (root, selector) => [.../** @type {NodeListOf<E>} */ (root.querySelectorAll(selector))];

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
 * A copy of the element in a template, with texts in its parts: `data-part` names each.
 * @type {(template: HTMLElement, texts: Record<string, any>) => HTMLElement}
 */
export function copyOf(template, texts) {
  const { content } = /** @type {HTMLTemplateElement} */ (template);
  const copy = /** @type {HTMLElement} */ (/** @type {Element} */ (content.firstElementChild).cloneNode(true));
  fillParts(copy, texts);
  return copy;
}

/** Texts into an element's parts. @type {(element: HTMLElement, texts: Record<string, any>) => void} */
export function fillParts(element, texts) {
  for (const part of findAll(element, "[data-part]")) write(part, texts[part.dataset.part ?? ""]);
}

/**
 * Text into the element that shows it, only where it differs.
 * @type {(element: Element | null, text: string) => void}
 */
export function write(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}
