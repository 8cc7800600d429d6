// @ts-check
/*
 * Shared by the demonstrations: sends the state of the controls to Python and shows the texts that
 * Python returns. Python starts before the first touch, unless the connection is metered; what is
 * touched before it is there, a script computes.
 */

import { ask, isReady, warm } from "../python.js";
import { showPythonStatus } from "../python-status.js";

const QUIET_MS = 500;

/**
 * @param {HTMLElement} root The figure: has elements [data-figure], [data-status], [data-summary].
 * @template S
 * @param {string} method The Python method to call.
 * @param {(state: S) => any} compute Answers as Python does; nothing where Python refuses the state.
 * @param {() => S} state What the controls say now.
 * @param {(value: any, newest: boolean) => void} draw Shows an answer, for the newest state or an
 *   earlier one.
 * @returns {() => void} Asks again, after the state has changed.
 */
export function demonstrate(root, method, compute, state, draw) {
  const words = find(root, "[data-status] [data-words]");
  const summary = find(root, "[data-summary]");
  let asked = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let telling;

  function request() {
    const number = ++asked;
    const now = state();
    const first = isReady() ? undefined : compute(now);
    if (first) show(first, true);
    root.setAttribute("aria-busy", String(!first));
    ask(method, /** @type {object} */ (now), (answer) => {
      if (!root.isConnected) return;
      if (number === asked) root.setAttribute("aria-busy", "false");
      words.textContent = answer.kind === "error" ? answer.error.message : "";
      if (answer.kind === "result") show(answer.value, number === asked);
    });
  }

  /**
   * @param {any} value
   * @param {boolean} newest
   */
  function show(value, newest) {
    draw(value, newest);
    showTexts(root, value.figures);
    root.dataset.answerId = String(Number(root.dataset.answerId ?? 0) + 1);
    // Screen readers announce the result when the hand rests, not at each movement.
    clearTimeout(telling);
    telling = setTimeout(() => (summary.textContent = value.figures.summary), QUIET_MS);
  }

  showPythonStatus(root, find(root, "[data-status]"), "", (isBroken) => {
    for (const set of root.querySelectorAll("fieldset")) set.disabled = isBroken;
    if (isBroken) root.setAttribute("aria-busy", "false");
  });
  for (const kind of ["pointerenter", "focusin"]) root.addEventListener(kind, request, { once: true });
  warmInTime(root);
  return request;
}

/** @param {HTMLElement} root What the figure's script shares with Python, as its page has it. */
export const constantsOf = (root) => JSON.parse(root.dataset.constants ?? "");

/**
 * Start Python when the figure comes near, or when the page has nothing else to do.
 *
 * @param {HTMLElement} root
 */
function warmInTime(root) {
  const { saveData = false, type = "" } = /** @type {any} */ (navigator).connection ?? {};
  if (saveData || type === "cellular") return;
  const start = () => {
    near.disconnect();
    if (root.isConnected) warm();
  };
  const near = new IntersectionObserver(([entry]) => entry.isIntersecting && start(), { rootMargin: "50%" });
  near.observe(root);
  const whenIdle = () => (globalThis.requestIdleCallback ?? setTimeout)(start);
  if (document.readyState === "complete") whenIdle();
  else addEventListener("load", whenIdle, { once: true });
}

/**
 * Call `mount` with each element of that selector, once, also after instant navigation.
 *
 * @param {string} selector
 * @param {(root: HTMLElement) => void} mount
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

/**
 * @param {Element} root
 * @param {Record<string, string>} figures
 */
function showTexts(root, figures) {
  for (const element of findAll(root, "[data-figure]")) {
    const text = figures[/** @type {HTMLElement} */ (element).dataset.figure ?? ""];
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of findAll(root, "[data-verdict]")) {
    const shown = /** @type {HTMLElement} */ (element);
    shown.dataset.state = figures[shown.dataset.verdict ?? ""];
  }
}
