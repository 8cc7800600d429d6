// @ts-check
/*
 * The contributors: a table of which only the rows in sight exist. Their true number and places
 * are in aria-rowcount and aria-rowindex; arrow keys move from name to name.
 */

import { find } from "#assets/elements.js";
import { hasTraffic, ranked, rowOf } from "./people.js";
import { makeRow, replaceKeeping, setHeight, spacer } from "./rows.js";
import { count } from "#assets/live/words.js";

/** @typedef {import("#assets/live/data.js").Contributor} Contributor */
/** @typedef {import("./people.js").Person} Person */
/** @typedef {"rank" | "name" | "samples" | "share" | "steps" | "seconds" | "traffic" | "last_seen" | "state"} Column */

const SPARE_ROWS = 8; // above and below those in sight
/** @type {Intl.Collator | undefined} */
let collator; // made when it is asked for: see digits.js

/** @type {Record<Column, (a: Person, b: Person) => number>} */
const ORDERS = {
  rank: (a, b) => b.rank - a.rank,
  name: (a, b) => compareNames(b.name, a.name),
  samples: (a, b) => a.samples - b.samples,
  share: (a, b) => a.samples - b.samples,
  steps: (a, b) => a.steps - b.steps,
  seconds: (a, b) => a.seconds - b.seconds,
  traffic: (a, b) => (a.traffic || 0) - (b.traffic || 0),
  last_seen: (a, b) => a.lastSeen - b.lastSeen,
  state: (a, b) => compareNames(b.state, a.state),
};

/** @param {string} first @param {string} second */
function compareNames(first, second) {
  collator ??= new Intl.Collator("en", { sensitivity: "base", numeric: true });
  return collator.compare(first, second);
}

/** The table with its search, order and choice of time. */
export class Leaderboard {
  /** @type {Person[]} */
  #people = [];
  /** @type {Person[]} */
  #shown = [];
  /** @type {Map<string, HTMLTableRowElement>} */
  #rows = new Map();
  #rowHeight = 0;
  #context = { run: "", now: 0, finished: false };
  /** @type {{column: Column, ascending: boolean}} */
  #order = { column: "samples", ascending: false };

