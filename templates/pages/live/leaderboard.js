// @ts-check
/* The contributors: a table with a search and an order. It shows a hundred, and more for whoever asks. */

import { copyOf, fillParts, find, findAll, write } from "#assets/elements.js";
import { hasTraffic, ranked, rowOf } from "./people.js";
import { count } from "#assets/live/words.js";

/** @typedef {import("#assets/live/data.js").Contributor} Contributor */
/** @typedef {import("./people.js").Person} Person */
/** @typedef {"rank" | "name" | "samples" | "share" | "steps" | "seconds" | "traffic" | "last_seen" | "state"} Column */

const FIRST_ROWS = 100;
const MORE_ROWS = 500;
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
  /** Those that the search and the choice of time leave, in order. @type {Person[]} */
  #found = [];
  /** Of those shown, by key. @type {Map<string, HTMLElement>} */
  #rows = new Map();
  #most = FIRST_ROWS;
  #context = { now: 0, finished: false };
  /** @type {{column: Column, ascending: boolean}} */
  #order = { column: "samples", ascending: false };

  /**
   * @param {HTMLElement} root
   * @param {(who: string) => string} addressOf the address of a contributor's page
   */
  constructor(root, addressOf) {
    this.addressOf = addressOf;
    this.frame = find(root, "[data-live=board]");
    this.table = /** @type {HTMLTableElement} */ (find(this.frame, "table"));
    this.template = find(this.frame, "template");
    this.more = find(this.frame, "[data-live=more-people]");
    this.words = find(root, "[data-live=board-count]");
    this.trafficWords = find(root, "[data-live=traffic-words]");
    this.controls = /** @type {HTMLFormElement} */ (find(root, "[data-live=board-controls]"));
    this.controls.addEventListener("input", () => this.#choose());
    this.controls.addEventListener("submit", (event) => event.preventDefault());
    this.table.tHead?.addEventListener("click", (event) => this.#sortBy(event));
    this.more.addEventListener("click", () => this.#showMore());
  }

  /**
   * @param {Contributor[]} peers
   * @param {{now: number, finished: boolean}} context now: what "the last hour" is before
   */
  show(peers, context) {
    this.#context = context;
    this.#people = ranked(peers);
    const isCounted = hasTraffic(this.#people);
    this.table.toggleAttribute("data-without-traffic", !isCounted);
    this.trafficWords.hidden = !isCounted;
    this.#draw();
  }

  #choose() {
    this.#most = FIRST_ROWS;
    this.frame.scrollTop = 0;
    this.#draw();
  }

  /** The first of those that come takes the focus, since the button may go. */
  #showMore() {
    const first = this.#rows.size;
    this.#most += MORE_ROWS;
    this.#draw();
    findAll(this.table, "tbody a")[first].focus();
  }

  #select() {
    const chosen = new FormData(this.controls);
    const wanted = String(chosen.get("search") ?? "").trim().toLowerCase();
    const seen = Number(chosen.get("seen")) || Infinity;
    const since = this.#context.now - 1000 * seen;
    const direction = this.#order.ascending ? 1 : -1;
    const order = ORDERS[this.#order.column];
    this.#found = this.#people
      .filter((person) => person.lastSeen >= since || seen === Infinity)
      .filter((person) => !wanted || person.name.toLowerCase().includes(wanted) || person.id.startsWith(wanted))
      .sort((a, b) => direction * order(a, b) || a.rank - b.rank);
    this.table.setAttribute("aria-rowcount", String(this.#found.length + 1));
    const all = this.#people.length;
    this.words.textContent = !all ? "No one yet"
      : this.#found.length === all ? `${count(all)} ${all === 1 ? "contributor" : "contributors"}`
      : `${count(this.#found.length)} of ${count(all)} contributors`;
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

  #draw() {
    this.#select();
    const shown = this.#found.slice(0, this.#most);
    this.#rows = new Map(shown.map((person, index) => [person.id, this.#rowOf(person, index)]));
    replaceKeeping(this.table.tBodies[0], [...this.#rows.values()]);
    const left = this.#found.length - shown.length;
    this.more.hidden = left === 0;
    write(this.more, `Show ${count(Math.min(left, MORE_ROWS))} more`);
  }

  /** @type {(person: Person, index: number) => HTMLElement} */
  #rowOf(person, index) {
    const { badge, ...texts } = rowOf(person, this.#context.finished);
    const row = this.#rows.get(person.id) ?? copyOf(this.template, {});
    fillParts(row, texts);
    row.setAttribute("aria-rowindex", String(index + 2));
    const link = /** @type {HTMLAnchorElement} */ (find(row, "a"));
    link.href = this.addressOf(person.id);
    link.title = `key ${person.id}`;
    find(row, ".badge").dataset.state = badge;
    return row;
  }
}

/**
 * Make `wanted` the children without moving those that stay: an element that is moved loses the
 * focus.
 * @type {(parent: HTMLElement, wanted: Element[]) => void}
 */
function replaceKeeping(parent, wanted) {
  const kept = new Set(wanted);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  let next = parent.firstElementChild;
  for (const child of wanted) {
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}
