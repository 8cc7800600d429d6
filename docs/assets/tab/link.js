// @ts-check
/* A connection that carries one message after the other, at a home's rate. */

/**
 * Seconds of a transfer, as calculator/swarm/communication.py counts them: a test compares.
 * @type {(bytes: number, bitsPerSecond: number) => number}
 */
export const transferSeconds = (bytes, bitsPerSecond) => (8 * bytes) / bitsPerSecond;

export class Link {
  #free = 0; // when the messages so far are through, in milliseconds of the page's clock

  /** @param {() => number} now milliseconds @param {(act: () => void, milliseconds: number) => void} wait */
  constructor(now = () => performance.now(), wait = (act, milliseconds) => void setTimeout(act, milliseconds)) {
    this.now = now;
    this.wait = wait;
    this.bitsPerSecond = Infinity;
  }

  /** @param {number} bytes of a message @param {() => void} deliver */
  carry(bytes, deliver) {
    const now = this.now();
    this.#free = Math.max(now, this.#free) + 1000 * transferSeconds(bytes, this.bitsPerSecond);
    if (this.#free <= now) deliver();
    else this.wait(deliver, this.#free - now);
  }
}
