// @ts-check
/* One contributor's page: what they did, and what the run was like while they were there. */

import { partOf } from "./find.js";
import { find, make, write } from "#assets/elements.js";
import { ranked, stateInWords } from "./people.js";
import { firstAtLeast } from "#assets/live/progress.js";
import { ageInWords, bytes, count, decimal, duration, momentInWords, percent } from "#assets/live/words.js";

// The names of training/run/milestones.py, in words; one that is not here is shown as it is.
/** @type {Record<string, string>} */
const MILESTONES = {
  install: "packages installed",
  doctor: "machine checked",
  access: "admitted",
  connect: "connected",
  state: "weights downloaded",
  first_batch: "first gradients",
  first_average: "first gradients accepted",
};

/** @typedef {import("./people.js").Person} Person */

export class ContributorPage {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.figures = find(root, "[data-live=contributor]");
    this.part = find(root, "[data-live=contributor-part]");
    this.words = find(root, "[data-live=contributor-words]");
    this.milestones = find(root, "[data-live=milestones]");
  }

  /**
   * Show a contributor.
   * @param {import("#assets/live/data.js").RunData} data
   * @param {string} who the beginning of the key
   * @returns {{person: Person, between: [number, number]} | undefined} undefined: nobody has that key
   */
  show(data, who) {
    const people = ranked(data.peers);
    const person = people.find(({ id }) => id === who);
    this.part.replaceChildren(...(person ? partOf(people, person) : []));
    this.figures.hidden = !person;
    this.milestones.hidden = true;
    if (!person) {
      write(this.words, data.loaded ? "No one with this key has contributed to this run." : "Looking for this contributor …");
      return undefined;
    }
    const between = /** @type {[number, number]} */ ([Date.parse(person.first_seen), person.lastSeen]);
    this.#showFigures(data, person);
    write(this.words, whatHappened(data.progress, person, between));
    this.#showMilestones(person);
    return { person, between };
  }

  /** @type {(data: import("#assets/live/data.js").RunData, person: Person) => void} */
  #showFigures({ progress, peers, card }, person) {
    const state = stateInWords(person.state, Boolean(card?.finished));
    const rows = [
      ["Sequences", count(person.samples), `${percent(person.share)} of the run's`],
      ["Steps", count(person.steps), `of ${count(progress.step[progress.length - 1] ?? NaN)}`],
      ["Time in the run", duration(person.seconds), state],
      ["Rank", count(person.rank), `of ${count(peers.length)}, by sequences`],
      ...(Number.isNaN(person.traffic) ? [] : [["Sent", bytes(person.bytes_sent ?? NaN), `${bytes(person.bytes_received ?? NaN)} received`]]),
    ];
    this.figures.replaceChildren(...rows.map(([label, value, more]) =>
      make("div", {}, make("dt", {}, label), make("dd", {}, value, make("small", {}, more)))));
  }

  /** @param {Person} person */
  #showMilestones({ milestones }) {
    const reached = Object.entries(milestones ?? {}).filter(([, seconds]) => typeof seconds === "number");
    this.milestones.hidden = reached.length === 0;
    if (!reached.length) return;
    const list = /** @type {HTMLElement} */ (this.milestones.querySelector("ol"));
    list.replaceChildren(...reached.map(([name, seconds]) =>
      make("li", {}, `${MILESTONES[name] ?? name}: after ${ageInWords(Number(seconds))}`)));
  }
}

/**
 * What became of the loss while somebody was there.
 * @type {(progress: import("#assets/live/progress.js").Progress, person: Person, between: [number, number]) => string}
 */
function whatHappened({ step, time, figures }, { name, id }, [from, to]) {
  const seen = `First seen on ${momentInWords(from)}, last seen on ${momentInWords(to)}; key ${id}.`;
  const first = firstAtLeast(time, from);
  const last = firstAtLeast(time, to + 1) - 1;
  if (last < first) return seen;
  const there = `${name || id} took part from step ${count(step[first])} to step ${count(step[last])}`;
  const [before, after] = [figures.loss[first], figures.loss[last]];
  if (Number.isNaN(before) || Number.isNaN(after)) return `${seen} ${there}.`;
  return `${seen} ${there}; the loss was ${decimal(before, 3)} at the start of that time and ${decimal(after, 3)} at its end.`;
}
