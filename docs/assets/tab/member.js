// @ts-check
/*
 * A volunteer: computes gradients of its own batches, averages them with the others, and updates its
 * weights; or makes local steps and exchanges sparse updates. It tells the page how far it is;
 * gradients and updates go to the other members alone.
 */

import { chances } from "../drawing/chance.js";
import { LocalSteps } from "../volunteer/local.js";
import { SharedState } from "../volunteer/shared.js";
import { decode, encode } from "../volunteer/sparse.js";
import { sent } from "./behavior.js";
import { Learner } from "./learner.js";
import { Lesson } from "./lesson.js";
import { Lamb, rateFactor } from "./lamb.js";
import { Link } from "./link.js";
import { newWeights } from "./parameters.js";
import { rest } from "./rest.js";
import { Round } from "./round.js";
import { Updates } from "./updates.js";
import { bytesOf } from "./wire.js";

/** @typedef {Float32Array<ArrayBuffer>} Numbers */
/** @typedef {import("./round.js").Part | import("./round.js").Mean | import("./updates.js").Update} Message */
/** @typedef {{postMessage: (message: any, options?: any) => void}} Port */
/**
 * @typedef {{kind: "compute", most: number, isLocal: boolean} | {kind: "average", round: number, members: number[], rules: import("./round.js").Rules}
 *   | {kind: "apply", steps: number} | {kind: "give", to: number} | {kind: "slow", factor: number} | {kind: "link", bitsPerSecond: number} | {kind: "pause", on: boolean}
 *   | {kind: "behave", behavior: import("./behavior.js").Behavior} | {kind: "weights"}} Order
 */
/** @typedef {{kind: "state", step: number, weights: Numbers, momentum: Numbers, variance: Numbers}} State */
/**
 * @typedef {{kind: "ready"} | {kind: "progress", sequences: number, loss: number, seconds: number}
 *   | {kind: "averaged", round: number, bytes: number} | {kind: "applied"} | {kind: "caught-up"}
 *   | {kind: "weights", weights: Numbers}} News
 */

export class Member {
  /**
   * @param {{file: ArrayBuffer, number: number, seed: number, plain?: boolean}} given seed: the same for all
   * @param {(news: News, moved?: Transferable[]) => void} tell
   */
  constructor({ file, number, seed, plain }, tell) {
    this.number = number;
    this.tell = tell;
    this.lesson = new Lesson(file);
    const { model, micro_batch: batch, optimizer, layer_scale: scale } = this.lesson.about;
    this.learner = new Learner(model, batch, plain);
    this.optimizer = new Lamb(this.learner.tensors, optimizer);
    this.learner.weights.set(newWeights(this.learner.tensors, scale, chances(seed, 0)));
    this.chance = chances(seed, 1 + number);
    this.step = 0;
    this.batches = 0; // since the last step
    this.factor = 1;
    this.most = Infinity; // sequences of a step
    this.up = new Link();
    this.down = new Link();
    /** @type {import("./behavior.js").Behavior} */
    this.behavior = "honest";
    this.isPaused = false;
    this.isComputing = false;
    this.loop = Promise.resolve();
    /** @type {Map<number, Port>} */
    this.ports = new Map();
    /** Of local steps. @type {LocalSteps | undefined} */
    this.local = undefined;
    /** The weights from which this round began. @type {Numbers} */
    this.shared = new Float32Array();
    this.offered = new Uint8Array(); // our honest update in this round
    /** @type {Round | Updates | undefined} */
    this.round = undefined;
    /** @type {Message[]} */
    this.early = []; // of rounds that the page has not announced here yet
  }

  /** @param {number} member @param {Port} port Another member, and the way to it. */
  meet(member, port) {
    this.ports.set(member, port);
  }

  /** @param {Order} order From the page. */
  async obey(order) {
    switch (order.kind) {
      case "compute":
        this.most = order.most;
        this.#prepare(order.isLocal);
        return this.#resume(true);
      case "pause":
        this.isPaused = order.on;
        return this.#resume(this.isComputing);
      case "average": return this.#average(order);
      case "apply": return this.#apply(order.steps);
      case "slow":
        this.factor = order.factor;
        return;
      case "link":
        this.up.bitsPerSecond = this.down.bitsPerSecond = order.bitsPerSecond;
        return;
      case "behave":
        this.behavior = order.behavior;
        return;
      case "give":
        this.ports.get(order.to)?.postMessage(this.#state());
        return;
      case "weights": {
        const weights = this.learner.weights.slice();
        this.tell({ kind: "weights", weights }, [weights.buffer]);
      }
    }
  }

  /** @param {Message | State} message From another member. */
  hear(message) {
    if (message.kind === "state") return this.#catchUp(message);
    this.down.carry(message.kind === "update" ? message.content.length : bytesOf(message.pieces), () => this.#take(message));
  }

  /** @param {Message} message that has come through */
  #take(message) {
    if (message.round === this.round?.number) this.round.take(/** @type {any} */ (message));
    else this.early.push(message);
    this.#advance();
  }

  /** @param {boolean} isLocal Whether this step is made of local ones. */
  #prepare(isLocal) {
    const { learner, lesson: { about: { local } } } = this;
    if (!isLocal) {
      this.local = undefined;
      return;
    }
    this.shared = learner.weights.slice();
    this.local ??= new LocalSteps(learner, local);
    this.local.begin(this.shared);
  }

