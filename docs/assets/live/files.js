// @ts-check
/* The files of a run, and what they say as far as it is usable. */

import { LiveDocument } from "./documents.js";
import { ProgressReader } from "./progress.js";
import * as valid from "./valid.js";

/** @typedef {import("./data.js").RunData} RunData */

const isList = (/** @type {any} */ value) => Array.isArray(value);
const isSamples = (/** @type {any} */ value) => isList(value?.prompts) && isList(value?.checkpoints);

export class RunFiles {
  /** The usable entries of each list, which the page knows by their identity. @type {Record<string, {list: any[] | undefined, kept: any[]}>} */
  #usable = {};

  /**
   * @param {string} name of the run
   * @param {URL} folder
   */
  constructor(name, folder) {
    const file = (/** @type {string} */ path) => new URL(path, folder);
    /** @type {(path: string) => () => boolean} */
    const isCompressed = (path) => () => Boolean(card.value?.compressed?.includes(path));
    const card = new LiveDocument(file("run.json"), valid.isCard);
    this.reader = new ProgressReader(file("progress.jsonl"), isCompressed("progress.jsonl"));
    this.documents = {
      "run.json": card,
      "peers.json": new LiveDocument(file("peers.json"), isList, isCompressed("peers.json")),
      "checkpoints.json": new LiveDocument(file("checkpoints.json"), isList),
      "samples.json": new LiveDocument(file("samples.json"), isSamples),
    };
    /** @type {RunData} */
    this.data = {
      name, folder, card: undefined, progress: this.reader.progress, peers: [], checkpoints: [],
      samples: { prompts: [], checkpoints: [] }, broken: [], refused: {}, loaded: false, outage: undefined, kept: undefined, offset: 0,
    };
  }

  get all() {
    return { ...this.documents, "progress.jsonl": this.reader };
  }

  /** Hand over what the files say now; a round that failed may have read some of them. */
  publish() {
    const { data, documents } = this;
    data.card = /** @type {any} */ (documents["run.json"].value);
    data.peers = this.#keep("peers.json", documents["peers.json"].value, valid.isPeer);
    data.checkpoints = this.#keep("checkpoints.json", documents["checkpoints.json"].value, valid.isCheckpoint);
    const samples = /** @type {any} */ (documents["samples.json"].value);
    if (samples) data.samples = { prompts: samples.prompts.map(String), checkpoints: this.#keep("samples.json", samples.checkpoints, valid.isDrawn).map(withBoth) };
    data.broken = Object.entries(documents).filter(([, file]) => file.broken).map(([name]) => name);
  }

  /**
   * The entries of a list that are what they should be; of an unchanged list, the same array.
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
}

/** @param {any} drawn A checkpoint of samples.json, which has one of the two lists. */
const withBoth = ({ step, time, images, texts }) => ({ step, time, images: images ?? [], texts: texts ?? [] });
