// @ts-check
/* 'Find me': the rank and the part of whoever's name or key is typed, and the way to their page. */

import { find, make } from "#assets/elements.js";
import { ranked } from "./people.js";
import { count, percent } from "#assets/live/words.js";

/** @typedef {import("./people.js").Person} Person */

const MOST_NAMED = 5;

export class FindMe {
  /** @type {import("#assets/live/data.js").Contributor[]} */
  #peers = [];

  /**
   * @param {HTMLElement} root
   * @param {(who: string) => string} addressOf the address of a contributor's page
   */
  constructor(root, addressOf) {
    this.addressOf = addressOf;
    this.field = /** @type {HTMLInputElement} */ (find(root, "#live-search"));
    this.place = find(root, "[data-live=found]");
    this.field.addEventListener("input", () => this.#draw());
    // The leaderboard keeps its form from being sent; Enter opens the page of the one that was found.
    this.field.form?.addEventListener("submit", () => {
      const links = this.place.querySelectorAll("a");
      if (links.length === 1) links[0].click();
    });
  }

  /** The one contributor that what was typed means; undefined if none or several may be meant. */
  get found() {
    const typed = this.field.value.trim();
    const found = typed ? meant(ranked(this.#peers), typed) : [];
    return found.length === 1 ? found[0] : undefined;
  }

  /** @param {import("#assets/live/data.js").Contributor[]} peers */
  show(peers) {
    this.#peers = peers;
    this.#draw();
  }

  #draw() {
    const typed = this.field.value.trim();
    this.place.hidden = !typed;
    // Data that come in change nothing for a reader to whom it would be read again.
    const drawn = typed ? this.#answer(typed, ranked(this.#peers)) : [];
    if (drawn.map((part) => part.outerHTML).join("") !== this.place.innerHTML) this.place.replaceChildren(...drawn);
  }

  /**
   * @param {string} typed
   * @param {Person[]} people by rank
   * @returns {HTMLElement[]}
   */
  #answer(typed, people) {
    const found = meant(people, typed);
    if (!found.length) return [make("p", {}, "No contributor has this name or key. Volunteers appear here with their first report.")];
    const [person, ...others] = found;
    if (others.length) return [make("p", {}, `${count(found.length)} contributors match “${typed}”: `, ...this.#links(found))];
    return [
      make("p", {},
        make("strong", {}, make("bdi", {}, person.name || person.id)),
        ` has rank ${count(person.rank)} of ${count(people.length)}, with ${count(person.samples)} sequences: ${percent(person.share)} of the run's. `,
        make("a", { href: this.addressOf(person.id) }, "Own page with charts"), " (or press Enter)"),
      ...partOf(people, person),
    ];
  }

  /** @param {Person[]} found */
  #links(found) {
    const named = found.slice(0, MOST_NAMED).flatMap((person, index) => [
      index ? ", " : "",
      make("a", { href: this.addressOf(person.id) }, make("bdi", {}, person.name || person.id)),
      ` (rank ${count(person.rank)})`,
    ]);
    const more = found.length - MOST_NAMED;
    return [...named, more > 0 ? ` and ${count(more)} more.` : "."];
  }
}

/**
 * The contributors that may be meant: those of exactly that name or key, else those whose name
 * contains it or whose key begins with it.
 * @param {Person[]} people
 * @param {string} typed
 */
function meant(people, typed) {
  const wanted = typed.toLowerCase();
  const exact = people.filter(({ name, id }) => name.toLowerCase() === wanted || id === wanted);
  return exact.length ? exact : people.filter(({ name, id }) => name.toLowerCase().includes(wanted) || id.startsWith(wanted));
}

/**
 * A bar of all sequences: those of higher ranks, this contributor's, those of lower ranks.
 * @param {Person[]} people by rank
 * @param {Person} person
 * @returns {HTMLElement[]}
 */
export function partOf(people, person) {
  const sum = (/** @type {Person[]} */ some) => some.reduce((share, { share: one }) => share + (one || 0), 0);
  const parts = /** @type {const} */ ([
    ["above", sum(people.slice(0, person.rank - 1)), "higher ranks"],
    ["self", person.share || 0, person.name || person.id],
    ["below", sum(people.slice(person.rank)), "lower ranks"],
  ]);
  const words = parts.map(([, share, name]) => `${name} ${percent(share)}`);
  const bar = make("div", { class: "whole", role: "img", "aria-label": `Sequences: ${words.join(", ")}` });
  for (const [kind, share] of parts) {
    const span = make("span", { class: `whole__${kind}` });
    span.style.flexGrow = String(share);
    bar.append(span);
  }
  const key = make("p", { class: "whole__key", "aria-hidden": "true" },
    ...parts.map(([kind], index) => make("span", {}, make("i", { class: `whole__${kind}` }), make("bdi", {}, words[index]))));
  return [bar, key];
}
