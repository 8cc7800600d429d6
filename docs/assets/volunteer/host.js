// @ts-check
/* A run's web host, asked as training/sparse/web_store.py asks it. */

import { sha256 } from "./shared.js";

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
/** @typedef {{run: string, round: number, finished: boolean, peers: number}} HostStatus */

const ANSWER_MS = 60_000;
const DIGEST = /^[0-9a-f]{64}$/;

/** The host does not take a file; the message says why. */
export class RefusedError extends Error {}
/** The host does not answer, or not now. */
export class OutageError extends Error {}

export class Host {
  sent = 0; // bytes of files
  received = 0;

  /** @param {string} address */
  constructor(address) {
    this.address = address;
  }

  /** @returns {Promise<HostStatus>} */
  round = async () => parse(await this.#get("round"));

  /** @returns {Promise<import("./rounds.js").About>} the run as a tab must know it */
  about = async () => parse(await this.#get("tab"));

  /** @param {string} name @returns {Promise<string | undefined>} the SHA-256 of a file */
  async find(name) {
    const found = await this.#get(`names/${name}`);
    const text = new TextDecoder().decode(found);
    return found && DIGEST.test(text) ? text : undefined;
  }

  /** @returns {Promise<string[]>} names of the checkpoints, the oldest first */
  checkpoints = async () => parse(await this.#get("names/checkpoints"));

  /** @param {string} sum @returns {Promise<Bytes>} */
  async file(sum) {
    const content = await this.#get(`files/${sum}?from=host`);
    if (!content) throw new Error(`the file ${sum.slice(0, 12)} is not there`);
    if ((await sha256(content)) !== sum) throw new Error(`the file ${sum.slice(0, 12)} is another one`);
    this.received += content.length;
    return content;
  }

  /** @param {number} first @param {number} end @returns {Promise<Bytes>} these bytes of the run's data */
  async data(first, end) {
    const content = await this.#get("tab/data", { Range: `bytes=${first}-${end - 1}` });
    if (content?.length !== end - first) throw new OutageError("the host gives other data than were asked for");
    return content;
  }

  /** @param {"payloads" | "reports"} where @param {Bytes} content @throws {RefusedError} */
  async put(where, content) {
    const answer = await this.#ask(where, { method: "PUT", body: content });
    if (answer.ok) this.sent += content.length;
    else throw new RefusedError(String((await answer.json()).error));
  }

  /** @param {string} path @param {Record<string, string>} [headers] @returns {Promise<Bytes | undefined>} */
  async #get(path, headers) {
    const answer = await this.#ask(path, { headers });
    return answer.status === 404 ? undefined : new Uint8Array(await answer.arrayBuffer());
  }

  /** @param {string} path @param {RequestInit} options */
  async #ask(path, options) {
    try {
      const answer = await fetch(`${this.address}/${path}`, { ...options, cache: "no-store", redirect: "error", signal: AbortSignal.timeout(ANSWER_MS) });
      if (answer.status < 500) return answer;
    } catch {
      // said below
    }
    throw new OutageError("the run's host does not answer");
  }
}

/** @param {Bytes | undefined} content */
function parse(content) {
  if (!content) throw new Error("this is no host of a run that tabs can join");
  return JSON.parse(new TextDecoder().decode(content));
}
