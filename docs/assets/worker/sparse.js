// @ts-check
/*
 * Memory without its empty pages, which are a good part of Python's: less to write, read and check.
 * First come the size of all and the number of runs, then where each run begins and ends, then the
 * runs' contents.
 */

const PAGE_BYTES = 4096;
const NUMBER_BYTES = 4;
const HEAD_NUMBERS = 2;

/**
 * @param {Uint8Array<ArrayBuffer>} memory Aligned, as an array of its own is.
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function condense(memory) {
  const runs = runsOf(memory);
  const head = HEAD_NUMBERS + runs.length;
  const size = runs.reduce((sum, place, at) => (at % 2 ? sum + place : sum - place), NUMBER_BYTES * head);
  const condensed = new Uint8Array(size);
  new Uint32Array(condensed.buffer, 0, head).set([memory.length, runs.length, ...runs]);
  let end = NUMBER_BYTES * head;
  for (let at = 0; at < runs.length; at += 2) {
    condensed.set(memory.subarray(runs[at], runs[at + 1]), end);
    end += runs[at + 1] - runs[at];
  }
  return condensed;
}

/** @param {Uint8Array<ArrayBuffer>} condensed */
export function sizeOf(condensed) {
  return new Uint32Array(condensed.buffer, 0, 1)[0];
}

/**
 * Write a part of the memory to where it is wanted, with one copy of its bytes and none of its empty
 * pages.
 * @param {Uint8Array<ArrayBuffer>} condensed
 * @param {number} start Where the part begins.
 * @param {Uint8Array} target As long as the part, and empty.
 */
export function expand(condensed, start, target) {
  const [, count] = new Uint32Array(condensed.buffer, 0, HEAD_NUMBERS);
  const runs = new Uint32Array(condensed.buffer, HEAD_NUMBERS * NUMBER_BYTES, count);
  let place = NUMBER_BYTES * (HEAD_NUMBERS + count);
  for (let at = 0; at < count; at += 2) {
    const [first, last] = [runs[at], runs[at + 1]];
    const [from, to] = [Math.max(first, start), Math.min(last, start + target.length)];
    if (from < to) target.set(condensed.subarray(place + from - first, place + to - first), from - start);
    place += last - first;
  }
}

/**
 * Where the pages that are not empty begin and end, neighbors together.
 * @type {(memory: Uint8Array<ArrayBuffer>) => number[]}
 */
function runsOf(memory) {
  const numbers = new Int32Array(memory.buffer, 0, Math.floor(memory.length / NUMBER_BYTES));
  /** @type {number[]} */
  const runs = [];
  for (let start = 0; start < memory.length; start += PAGE_BYTES) {
    const end = Math.min(start + PAGE_BYTES, memory.length);
    if (isEmpty(numbers, start, end)) continue;
    if (runs[runs.length - 1] === start) runs[runs.length - 1] = end;
    else runs.push(start, end);
  }
  return runs;
}

/**
 * @param {Int32Array} numbers
 * @param {number} start In bytes.
 * @param {number} end
 */
function isEmpty(numbers, start, end) {
  if (end % NUMBER_BYTES) return false;
  for (let at = start / NUMBER_BYTES; at < end / NUMBER_BYTES; at += 1) if (numbers[at]) return false;
  return true;
}
