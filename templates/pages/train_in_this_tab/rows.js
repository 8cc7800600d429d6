// @ts-check
/* The table of volunteers: what each did in the newest step, its pace, and its plug. */

import { make, write } from "#assets/elements.js";
import { bytes, count } from "#assets/live/words.js";

/** @typedef {import("./swarm.js").Volunteer} Volunteer */
/** @typedef {import("./swarm.js").Step} Step */

const HOME = 20e6; // bit/s
const PACES = { 1: "full", 2: "half", 4: "a quarter", link: "20 Mbit/s" };
/** @type {Record<string, string>} */
const CHANGED = { 1: "computes at its full pace", 2: "computes at half its pace", 4: "computes at a quarter of its pace", link: "sends and receives at 20 Mbit/s" };
/** @type {Record<string, string>} */
const COLUMNS = { waits: "Waits", sequences: "Pictures", total: "In all", sent: "Bytes" };
const BEHAVIORS = { honest: "its gradient", pull: "the opposite", scale: "1,000 times more", noise: "noise", collude: "an agreed lie" };

/** @param {number} number */
export const nameOf = (number) => (number <= 26 ? String.fromCharCode(64 + number) : `Volunteer ${number}`);

export class Rows {
  /** @type {Map<number, HTMLTableRowElement>} */
  #rows = new Map();

  /**
   * @param {HTMLTableSectionElement} body
   * @param {{tell: (number: number, order: import("#assets/tab/member.js").Order) => void, changed: (words: string) => void, unplug: (number: number) => void}} actions
   */
  constructor(body, actions) {
    this.body = body;
    this.actions = actions;
    body.replaceChildren();
  }

  /** @param {Volunteer[]} volunteers A row for each that is there. */
  show(volunteers) {
    const there = new Set(volunteers.map(({ number }) => number));
    for (const [number, row] of this.#rows) {
      if (there.has(number)) continue;
      row.remove();
      this.#rows.delete(number);
    }
    for (const { number } of volunteers) {
      if (this.#rows.has(number)) continue;
      const row = this.#make(number);
      this.#rows.set(number, row);
      this.body.append(row);
    }
  }

  /** @param {Step} step */
  fill({ volunteers, seconds }) {
    for (const { number, sequences, computing, bytes: sent, total } of volunteers) {
      const row = this.#rows.get(number);
      if (!row) continue;
      const share = Math.min(1, computing / seconds);
      /** @type {HTMLElement} */ (row.querySelector("[data-bar]")).style.setProperty("--share", `${(100 * share).toFixed(0)}%`);
      const figures = { waits: `${(100 * (1 - share)).toFixed(0)}\u00a0%`, sequences: count(sequences), sent: bytes(sent), total: count(total) };
      for (const [name, words] of Object.entries(figures)) write(row.querySelector(`[data-${name}]`), words);
    }
  }

  /** @param {number} number */
  #make(number) {
    const name = nameOf(number);
    const pace = choice(`pace-${name}`, `Pace of ${name}`, PACES, (value) => {
      this.actions.tell(number, { kind: "slow", factor: Number(value) || 1 });
      this.actions.tell(number, { kind: "link", bitsPerSecond: value === "link" ? HOME : Infinity });
      this.actions.changed(`${name} ${CHANGED[value]}`);
    });
    const behavior = choice(`sends-${name}`, `What ${name} sends`, BEHAVIORS, (value) => {
      row.toggleAttribute("data-bad", value !== "honest");
      this.actions.tell(number, { kind: "behave", behavior: /** @type {any} */ (value) });
      this.actions.changed(`${name} sends ${BEHAVIORS[/** @type {keyof typeof BEHAVIORS} */ (value)]}`);
    });
    const unplug = make("button", { type: "button", class: "button button--small", "aria-label": `Unplug ${name}` }, "Unplug");
    unplug.addEventListener("click", () => {
      const next = /** @type {HTMLElement | null} */ (this.#rows.get(number)?.nextElementSibling?.querySelector("button") ?? null);
      this.actions.unplug(number);
      next?.focus();
    });
    const cell = (/** @type {string} */ key) => make("td", { role: "cell", [`data-${key}`]: "", "data-column": COLUMNS[key] }, "–");
    const last = (/** @type {Node} */ inside) => make("td", { role: "cell", class: "tab__choice" }, inside);
    const row = make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader" }, name),
      make("td", { role: "cell", class: "tab__bar" }, make("span", { "data-bar": "", "aria-hidden": "true" })),
      ...Object.keys(COLUMNS).map(cell), last(pace), last(behavior), last(unplug));
    return row;
  }
}

/**
 * @param {string} name
 * @param {string} label
 * @param {Record<string, string>} options words by value
 * @param {(value: string) => void} act
 */
function choice(name, label, options, act) {
  const select = make("select", { name, "aria-label": label }, ...Object.entries(options).map(([value, words]) => make("option", { value }, words)));
  select.addEventListener("change", () => act(select.value));
  return select;
}
