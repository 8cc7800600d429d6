// @ts-check
/*
 * The model's combobox (ARIA Authoring Practices: editable combobox with list autocomplete). The
 * list is in the page; typing filters it by any part of group, title and name. A chosen name reaches
 * the form, as an `input` event, and so does one that the list lacks, such as an address on the Hub,
 * once it is entered; what is merely typed does not.
 */

import { find, findAll } from "#assets/elements.js";

/** @param {HTMLInputElement} input */
export function mountChooser(input) {
  const frame = /** @type {HTMLElement} */ (input.closest(".chooser"));
  const [list, none] = [find(frame, "[role='listbox']"), find(frame, ".chooser__none")];
  const options = findAll(list, "[role='option']");
  const words = options.map((option) => `${groupOf(option)} ${option.textContent} ${option.dataset.value}`.toLowerCase());
  let before = input.value;
  let committing = false;
  /** @type {HTMLElement | undefined} */
  let active;

  const isOpen = () => input.getAttribute("aria-expanded") === "true";
  const shown = () => options.filter((option) => !option.hidden);

  /** @param {string} typed */
  function filter(typed) {
    const parts = typed.toLowerCase().split(/\s+/).filter(Boolean);
    for (const [index, option] of options.entries()) {
      option.hidden = !parts.every((part) => words[index].includes(part));
    }
    const isEmpty = shown().length === 0;
    list.hidden = isEmpty;
    none.hidden = !isEmpty;
  }

  function open() {
    if (isOpen()) return;
    before = input.value;
    input.setAttribute("aria-expanded", "true");
    for (const option of options) {
      option.setAttribute("aria-selected", String(option.dataset.value === before));
    }
    filter("");
    point(options.find((option) => option.dataset.value === before));
  }

  function close() {
    input.setAttribute("aria-expanded", "false");
    list.hidden = true;
    none.hidden = true;
    point(undefined);
  }

  /** @param {HTMLElement | undefined} option */
  function point(option) {
    active?.removeAttribute("data-active");
    active = option;
    if (option) {
      option.dataset.active = "";
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
      if (option === shown()[0]) list.scrollTop = 0; // its group's heading stands above it
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  }

  /** @param {number} by */
  function step(by) {
    const among = shown();
    if (!among.length) return;
    const at = active ? among.indexOf(active) : -1;
    point(among[at < 0 ? (by > 0 ? 0 : among.length - 1) : (at + by + among.length) % among.length]);
  }

  /** @param {string} name */
  function choose(name) {
    close();
    input.value = name;
    before = name;
    committing = true;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    committing = false;
  }

  /** The name under the pointer, or what was typed if the list has nothing like it. */
  const entered = () => active?.dataset.value ?? (shown().length ? "" : input.value.trim());

  function giveUp() {
    if (!isOpen()) return;
    input.value = before;
    close();
  }

  input.addEventListener("input", (event) => {
    if (committing) return;
    event.stopPropagation();
    if (!isOpen()) open();
    filter(input.value);
    point(shown()[0]);
  });
  input.addEventListener("click", () => {
    open();
    input.select();
  });
  input.addEventListener("blur", () => {
    const typed = input.value.trim();
    if (isOpen() && typed !== before && options.some((option) => option.dataset.value === typed)) choose(typed);
    else giveUp();
  });
  input.addEventListener("keydown", (event) => {
    const act = {
      ArrowDown: () => (isOpen() ? step(1) : open()),
      ArrowUp: () => (isOpen() ? step(-1) : open()),
      Enter: () => (isOpen() && entered() ? choose(entered()) : open()),
      Escape: giveUp,
    }[event.key];
    if (!act || event.isComposing) return;
    if (event.key === "Escape" && !isOpen()) return;
    event.preventDefault();
    act();
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the input keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target instanceof Element && event.target.closest("[role='option']");
    if (option instanceof HTMLElement) choose(option.dataset.value ?? "");
  });
}

/** @param {HTMLElement} option */
const groupOf = (option) => option.closest("[role='group']")?.querySelector(".chooser__group")?.textContent ?? "";

/** @type {(form: HTMLFormElement, name: string) => boolean} */
export const isListed = (form, name) => form.querySelector(`[role='option'][data-value='${CSS.escape(name)}']`) !== null;

/**
 * The list's model with the shape of one that it lacks, as `calculator.catalog.names` finds it.
 * @type {(typed: string, shapes: { variants: string, names: Record<string, string> } | undefined) => string}
 */
export function shapeOf(typed, shapes) {
  const [name = ""] = typed.toLowerCase().replace(/\.gguf$/, "").split("/").slice(-1);
  const words = name.split(/[-\s:]+/);
  const isVariant = new RegExp(`^(?:${shapes?.variants})$`);
  const isSized = words.some((word) => /^((\d+x)?\d+(\.\d+)?[bm]|\d{4})$/.test(word));
  const kept = words.filter((word) => !isVariant.test(word) && (word !== "base" || !isSized));
  return shapes?.names[kept.join("").replaceAll("_", "")] ?? "";
}
