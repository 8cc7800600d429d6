// @ts-check
/*
 * A run's live data while it grows: `follow` reads all of it once, and then only what is new.
 *
 *     const feed = follow(run.name, (data) => show(describe(data)));   // describe: status.js
 *     ...
 *     feed.stop();
 */

import { LiveDocument } from "./documents.js";
import * as storage from "./kept.js";
import { pauseSeconds } from "./pace.js";
import { ProgressReader } from "./progress.js";
import { serverTime, ServerError } from "./request.js";
import { isName, LIVE } from "./runs.js";
import { nextTurn } from "./turns.js";
import * as valid from "./valid.js";

/** @typedef {import("./data.js").RunData} RunData */

const KEEP_SECONDS = 60; // so often a run's files are kept for a visit without a network
const EVERYTHING_SECONDS = 15; // without a new step, the contributors are asked for so often

const isList = (/** @type {any} */ value) => Array.isArray(value);
const isSamples = (/** @type {any} */ value) => isList(value?.prompts) && isList(value?.checkpoints);

/**
 * Read a run's data, then again and again what is new, until it is finished or stopped. Nothing
 * is asked for while the page is hidden.
 *
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
  /** The usable entries of each list, which the page knows by their identity. @type {Record<string, {list: any[] | undefined, kept: any[]}>} */
  #usable = {};
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {string} name
   * @param {(data: RunData, changed: Set<string>) => void} onRound
   */
  constructor(name, onRound) {
    this.onRound = onRound;
    const folder = new URL(`${name}/`, LIVE);
    const file = (/** @type {string} */ path) => new URL(path, folder);
    this.reader = new ProgressReader(file("progress.jsonl"));
    this.documents = {
      "run.json": new LiveDocument(file("run.json"), valid.isCard),
      "peers.json": new LiveDocument(file("peers.json"), isList),
      "checkpoints.json": new LiveDocument(file("checkpoints.json"), isList),
      "samples.json": new LiveDocument(file("samples.json"), isSamples),
    };
    /** @type {RunData} */
    this.data = {
      name, folder, card: undefined, progress: this.reader.progress, peers: [], checkpoints: [],
      samples: { prompts: [], checkpoints: [] }, broken: [], refused: {}, loaded: false, outage: undefined, kept: undefined, offset: 0,
    };
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
    this.#publish();
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
    const isFinished = Boolean(/** @type {any} */ (this.documents["run.json"].value)?.finished);
    const ends = isFinished && !wasFinished && this.data.loaded;
    const { changed: grown, headers } = await this.reader.read();
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
    void storage.keep(Object.values(this.#files));
  }

  /**
   * Take what the last visit has kept, in place of a server that cannot be reached.
   *
   * @param {Set<string>} changed
   */
  async #recall(changed) {
    const since = await storage.recall(Object.values(this.#files));
    if (since === undefined || !this.data.outage) return;
    this.data.loaded = true;
    this.data.kept = this.data.outage.since = since;
    for (const name of Object.keys(this.#files)) changed.add(name);
  }

  get #files() {
    return { ...this.documents, "progress.jsonl": this.reader };
  }

  /** Hand over what the files say now; a round that failed may have read some of them. */
  #publish() {
    const { data, documents } = this;
    data.card = /** @type {any} */ (documents["run.json"].value);
    data.peers = this.#keep("peers.json", documents["peers.json"].value, valid.isPeer);
    data.checkpoints = this.#keep("checkpoints.json", documents["checkpoints.json"].value, valid.isCheckpoint);
    const samples = /** @type {any} */ (documents["samples.json"].value);
    if (samples) data.samples = { prompts: samples.prompts.map(String), checkpoints: this.#keep("samples.json", samples.checkpoints, valid.isDrawn) };
    data.broken = Object.entries(documents).filter(([, file]) => file.broken).map(([name]) => name);
  }

  /**
   * The entries of a list that are what they should be; of an unchanged list, the same array.
   *
   * @param {string} name of the file
   * @param {any} list
   * @param {(entry: any) => boolean} isValid
   */
  #keep(name, list, isValid) {
    if (this.#usable[name]?.list !== list || !list) this.#usable[name] = { list, kept: (list ?? []).filter(isValid) };
    const { kept } = this.#usable[name];
    this.data.refused[name] = (list ?? []).length - kept.length;
    return kept;
  }

  /**
   * @param {keyof Feed["documents"]} name
   * @param {Set<string>} changed
   * @param {boolean} [whole]
   */
  async #read(name, changed, whole = false) {
    const { changed: isNew } = await this.documents[name].read({ whole });
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
