// @ts-check
/*
 * The page's part of a swarm: it starts workers, tells them when a step begins and ends, and who is
 * there. Gradients and weights go from worker to worker.
 */

/** @typedef {import("#assets/tab/member.js").News} News */
/** @typedef {import("#assets/tab/member.js").Order} Order */
/**
 * @typedef {object} Volunteer
 * @property {number} number
 * @property {Worker} worker
 * @property {"starting" | "ready" | "training"} state
 * @property {number} sequences of this step
 * @property {number} seconds of computing in this step
 * @property {number} losses the sum over the batches of this step
 * @property {number} total sequences of all steps
 * @property {number} bytes sent in the newest step
 */
/**
 * @typedef {object} Step What one step did.
 * @property {number} step counted from 1
 * @property {number} steps for which it counts
 * @property {number} loss
 * @property {number} sequences
 * @property {number} seconds from its beginning to its end
 * @property {{number: number, sequences: number, computing: number, bytes: number, total: number}[]} volunteers computing: seconds
 */
/** @typedef {import("#assets/tab/round.js").Rules} Rules */
/**
 * @typedef {object} Listener
 * @property {(step: Step) => void} stepped
 * @property {() => void} changed Somebody came or went.
 * @property {(weights: Float32Array) => void} weighed
 */

const PATIENCE_MS = 3000; // between the drawings

export class Swarm {
  /** @type {Map<number, Volunteer>} */
  volunteers = new Map();
  /** @type {"waiting" | "computing" | "averaging" | "applying" | "joining" | "finished"} */
  phase = "waiting";
  step = 0;
  /** Of the averaging, from the next step on. @type {Rules} */
  rules = { bits: 32, aggregation: "mean" };
  /** Each computes the same number of sequences, or what it can, from the next step on. @type {"own" | "equal"} */
  pacing = "own";
  #share = Infinity; // sequences of each in this step
  #rules = this.rules; // of this step
  #steps = 1; // for which this one counts
  isPaused = false;
  #numbers = 0;
  #round = 0;
  #began = 0;
  #asked = -Infinity; // when weights were asked for
  /** Whose answer the phase waits for. @type {Set<number>} */
  #awaited = new Set();
  /** @type {Volunteer[]} */
  #coming = [];

  /**
   * @param {ArrayBuffer} file the lesson
   * @param {{target: number, steps: number, round: number, first: number, seed: number}} settings
   *   target: sequences of a step; round: steps' sequences between two exchanges of sparse updates;
   *   first: volunteers without whom training does not begin
   * @param {Listener} listener
   */
  constructor(file, settings, listener) {
    this.file = file;
    this.settings = settings;
    this.listener = listener;
    for (let index = 0; index < settings.first; index += 1) this.add();
  }

  /** Members of the group, without those that are still starting. */
  get members() {
    return [...this.volunteers.values()].filter(({ state }) => state === "training");
  }

  add() {
    const worker = new Worker(new URL("./tab-volunteer.js", import.meta.url), { type: "module" });
    this.#numbers += 1;
    /** @type {Volunteer} */
    const volunteer = { number: this.#numbers, worker, state: "starting", sequences: 0, seconds: 0, losses: 0, total: 0, bytes: 0 };
    worker.addEventListener("message", ({ data }) => this.#hear(volunteer, data));
    for (const kind of ["error", "messageerror"]) worker.addEventListener(kind, () => this.remove(volunteer.number));
    worker.postMessage({ kind: "begin", file: this.file, number: volunteer.number, seed: this.settings.seed });
    if (this.isPaused) tell(volunteer, { kind: "pause", on: true });
    for (const other of this.volunteers.values()) introduce(volunteer, other);
    this.volunteers.set(volunteer.number, volunteer);
    this.listener.changed();
  }

  /** @param {number} number Unplug a volunteer: what it had computed is lost. */
  remove(number) {
    const volunteer = this.volunteers.get(number);
    if (!volunteer) return;
    volunteer.worker.terminate();
    this.volunteers.delete(number);
    this.listener.changed();
    if (!this.volunteers.size) this.phase = "finished";
    if (this.phase === "waiting") return this.#begin();
    if (this.phase === "joining") return this.#admit(); // perhaps it had weights to give
    if (volunteer.state !== "training" || this.phase === "finished") return;
    if (!this.members.length) this.phase = "finished";
    else if (this.phase === "averaging") this.#average();
    else if (this.phase === "computing") this.#look();
    else this.#received(number);
  }

  /** @param {number} number @param {Order} order for one volunteer: how fast it is, how it behaves */
  tell(number, order) {
    this.volunteers.get(number)?.worker.postMessage(order);
  }

  /** @param {boolean} on */
  pause(on) {
    this.isPaused = on;
    for (const { worker } of this.volunteers.values()) worker.postMessage({ kind: "pause", on });
  }

  stop() {
    this.phase = "finished";
    for (const { worker } of this.volunteers.values()) worker.terminate();
    this.volunteers.clear();
  }

  /** @param {Volunteer} volunteer @param {News} news */
  #hear(volunteer, news) {
    if (this.phase === "finished" && news.kind !== "weights") return;
    switch (news.kind) {
      case "ready":
        volunteer.state = "ready";
        if (this.phase === "waiting") this.#begin();
        return;
      case "progress":
        volunteer.sequences += news.sequences;
        volunteer.seconds += news.seconds;
        volunteer.losses += news.loss * news.sequences;
        this.#look();
        return;
      case "averaged":
        volunteer.bytes = news.bytes;
        if (news.round === this.#round) this.#received(volunteer.number);
        return;
      case "weights":
        this.listener.weighed(news.weights);
        if (this.phase === "finished") this.stop();
        return;
      default:
        this.#received(volunteer.number);
    }
  }

  /** Average once the step has its sequences, or everybody has its share. */
  #look() {
    const { members } = this;
    const isDone = members.every(({ sequences }) => sequences >= this.#share) || this.#sequences >= this.#target;
    if (this.phase === "computing" && isDone) this.#average();
  }

  get #target() {
    return this.#steps * this.settings.target;
  }

  get #sequences() {
    return this.members.reduce((sum, { sequences }) => sum + sequences, 0);
  }

