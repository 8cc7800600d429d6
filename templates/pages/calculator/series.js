// @ts-check
/*
 * Work that can wait for the end of a series of edits, such as a slider's drag, whose figures it
 * would hold up. After a single edit that begins no drag it is done at once.
 */

// Edits that follow each other faster are a series, which ends after as long a pause.
const PAUSE_MS = 120;

export class Series {
  #editedAt = -Infinity;
  #goesOn = false;
  // The edit that Python has answered.
  #answered = -Infinity;
  /** What waits, by name: of one name only the newest. @type {Map<string, () => void>} */
  #waiting = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** Note an edit. @param {boolean} beginsDrag Whether others are likely to follow at once. */
  edit(beginsDrag) {
    const now = performance.now();
    this.#goesOn = beginsDrag || now - this.#editedAt < PAUSE_MS;
    this.#editedAt = now;
    if (this.#waiting.size) this.#wait();
  }

  /**
   * Do something at once, or within a series after its end: what Python answers late waits for a
   * pause, too, since it would make the next answer late.
   * @type {(name: string, act: () => void) => void}
   */
  after(name, act) {
    this.#answered = this.#editedAt;
    if (this.#goesOn) {
      this.#waiting.set(name, act);
      this.#wait();
    } else {
      this.#waiting.delete(name);
      act();
    }
  }

  #wait() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#answered === this.#editedAt) this.#goesOn = false;
      const acts = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const act of acts) act();
    }, PAUSE_MS);
  }
}
