// @ts-check
/*
 * A volunteer of a run with local steps, as training/volunteer/rounds.py is one: it learns for a
 * while, hands in what it learned in a signed file, and follows the round's signed list.
 */

import { rateFactor } from "../tab/lamb.js";
import { Learner } from "../tab/learner.js";
import { rest } from "../tab/rest.js";
import { open, seal } from "./envelope.js";
import { OutageError, RefusedError } from "./host.js";
import { LocalSteps } from "./local.js";
import { DataRows } from "./rows.js";
import { sha256, SharedState } from "./shared.js";
import { decode, encode } from "./sparse.js";

/**
 * @typedef {object} About A run as training/monitor/tab.py describes it.
 * @property {string} run
 * @property {string[]} closers identities that may sign a round's list
 * @property {import("../drawing/weights.js").ModelShape} model
 * @property {number} micro_batch sequences of a local step
 * @property {number} rows of the data
 * @property {{warmup_steps: number, total_steps: number}} schedule
 * @property {{seconds: number, learning_rate: number} & import("./adamw.js").Settings} local
 * @property {import("./shared.js").OuterSettings} outer
 * @property {number} poll_seconds
 */
/** @typedef {{run: string, number: number, start: string}} Round */
/** @typedef {[sha256: string, peer: string, samples: number]} Taken */
/** @typedef {"joining" | "learning" | "waiting" | "outage"} Stage */
/**
 * @typedef {{kind: "stage", stage: Stage} | {kind: "over"} | {kind: "refused", message: string}
 *   | {kind: "round", round: number, samples: number, rounds: number, leftOut: number, loss: number | null}} News
 */

const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [1000, 30_000]; // before a host that is down is asked again
const HEARTBEAT_MS = 10_000;
const LOSS_DIGITS = 4; // Python writes smaller numbers in another way

export class RoundsVolunteer {
  /** What a round may take. @type {{sum: string, content: Uint8Array<ArrayBuffer>, samples: number, isHandedIn: boolean} | undefined} */
  #offered;
  #session = Date.now() / 1000;
  #reported = 0; // time of the newest report
  /** @type {number | null} */
  #loss = null;
  #leftOut = 0; // updates that arrived in time and were rejected
  #isStopped = false;
  /** @type {() => void} */
  #wake = () => {};

  /**
   * @param {import("./host.js").Host} host
   * @param {About} about
   * @param {string} name
   * @param {import("./memory.js").Memory} memory which is kept up to date
   * @param {(news: News) => void} tell
   */
  constructor(host, about, name, memory, tell) {
    this.host = host;
    this.about = about;
    this.name = name;
    this.memory = memory;
    this.tell = tell;
    this.local = new LocalSteps(new Learner(about.model, about.micro_batch), about.local, memory);
    this.layout = this.local.layout;
    memory.moments = this.local.optimizer.moments;
    this.rows = new DataRows(host, about);
  }

  /** Round after round, until the run is over or `stop` is called. @param {() => Promise<unknown>} remember after each round */
  async train(remember) {
    this.tell({ kind: "stage", stage: "joining" });
    const heart = setInterval(() => void this.#report("training").catch(() => {}), HEARTBEAT_MS);
    try {
      await this.#ask(() => this.#join());
      let isOver = this.#isStopped;
      while (!isOver && !this.#isStopped) {
        await this.#learn();
        isOver = await this.#follow();
        this.memory.residual = this.local.residual;
        await remember();
      }
      if (!this.#isStopped) this.tell({ kind: "over" });
    } finally {
      clearInterval(heart);
      await this.#report("left").catch(() => {});
    }
  }

  /** At once: a local step that has begun is the last, and is not handed in. */
  stop() {
    this.#isStopped = true;
    this.#wake();
  }

  /** The newest checkpoint that a signed list vouches for, and the rounds since. */
  async #join() {
    const newest = (await this.host.checkpoints()).at(-1);
    const sum = newest && (await this.host.find(newest));
    if (!sum) throw new Error("the run has no checkpoint yet");
    const state = SharedState.read(await this.host.file(sum), this.layout.elements);
    if (state.round && (await this.#closing(state.round - 1))?.end !== (await state.digest())) {
      throw new Error("no list vouches for the run's checkpoint");
    }
    this.#offered = undefined;
    this.state = state;
    await this.#catchUp();
  }

  get #state() {
    return /** @type {SharedState} */ (this.state);
  }

  /** Local steps for the time of a round, then the update, signed and handed in. */
  async #learn() {
    this.tell({ kind: "stage", stage: "learning" });
    void this.#report("training").catch(() => {}); // so that the round waits for us
    const { local, about: { local: { seconds }, schedule, micro_batch: batch } } = this;
    const factor = rateFactor(schedule, this.#state.round);
    local.begin(this.#state.weights);
    const end = performance.now() + 1000 * seconds;
    do {
      const sequences = await this.#ask(() => this.rows.batch(batch));
      if (!sequences) return;
      local.step(sequences, factor);
      await rest(0);
    } while (performance.now() < end && !this.#isStopped);
    if (this.#isStopped || !local.end()) return;
    this.#loss = local.losses.reduce((sum, loss) => sum + loss, 0) / local.losses.length;
    await this.#handIn(batch * local.losses.length);
  }

  /** @param {number} samples */
  async #handIn(samples) {
    const { about: { run }, layout, memory: { key } } = this;
    const of = { run, number: this.#state.round, start: await this.#state.digest() };
    const content = await seal("payload", { ...of, samples }, encode(this.local.residual, layout), key);
    const offered = { sum: await sha256(content), content, samples, isHandedIn: false };
    this.#offered = offered;
    try {
      const isHandedIn = await this.#ask(async () => {
        await this.#report("training").catch((error) => { // the loss is for the page alone
          if (!(error instanceof RefusedError)) throw error;
        });
        await this.host.put("payloads", content);
        return true;
      });
      offered.isHandedIn = Boolean(isHandedIn);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      this.tell({ kind: "refused", message: error.message });
    }
  }

