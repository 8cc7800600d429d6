// @ts-check
/* The rows of a table of which only those in sight exist. */

import { make } from "#assets/elements.js";

/** An empty row of a contributor. @type {(person: {id: string}) => HTMLTableRowElement} */
export function makeRow(person) {
  const row = document.createElement("tr");
  row.dataset.id = person.id;
  row.append(
    make("td", { class: "board__rank" }),
    make("th", { class: "board__name", scope: "row" }, make("a", { title: `key ${person.id}` }, make("bdi"))),
    ...["samples", "share", "steps", "seconds", "traffic", "last_seen"].map((column) => make("td", { class: `board__${column}` })),
    make("td", { class: "board__state" }, make("span", { class: "badge" })),
  );
  return row;
}

/** A row that stands for those that do not exist. */
export function spacer() {
  return make("tr", { class: "board__space", "aria-hidden": "true" }, make("td", { colspan: "9" }));
}

/** @type {(space: Element, height: number) => void} */
export function setHeight(space, height) {
  /** @type {HTMLElement} */ (space.firstElementChild).style.height = `${height}px`;
  /** @type {HTMLElement} */ (space).hidden = height === 0;
}

/**
 * Make `wanted` the children without moving those that stay: an element that is moved loses the
 * focus.
 * @type {(parent: HTMLElement, wanted: Element[]) => void}
 */
export function replaceKeeping(parent, wanted) {
  const kept = new Set(wanted);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  let next = parent.firstElementChild;
  for (const child of wanted) {
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}
