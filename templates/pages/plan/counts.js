// @ts-check
/*
 * Rows of a name and a number, such as GPUs and the volunteers who have them. All rows together are
 * the value of one option, as in "t4:5,l4:2", which a hidden control holds.
 */

import { copyOf, find } from "#assets/elements.js";

/**
 * @param {Element} frame The option's field.
 * @param {() => string} taken A name that no new row begins with.
 */
export function mountCounts(frame, taken) {
  const held = /** @type {HTMLInputElement} */ (find(frame, "input[type=hidden]"));
  const rows = find(frame, "[data-rows]");
  const add = /** @type {HTMLButtonElement} */ (find(frame, "[data-add]"));
  const template = /** @type {HTMLTemplateElement} */ (find(frame, "template"));

  const textOf = () => [...rows.children].map((row) => `${nameOf(row).value}:${numberOf(row).value}`).join(",");

  /** The form gets one edit of one option, whichever row changed. */
  function change() {
    held.value = textOf();
    held.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /**
   * @param {string} [name]
   * @param {string} [number]
   */
  function append(name = firstUnused(), number = "1") {
    const row = copyOf(template, {});
    nameOf(row).value = name;
    numberOf(row).value = number;
    describe(row);
    rows.append(row);
    add.disabled = rows.children.length >= nameOf(row).options.length;
    return row;
  }

  function firstUnused() {
    const used = new Set([taken(), ...[...rows.children].map((row) => nameOf(row).value)]);
    const all = /** @type {HTMLSelectElement} */ (template.content.querySelector("select")).options;
    return [...all].map((option) => option.value).find((name) => !used.has(name)) ?? all[0].value;
  }

  add.addEventListener("click", () => {
    const row = append();
    change();
    nameOf(row).focus();
  });
  rows.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("button");
    const row = button?.parentElement;
    if (!row) return;
    const near = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    add.disabled = false;
    change();
    (near?.querySelector("button") ?? add).focus(); // the button that was pressed is gone
  });
  rows.addEventListener("input", (event) => {
    event.stopPropagation(); // these controls are no options of their own
    const row = /** @type {Element} */ (event.target).closest(".counts__row");
    if (row) describe(row);
    change();
  });

  return {
    /** Show a value, unless it is there already or someone is typing it. @type {(text: string) => void} */
    show(text) {
      if (text === textOf() || rows.contains(document.activeElement)) return;
      rows.replaceChildren();
      add.disabled = false;
      for (const part of text.split(",").filter(Boolean)) {
        const [name, number] = part.split(":");
        append(name, number);
      }
    },
  };
}

/** @param {Element} row */
const nameOf = (row) => /** @type {HTMLSelectElement} */ (row.querySelector("select"));

/** @param {Element} row */
const numberOf = (row) => /** @type {HTMLInputElement} */ (row.querySelector("input"));

/** Say in the controls' names which row they are of. @type {(row: Element) => void} */
function describe(row) {
  const title = nameOf(row).selectedOptions[0]?.textContent ?? "";
  numberOf(row).setAttribute("aria-label", `Volunteers with ${title}`);
  row.querySelector("button")?.setAttribute("aria-label", `Remove ${title}`);
}
