// @ts-check
/*
 * progress.jsonl: one line per global step, read by byte ranges while it grows. A line counts once
 * it is whole. Each request begins with the last whole line read before: when that line is no longer
 * where it was, the file is another one, and everything is read again. The first time, most of a long
 * file comes from its compressed form, which has its lines from the first one on.
 */

import { requestCompressed } from "./compressed.js";
import { request, ServerError } from "./request.js";
import { nextTurn } from "./turns.js";

export const FIGURES = /** @type {const} */ ([
  "loss", "samples", "samples_per_second", "training", "syncing", "left", "bytes_sent", "bytes_received", "rejected",
]);

/** @typedef {typeof FIGURES[number]} Figure */
/** @typedef {{from: number, to: number, time: number}} Return A run that went back to an earlier step. */
/** @typedef {{step: number, time: number, figures: Record<Figure, number>}} Line */

const NEWLINE = 10;
const PART_BYTES = 1 << 18; // so much is parsed without a pause: some milliseconds' work

/** The steps of a run as columns; a figure that a line does not have is NaN. */
export class Progress {
  /** @type {number[]} Numbers of the steps, growing. */
  step = [];
  /** @type {number[]} Milliseconds since 1970. */
  time = [];
  /** @type {Record<Figure, number[]>} */
  figures = emptyFigures();
  /** Lines that could not be read. */
  broken = 0;
  /** @type {Return[]} */
  returns = [];

  get length() {
    return this.step.length;
  }

  clear() {
    Object.assign(this, { step: [], time: [], figures: emptyFigures(), broken: 0, returns: [] });
  }

  /**
   * Take in one line, undefined if it could not be read. A step that is not after the last one
   * replaces those from it on: the run went back to a checkpoint.
   * @type {(line: Line | undefined) => void}
   */
  add(line) {
    if (!line) {
      this.broken += 1;
      return;
    }
    const last = this.step[this.length - 1] ?? 0;
    if (line.step <= last) {
      this.returns.push({ from: last, to: line.step, time: line.time });
      this.#keepBefore(line.step);
    }
    this.step.push(line.step);
    this.time.push(line.time);
    for (const figure of FIGURES) this.figures[figure].push(line.figures[figure]);
  }

  /** @param {number} step */
  #keepBefore(step) {
    const kept = firstAtLeast(this.step, step);
    for (const column of [this.step, this.time, ...Object.values(this.figures)]) column.length = kept;
  }
}

/** @returns {Record<Figure, number[]>} */
function emptyFigures() {
  return /** @type {any} */ (Object.fromEntries(FIGURES.map((figure) => [figure, []])));
}

/** @type {(text: string) => Line | undefined} */
function parse(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const time = Date.parse(value?.time);
  if (!Number.isInteger(value?.step) || Number.isNaN(time)) return undefined;
  const numbers = FIGURES.map((figure) => [figure, typeof value[figure] === "number" ? value[figure] : NaN]);
  return { step: value.step, time, figures: /** @type {Record<Figure, number>} */ (Object.fromEntries(numbers)) };
}

/** All whole lines, parsed in parts. @param {Uint8Array<ArrayBuffer>} bytes that end with a line */
async function parseAll(bytes) {
  /** @type {(Line | undefined)[]} */
  const lines = [];
  let start = 0;
  while (start < bytes.length) {
    const end = bytes.indexOf(NEWLINE, Math.min(start + PART_BYTES, bytes.length - 1)) + 1;
    const text = new TextDecoder().decode(bytes.subarray(start, end));
    for (const line of text.split("\n")) if (line.trim()) lines.push(parse(line));
    start = end;
    await nextTurn();
  }
  return lines;
}

/**
 * The index of the first value that is at least `bound`, in values that grow.
 * @type {(values: number[], bound: number) => number}
 */