  /** The first step begins when as many are ready as should be: all have the same weights. */
  #begin() {
    const ready = [...this.volunteers.values()].filter(({ state }) => state === "ready");
    if (!ready.length || ready.length < Math.min(this.settings.first, this.volunteers.size)) return;
    for (const volunteer of ready) volunteer.state = "training";
    this.#compute();
  }

  #compute() {
    this.phase = "computing";
    this.#began = performance.now();
    this.#rules = this.rules;
    const isLocal = this.#rules.bits === "sparse";
    this.#steps = isLocal ? Math.min(this.settings.round, this.settings.steps - this.step) : 1;
    this.#share = this.pacing === "equal" ? Math.ceil(this.#target / this.members.length) : Infinity;
    for (const volunteer of this.members) {
      Object.assign(volunteer, { sequences: 0, seconds: 0, losses: 0 });
      tell(volunteer, { kind: "compute", most: this.#share, isLocal });
    }
  }

  #average() {
    this.phase = "averaging";
    this.#round += 1;
    const members = this.members.map(({ number }) => number);
    this.#await(members);
    for (const volunteer of this.members) tell(volunteer, { kind: "average", round: this.#round, members, rules: this.#rules });
  }

  /** @param {number[]} numbers */
  #await(numbers) {
    this.#awaited = new Set(numbers);
  }

  /** @param {number} number One of those that the phase waits for has answered, or left. */
  #received(number) {
    if (!this.#awaited.delete(number) || this.#awaited.size) return;
    if (this.phase === "averaging") return this.#apply();
    if (this.phase === "joining") return this.#welcome();
    if (this.phase === "applying") this.#end();
  }

  #apply() {
    this.phase = "applying";
    this.#await(this.members.map(({ number }) => number));
    for (const volunteer of this.members) tell(volunteer, { kind: "apply", steps: this.#steps });
  }

  #end() {
    const { members } = this;
    const [sequences, losses] = [this.#sequences, members.reduce((sum, one) => sum + one.losses, 0)];
    this.step += this.#steps;
    for (const volunteer of members) volunteer.total += volunteer.sequences;
    this.listener.stepped({
      step: this.step,
      steps: this.#steps,
      loss: losses / sequences,
      sequences,
      seconds: (performance.now() - this.#began) / 1000,
      volunteers: members.map(({ number, sequences: own, seconds: computing, bytes, total }) => ({ number, sequences: own, computing, bytes, total })),
    });
    const isLast = this.step >= this.settings.steps;
    this.#weigh(isLast);
    if (isLast) this.phase = "finished";
    else this.#admit();
  }

  /** @param {boolean} isLast */
  #weigh(isLast) {
    if (!isLast && performance.now() - this.#asked < PATIENCE_MS) return;
    this.#asked = performance.now();
    tell(this.members[0], { kind: "weights" });
  }

  /** Whoever is ready gets weights and optimizer states from a member before the next step begins. */
  #admit() {
    const coming = [...this.volunteers.values()].filter(({ state }) => state === "ready");
    if (!this.members.length) {
      this.phase = "finished";
      return;
    }
    if (!coming.length) return this.#compute();
    this.phase = "joining";
    this.#coming = coming;
    this.#await(coming.map(({ number }) => number));
    for (const { number } of coming) tell(this.members[0], { kind: "give", to: number });
  }

  #welcome() {
    for (const volunteer of this.#coming) volunteer.state = "training";
    this.listener.changed();
    this.#compute();
  }
}

/** @param {Volunteer} volunteer @param {Order} order */
const tell = ({ worker }, order) => worker.postMessage(order);

/** Give two volunteers a way to each other. @type {(one: Volunteer, other: Volunteer) => void} */
function introduce(one, other) {
  const { port1, port2 } = new MessageChannel();
  one.worker.postMessage({ kind: "meet", member: other.number, port: port1 }, [port1]);
  other.worker.postMessage({ kind: "meet", member: one.number, port: port2 }, [port2]);
}
