// @ts-check
/*
 * A run's live data while it grows: `follow` reads all of it once, and then only what is new.
 *
 *     const feed = follow(run.name, (data) => show(describe(data)));   // describe: status.js
 *     ...
 *     feed.stop();
 */

import { RunFiles } from "./files.js";
import * as storage from "./kept.js";
import { pauseSeconds } from "./pace.js";
import { serverTime, ServerError } from "./request.js";
import { isName, LIVE } from "./runs.js";
import { nextTurn } from "./turns.js";

/** @typedef {import("./data.js").RunData} RunData */

const KEEP_SECONDS = 60; // so often a run's files are kept for a visit without a network
const EVERYTHING_SECONDS = 15; // without a new step, the contributors are asked for so often

/**
 * Read a run's data, then again and again what is new, until it is finished or stopped. Nothing
 * is asked for while the page is hidden.
 * @param {string} name
 * @param {(data: RunData, changed: Set<string>) => void} onRound called after each round, also of
 *     one that failed; `changed` names the files with something new
 * @throws {RangeError} for a name that no run can have
 */
export function follow(name, onRound) {
  if (!isName(name)) throw new RangeError(`${JSON.stringify(name)} is not a valid name for a run.`);
  const feed = new Feed(name, onRound);
  feed.start();
  return feed;
}

class Feed {
  #stopped = false;
  #everythingAt = -Infinity;
  #savedAt = -Infinity;
  #failures = 0;
  #running = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {string} name
   * @param {(data: RunData, changed: Set<string>) => void} onRound
   */
  constructor(name, onRound) {
    this.onRound = onRound;
    this.files = new RunFiles(name, new URL(`${name}/`, LIVE));
    this.data = this.files.data;
  }

  /** The time on the server's clock, milliseconds since 1970. */
  now() {
    return Date.now() + this.data.offset;
  }

  start() {
    document.addEventListener("visibilitychange", this.#wake);
    addEventListener("online", this.#wake);
    void this.#poll();
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#wake);
    removeEventListener("online", this.#wake);
  }

  #wake = () => {
    if (document.hidden) this.#save();
    if (this.#stopped || this.#isOver) return;
    clearTimeout(this.#timer);
    if (!document.hidden && !this.#running) void this.#poll();
  };

  /** Whether nothing new can come: the run is finished and its last files have been read. */
  get #isOver() {
    return this.data.loaded && Boolean(this.data.card?.finished) && !this.data.outage;
  }

  async #poll() {
    this.#running = true;
    /** @type {Set<string>} */
    const changed = new Set();
    try {
      await this.#readAll(changed);
      this.#failures = 0;
      this.data.outage = undefined;
      this.data.kept = undefined;
      this.data.loaded = true;
    } catch (error) {
      this.#note(error);
      if (!this.data.loaded) await this.#recall(changed);
    }
    this.files.publish();
    await nextTurn(); // reading and showing are long works, each for itself
    this.#running = false;
    if (this.#stopped) return;
    const seconds = pauseSeconds(this.data, this.now(), this.#failures);
    if (this.data.outage) this.data.outage.next = Date.now() + 1000 * seconds;
    this.onRound(this.data, changed);
    if (this.#isOver || performance.now() - this.#savedAt > 1000 * KEEP_SECONDS) this.#save();
    if (this.#stopped || this.#isOver) return;
    if (!document.hidden) this.#timer = setTimeout(() => void this.#poll(), 1000 * seconds);
  }

  /** @param {Set<string>} changed */
  async #readAll(changed) {
    const wasFinished = Boolean(this.data.card?.finished);
    await this.#read("run.json", changed);
    const isFinished = Boolean(/** @type {any} */ (this.files.documents["run.json"].value)?.finished);
    const ends = isFinished && !wasFinished && this.data.loaded;
    const { changed: grown, headers } = await this.files.reader.read();
    this.#setClock(headers);
    if (grown) changed.add("progress.jsonl");
    const old = performance.now() - this.#everythingAt > 1000 * EVERYTHING_SECONDS;
    if (grown || ends || old || this.#failures) {
      const names = /** @type {const} */ (["peers.json", "checkpoints.json", "samples.json"]);
      await Promise.all(names.map((name) => this.#read(name, changed, ends)));
      this.#everythingAt = performance.now();
    }
  }

  /** Keep what was read for a visit without a network. */
  #save() {
    if (!this.data.loaded || this.data.outage || !this.data.card) return;
    this.#savedAt = performance.now();
    void storage.keep(Object.values(this.files.all));
  }

  /**
   * Take what the last visit has kept, in place of a server that cannot be reached.
   * @type {(changed: Set<string>) => Promise<void>}
   */
  async #recall(changed) {
    const since = await storage.recall(Object.values(this.files.all));
    if (since === undefined || !this.data.outage) return;
    this.data.loaded = true;
    this.data.kept = this.data.outage.since = since;
    for (const name of Object.keys(this.files.all)) changed.add(name);
  }

  /** @type {(name: keyof RunFiles["documents"], changed: Set<string>, whole?: boolean) => Promise<void>} */
  async #read(name, changed, whole = false) {
    const { changed: isNew } = await this.files.documents[name].read({ whole });
    if (isNew) changed.add(name);
  }

  /** @param {Headers} headers */
  #setClock(headers) {
    const time = serverTime(headers);
    if (time !== undefined) this.data.offset = time - Date.now();
  }

  /** @param {unknown} error */
  #note(error) {
    this.#failures += 1;
    const reason = error instanceof ServerError ? error.message : "the server does not respond";
    this.data.outage = { since: this.data.outage?.since ?? Date.now(), reason, next: 0 };
  }
}