  /**
   * @param {HTMLElement} root
   * @param {(who: string) => string} addressOf the address of a contributor's page
   */
  constructor(root, addressOf) {
    this.addressOf = addressOf;
    this.frame = find(root, "[data-live=board]");
    this.table = /** @type {HTMLTableElement} */ (this.frame.querySelector("table"));
    this.body = this.table.tBodies[0];
    this.words = find(root, "[data-live=board-count]");
    this.trafficWords = find(root, "[data-live=traffic-words]");
    this.controls = /** @type {HTMLFormElement} */ (find(root, "[data-live=board-controls]"));
    this.above = spacer();
    this.below = spacer();
    this.controls.addEventListener("input", () => this.#choose());
    this.controls.addEventListener("submit", (event) => event.preventDefault());
    this.table.tHead?.addEventListener("click", (event) => this.#sortBy(event));
    this.frame.addEventListener("scroll", () => this.#draw(), { passive: true });
    this.frame.addEventListener("keydown", (event) => this.#move(event));
    this.size = new ResizeObserver(() => this.#draw());
    this.size.observe(this.frame);
  }

  stop() {
    this.size.disconnect();
  }

  /**
   * @param {Contributor[]} peers
   * @param {{run: string, now: number, finished: boolean}} context now: what "the last hour" is before
   */
  show(peers, context) {
    this.#context = context;
    this.#people = ranked(peers);
    const isCounted = hasTraffic(this.#people);
    this.table.toggleAttribute("data-without-traffic", !isCounted);
    this.trafficWords.hidden = !isCounted;
    this.#select();
    for (const person of this.#shown) {
      const row = this.#rows.get(person.id);
      if (row) this.#fill(row, person);
    }
    this.#draw();
  }

  #choose() {
    this.#select();
    this.frame.scrollTop = 0;
    this.#draw();
  }

  #select() {
    const chosen = new FormData(this.controls);
    const wanted = String(chosen.get("search") ?? "").trim().toLowerCase();
    const seen = Number(chosen.get("seen")) || Infinity;
    const since = this.#context.now - 1000 * seen;
    const direction = this.#order.ascending ? 1 : -1;
    const order = ORDERS[this.#order.column];
    this.#shown = this.#people
      .filter((person) => person.lastSeen >= since || seen === Infinity)
      .filter((person) => !wanted || person.name.toLowerCase().includes(wanted) || person.id.startsWith(wanted))
      .sort((a, b) => direction * order(a, b) || a.rank - b.rank);
    this.table.setAttribute("aria-rowcount", String(this.#shown.length + 1));
    const all = this.#people.length;
    this.words.textContent = !all ? "No one yet"
      : this.#shown.length === all ? `${count(all)} ${all === 1 ? "contributor" : "contributors"}`
      : `${count(this.#shown.length)} of ${count(all)} contributors`;
  }

  /** @param {Event} event */
  #sortBy(event) {
    const heading = /** @type {Element} */ (event.target).closest("button")?.closest("th");
    if (!heading) return;
    const column = /** @type {Column} */ (heading.dataset.column);
    const ascending = this.#order.column === column ? !this.#order.ascending : false;
    this.#order = { column, ascending };
    for (const other of this.table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
    // Ranks and words begin with what people expect first, which the orders above count as most.
    const downwards = ["rank", "name", "state"].includes(column) ? ascending : !ascending;
    heading.setAttribute("aria-sort", downwards ? "descending" : "ascending");
    this.#choose();
  }

  /** Make the rows in sight, and keep the one that has the focus. */
  #draw() {
    const height = this.#heightOfRow();
    const first = Math.max(0, Math.floor(this.frame.scrollTop / height) - SPARE_ROWS);
    const visible = Math.ceil(this.frame.clientHeight / height) + 2 * SPARE_ROWS;
    const last = Math.min(this.#shown.length, first + visible);
    const rows = this.#shown.slice(first, last).map((person, index) => this.#rowOf(person, first + index));
    this.#rows = new Map(rows.map((row) => [row.dataset.id ?? "", row]));
    setHeight(this.above, first * height);
    setHeight(this.below, (this.#shown.length - last) * height);
    replaceKeeping(this.body, [this.above, ...rows, this.below]);
  }

  #heightOfRow() {
    if (!this.#rowHeight && this.#shown.length) {
      const row = this.#rowOf(this.#shown[0], 0);
      this.body.replaceChildren(row);
      this.#rowHeight = row.offsetHeight;
    }
    return this.#rowHeight || 32;
  }

  /** @type {(person: Person, index: number) => HTMLTableRowElement} */
  #rowOf(person, index) {
    let row = this.#rows.get(person.id);
    if (!row) {
      row = makeRow(person);
      this.#fill(row, person);
    }
    row.dataset.index = String(index);
    row.setAttribute("aria-rowindex", String(index + 2));
    return row;
  }

  /** @type {(row: HTMLTableRowElement, person: Person) => void} */
  #fill(row, person) {
    const { name, state, badge: color, ...words } = rowOf(person, this.#context.finished);
    for (const [column, text] of Object.entries(words)) {
      const cell = row.querySelector(`.board__${column}`);
      if (cell && cell.textContent !== text) cell.textContent = text;
    }
    const link = /** @type {HTMLAnchorElement} */ (row.querySelector("a"));
    link.href = this.addressOf(person.id);
    /** @type {HTMLElement} */ (link.firstElementChild).textContent = name;
    const badge = /** @type {HTMLElement} */ (row.querySelector(".badge"));
    badge.textContent = state;
    badge.dataset.state = color;
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.closest("tr");
    const page = Math.max(1, Math.floor(this.frame.clientHeight / this.#heightOfRow()) - 2);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    const here = focused?.dataset.index;
    if (step === undefined || here === undefined) return;
    event.preventDefault();
    const target = Math.min(this.#shown.length - 1, Math.max(0, Number(here) + step));
    this.#bringIntoSight(target);
    /** @type {HTMLElement | null | undefined} */ (this.#rows.get(this.#shown[target].id)?.querySelector("a"))?.focus({ preventScroll: true });
  }

  /** @param {number} index */
  #bringIntoSight(index) {
    const height = this.#heightOfRow();
    const head = this.table.tHead?.offsetHeight ?? 0;
    const [top, bottom] = [index * height, (index + 1) * height + head];
    if (top < this.frame.scrollTop) this.frame.scrollTop = top;
    if (bottom > this.frame.scrollTop + this.frame.clientHeight) this.frame.scrollTop = bottom - this.frame.clientHeight;
    this.#draw();
  }
}