  /** @param {boolean} isComputing */
  #resume(isComputing) {
    this.isComputing = isComputing;
    this.loop = this.loop.then(() => this.#compute());
  }

  async #compute() {
    const { micro_batch: sequences, schedule } = this.lesson.about;
    while (this.isComputing && !this.isPaused && this.batches * sequences < this.most) {
      const began = performance.now();
      const batch = this.lesson.batch(sequences, this.chance);
      const loss = this.local?.step(batch, rateFactor(schedule, this.step)) ?? this.learner.learn(batch);
      this.batches += 1;
      await rest((this.factor - 1) * (performance.now() - began));
      this.tell({ kind: "progress", sequences, loss, seconds: (performance.now() - began) / 1000 });
    }
  }

  /** @param {Extract<Order, {kind: "average"}>} order */
  async #average(order) {
    this.isComputing = false;
    await this.loop; // a micro-batch that has begun is finished
    this.round = this.local ? this.#offer(order, this.local) : this.#divide(order);
    for (const message of this.early.filter(({ round }) => round === order.round)) this.round.take(/** @type {any} */ (message));
    this.early = this.early.filter(({ round }) => round > order.round);
    this.#advance();
  }

  /** @param {Extract<Order, {kind: "average"}>} order A round of gradients. */
  #divide({ round: number, members, rules }) {
    const { learner, batches, lesson: { about } } = this;
    const own = learner.gradients.map((value) => (batches ? value / batches : 0));
    const given = { gradient: sent(own, this.behavior, this.chance), weight: batches * about.micro_batch };
    const layout = { tensors: learner.tensors, threshold: about.compression_threshold };
    return new Round({ number, own: this.number, members, rules }, given, layout, (to, message, moved) =>
      this.up.carry(bytesOf(message.pieces), () => this.ports.get(to)?.postMessage(message, { transfer: moved })));
  }

  /** @param {Extract<Order, {kind: "average"}>} order A round of updates. @param {LocalSteps} local */
  #offer({ round: number, members }, local) {
    const samples = local.end() ? this.batches * this.lesson.about.micro_batch : 0;
    this.offered = samples ? encode(local.residual, local.layout) : new Uint8Array();
    const content = this.behavior === "honest" || !samples ? this.offered : encode(sent(local.residual, this.behavior, this.chance), local.layout);
    /** @type {import("./updates.js").Update} */
    const update = { kind: "update", round: number, from: this.number, content, samples };
    this.up.carry(content.length, () => {
      for (const member of members) this.ports.get(member)?.postMessage(update);
    });
    return new Updates({ number, members }, update);
  }

  #advance() {
    const { round } = this;
    if (round?.advance()) this.tell({ kind: "averaged", round: round.number, bytes: round.bytes });
  }

  /** @param {number} steps for which this one counts; once the page knows that every member has all that it needs */
  #apply(steps) {
    const { learner, round, lesson: { about: { optimizer: { learning_rate: peak }, schedule } } } = this;
    if (round instanceof Updates) this.#share(round);
    else this.optimizer.step(learner.weights, /** @type {Round} */ (round).average, peak * rateFactor(schedule, this.step));
    learner.gradients.fill(0);
    this.batches = 0;
    this.step += steps;
    this.tell({ kind: "applied" });
  }

  /** @param {Updates} round whose updates all apply */
  #share({ taken }) {
    const { layout } = /** @type {LocalSteps} */ (this.local);
    const state = new SharedState(this.shared, this.step, 0);
    state.step(taken.map(({ content, samples }) => ({ samples, update: decode(content, layout) })), this.lesson.about.outer);
    if (this.offered.length) this.local?.settle(this.offered);
    this.learner.weights.set(state.weights);
  }

  /** @returns {State} */
  #state() {
    const { momentum, variance } = this.optimizer;
    return { kind: "state", step: this.step, weights: this.learner.weights.slice(), momentum, variance };
  }

  /** @param {State} state */
  #catchUp({ step, weights, momentum, variance }) {
    this.step = step;
    this.learner.weights.set(weights);
    this.optimizer.momentum.set(momentum);
    this.optimizer.variance.set(variance);
    this.tell({ kind: "caught-up" });
  }
}
