// @ts-check
/* Mounting a script on a figure of its page, and finding what is in it. */

/**
 * Call `mount` with each element of that selector, once, also after instant navigation.
 * @type {(selector: string, mount: (root: HTMLElement) => void) => void}
 */
export function mountEach(selector, mount) {
  const mountNew = () => {
    for (const root of document.querySelectorAll(`${selector}:not([data-mounted])`)) {
      if (!(root instanceof HTMLElement)) continue;
      root.dataset.mounted = "";
      mount(root);
    }
  };
  // Material's instant navigation replaces the content and emits each new document.
  const documents = /** @type {any} */ (globalThis).document$;
  if (documents) documents.subscribe(mountNew);
  else mountNew();
}

/**
 * @param {Element} root
 * @param {string} selector
 */
export const find = (root, selector) => /** @type {HTMLElement} */ (root.querySelector(selector));

/**
 * @template {Element} E
 * @param {Element} root
 * @param {string} selector
 * @returns {E[]}
 */
export const findAll = (root, selector) => [.../** @type {NodeListOf<E>} */ (root.querySelectorAll(selector))];
