// @ts-check
/* The visitor's guess of what a switch does to the loss, and the figure's answer. */

/** @typedef {"falls" | "stalls" | "rises"} Course */

const SIGMAS = 3; // by which two means differ when it is not chance
const ENDS = 3; // parts of what is compared: the first against the last

/** @type {Record<Course, string>} */
const WORDS = { falls: "kept falling", stalls: "stalled", rises: "rose" };

/** What the losses of some exchanges did: their first third against their last. @type {(losses: number[]) => Course} */
export function courseOf(losses) {
  const third = Math.floor(losses.length / ENDS);
  const [first, last] = [losses.slice(0, third), losses.slice(-third)].map(momentsOf);
  const change = last.mean - first.mean;
  if (Math.abs(change) < SIGMAS * Math.sqrt(first.variance + last.variance)) return "stalls";
  return change < 0 ? "falls" : "rises";
}

/** @param {number[]} numbers The mean, and the variance of that mean. */
function momentsOf(numbers) {
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const squares = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0);
  return { mean, variance: squares / (numbers.length - 1) / numbers.length };
}

/** Watches so many exchanges after a switch. */
export class Guess {
  /** @type {number[] | undefined} */
  #losses;
  #change = "";

  /** @param {number} exchanges */
  constructor(exchanges) {
    this.exchanges = exchanges;
  }

  /** @param {string} change Something that was changed: what it does is seen from the next exchange on. */
  begin(change) {
    this.#change = change;
    this.#losses = [];
  }

  /**
   * The answer, once enough is seen; undefined before.
   * @param {number} loss of an exchange
   * @param {string} guessed empty: nothing
   */
  take(loss, guessed) {
    this.#losses?.push(loss);
    if (!this.#losses || this.#losses.length < this.exchanges) return undefined;
    const course = courseOf(this.#losses);
    this.#losses = undefined;
    const found = `${this.#change}. In the ${this.exchanges} exchanges since then, the loss ${WORDS[course]}`;
    if (!guessed) return `${found}.`;
    return course === guessed ? `${found}, as you guessed.` : `${found}. You guessed that it would have ${WORDS[/** @type {Course} */ (guessed)].replace("rose", "risen")}.`;
  }
}