  /** Wait until the round is closed, and apply its list; true when the run is over. */
  async #follow() {
    this.tell({ kind: "stage", stage: "waiting" });
    for (;;) {
      const status = await this.#ask(() => this.host.round());
      if (!status || this.#isStopped) return false;
      if (status.round !== this.#state.round) {
        const before = this.#state.round;
        await this.#ask(() => this.#catchUp()).catch(() => {}); // a list that does not hold, or is gone
        if (this.#state.round === before) await this.#ask(() => this.#join());
        return this.#state.round >= this.about.schedule.total_steps;
      }
      if (status.finished) return true;
      await this.#pause(1000 * this.about.poll_seconds);
    }
  }

  /** Apply the rounds that have been closed. */
  async #catchUp() {
    for (;;) {
      const closing = await this.#closing(this.#state.round);
      if (!closing) return true;
      this.state = await this.#applied(closing);
      const isTaken = closing.taken.some(([sum]) => sum === this.#offered?.sum);
      if (isTaken) this.#settle();
      else if (this.#offered?.isHandedIn) this.#giveUp();
      this.#offered = undefined;
      const { samples, rounds } = this.memory;
      this.tell({ kind: "round", round: this.#state.round, samples, rounds, leftOut: this.#leftOut, loss: this.#loss });
    }
  }

  /** The round took our update: what was sent is no longer to be sent. */
  #settle() {
    const { content, samples } = /** @type {{content: Uint8Array<ArrayBuffer>, samples: number}} */ (this.#offered);
    this.local.settle(content.slice(-this.layout.bytes));
    this.memory.samples += samples;
    this.memory.rounds += 1;
  }

  /** The round had our update and left it out: what is still to be sent would not help either. */
  #giveUp() {
    this.local.giveUp();
    this.#leftOut += 1;
  }

  /** @param {number} number @returns {Promise<{of: Round, taken: Taken[], end: unknown} | undefined>} a round's list, checked */
  async #closing(number) {
    const sum = await this.host.find(`closings/${String(number).padStart(9, "0")}`);
    if (!sum) return undefined;
    const { fields: { end, ...of }, signer, body } = await open("closing", await this.host.file(sum));
    if (!this.about.closers.includes(signer)) throw new Error(`the list of round ${number} is signed by a stranger`);
    if (of.run !== this.about.run || of.number !== number) throw new Error(`the list of round ${number} is made for another`);
    return { of: /** @type {any} */ (of), taken: JSON.parse(new TextDecoder().decode(body)), end };
  }

  /** @param {{of: Round, taken: Taken[], end: unknown}} closing */
  async #applied({ of, taken, end }) {
    const { weights, round, samples } = this.#state;
    const contributions = await Promise.all(taken.map((one) => this.#contribution(of, one)));
    const state = new SharedState(weights.slice(), round, samples);
    state.step(contributions, this.about.outer);
    if ((await state.digest()) !== end) throw new Error("a round gave other weights here than where it was closed");
    return state;
  }

  /** @param {Round} of @param {Taken} taken */
  async #contribution(of, [sum, peer, samples]) {
    const content = sum === this.#offered?.sum ? this.#offered.content : await this.host.file(sum);
    const { fields, signer, body } = await open("payload", content);
    const isRight = signer === peer && fields.samples === samples && fields.number === of.number && fields.start === of.start;
    if (!isRight) throw new Error(`a payload of round ${of.number} is not the one on the list`);
    return { samples, update: decode(body, this.layout) };
  }

  /** @param {"training" | "left"} state A report, as training/sparse/report.py reads it. */
  async #report(state) {
    this.#reported = Math.max(Date.now() / 1000, this.#reported + 0.001);
    const { host, name, about: { run } } = this;
    const fields = {
      run, name, state, session: this.#session, time: this.#reported, number: this.state?.round ?? 0,
      loss: this.#loss === null ? null : Number(this.#loss.toFixed(LOSS_DIGITS)),
      bytes_sent: host.sent, bytes_received: host.received, milestones: {},
    };
    await host.put("reports", await seal("report", fields, new Uint8Array(), this.memory.key));
  }

  /**
   * The host's answer; while there is none, it is asked again and again. Undefined when stopped.
   * @type {<T>(ask: () => Promise<T>) => Promise<T | undefined>}
   */
  async #ask(ask) {
    for (let pause = FIRST_PAUSE_MS; !this.#isStopped; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof OutageError)) throw error;
        this.tell({ kind: "stage", stage: "outage" });
        await this.#pause(pause);
      }
    }
    return undefined;
  }

  /** @param {number} milliseconds or until the volunteer is stopped */
  #pause(milliseconds) {
    if (this.#isStopped) return undefined;
    const woken = /** @type {Promise<void>} */ (new Promise((resolve) => {
      this.#wake = resolve;
    }));
    return Promise.race([rest(milliseconds), woken]);
  }
}
