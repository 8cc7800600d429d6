// @ts-check
/* A run's contributors by rank, and their rows in words. */

import { bytes, count, duration, momentInWords, percent } from "#assets/live/words.js";

/** @typedef {import("#assets/live/data.js").Contributor} Contributor */
/** @typedef {Contributor & {rank: number, share: number, lastSeen: number, traffic: number}} Person */

/** Of each list of contributors, once asked for. @type {WeakMap<Contributor[], Person[]>} */
const RANKED = new WeakMap();

/** The contributors by what they did, who did most first. @type {(peers: Contributor[]) => Person[]} */
export function ranked(peers) {
  const known = RANKED.get(peers);
  if (known) return known;
  const all = peers.reduce((sum, peer) => sum + peer.samples, 0);
  const found = [...peers]
    .sort((a, b) => b.samples - a.samples)
    .map((peer, index) => ({
      ...peer,
      rank: index + 1,
      share: peer.samples / all,
      lastSeen: Date.parse(peer.last_seen),
      traffic: (peer.bytes_sent ?? NaN) + (peer.bytes_received ?? NaN), // as it reported them; NaN where nobody noted them
    }));
  RANKED.set(peers, found);
  return found;
}

/** @param {Person[]} people Whether anybody noted traffic: a run without it has no such column. */
export const hasTraffic = (people) => people.some(({ traffic }) => !Number.isNaN(traffic));

/**
 * What a volunteer does, in words; nobody trains in a run that is over.
 * @type {(state: string, finished: boolean) => string}
 */
export const stateInWords = (state, finished) => (state === "left" ? "left" : finished ? "to the end" : state);

/**
 * A contributor's row, by column; `badge` is the state whose color the last one has.
 * @param {Person} person
 * @param {boolean} finished
 */
export function rowOf(person, finished) {
  return {
    rank: count(person.rank),
    name: person.name || person.id,
    samples: count(person.samples),
    share: percent(person.share),
    steps: count(person.steps),
    seconds: duration(person.seconds),
    traffic: bytes(person.traffic),
    last_seen: momentInWords(person.lastSeen),
    state: stateInWords(person.state, finished),
    badge: finished && person.state !== "left" ? "finished" : person.state,
  };
}