export function firstAtLeast(values, bound) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Reads what is new in one progress.jsonl. */
export class ProgressReader {
  /** Where the whole lines that were read end. */
  #end = 0;
  /** The last of them. */
  #last = new Uint8Array();
  /** All whole lines, as they came. @type {Uint8Array<ArrayBuffer>[]} */
  #lines = [];
  /** Whether the server sends the whole file, whatever is asked for. */
  #withoutRanges = false;

  /**
   * @param {URL} address
   * @param {() => boolean} [isCompressed] whether it also lies there as NAME.gz
   */
  constructor(address, isCompressed = () => false) {
    this.address = address;
    this.isCompressed = isCompressed;
    this.progress = new Progress();
  }

  /**
   * Ask for what is new.
   * @returns {Promise<{changed: boolean, headers: Headers}>}
   * @throws when no usable answer comes, or a file that was there is gone
   */
  async read() {
    const packed = !this.#end && this.isCompressed() ? await requestCompressed(this.address) : undefined;
    const began = packed ? await this.#takeCompressed(packed) : false;
    // A range, be it all of the file, comes as it is: hosts may send a spoiled compressed file for it, too.
    const first = this.#end || packed ? this.#end - this.#last.length : undefined;
    const reply = await this.#ask(first);
    const { status, headers } = reply;
    if (status === 404) {
      if (this.#end) throw new ServerError("progress.jsonl has disappeared");
      return { changed: false, headers };
    }
    const news = this.#newBytes(reply, first ?? 0);
    if (news) return { changed: (await this.#take(news)) || began, headers };
    this.#forget();
    const whole = status === 200 ? reply : await request(this.address, { first: 0, cache: "reload" });
    await this.#take(whole.body);
    return { changed: true, headers: whole.headers };
  }

  /** All whole lines. */
  get content() {
    return [...this.#lines];
  }

  /**
   * Take what an earlier visit has kept; what is new is asked for next.
   * @type {(bytes: Uint8Array<ArrayBuffer>) => Promise<void>}
   */
  async restore(bytes) {
    this.#forget();
    await this.#take(bytes);
  }

  /**
   * Take the lines of the compressed form. What is wrong with it, the plain file puts right.
   * @type {(packed: import("./compressed.js").Packed) => Promise<boolean>}
   */
  async #takeCompressed(packed) {
    const bytes = await packed.unpack().catch(() => undefined);
    return bytes ? this.#take(bytes) : false;
  }

  /** @param {number | undefined} first */
  async #ask(first) {
    if (first === undefined || this.#withoutRanges) return request(this.address);
    const reply = await request(this.address, { first, cache: "no-store" });
    this.#withoutRanges = reply.status === 200;
    return reply;
  }

  /**
   * The bytes after the last whole line, or undefined when the file is another one.
   * @type {(reply: import("./request.js").Reply, first: number) => Uint8Array<ArrayBuffer> | undefined}
   */
  #newBytes({ status, headers, body }, first) {
    if (status === 416) return undefined;
    const range = /^bytes (\d+)-/.exec(headers.get("Content-Range") ?? "");
    // A server without ranges sends the whole file.
    const from = status === 206 && range ? Number(range[1]) : 0;
    if (from > first) return undefined;
    const overlap = body.subarray(first - from, this.#end - from);
    const same = overlap.length === this.#last.length && overlap.every((byte, index) => byte === this.#last[index]);
    return same ? body.subarray(this.#end - from) : undefined;
  }

  /**
   * Take the whole lines; a half-written one is asked for again next time.
   * @type {(bytes: Uint8Array<ArrayBuffer>) => Promise<boolean>}
   */
  async #take(bytes) {
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    if (end === 0) return false;
    const lines = await parseAll(bytes.subarray(0, end));
    for (const line of lines) this.progress.add(line);
    const start = end >= 2 ? bytes.lastIndexOf(NEWLINE, end - 2) + 1 : 0;
    this.#last = bytes.slice(start, end);
    this.#end += end;
    this.#lines.push(bytes.subarray(0, end));
    return true;
  }

  #forget() {
    this.#end = 0;
    this.#last = new Uint8Array();
    this.#lines = [];
    this.progress.clear();
  }
}
