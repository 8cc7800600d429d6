"""The scripts of 'Train in this tab', asked in Node.js."""

from tests.training.scripts import Scripts

PROGRAM = """
import { readFileSync } from "node:fs";
import { Lamb } from "./docs/assets/tab/lamb.js";
import { Learner } from "./docs/assets/tab/learner.js";
import { Member } from "./docs/assets/tab/member.js";
import { tensorsOf } from "./docs/assets/tab/parameters.js";
import { sent } from "./docs/assets/tab/behavior.js";
import { Guess } from "./templates/pages/train_in_this_tab/guess.js";
import { Link } from "./docs/assets/tab/link.js";
import { aggregate, partsOf } from "./docs/assets/tab/reduction.js";
import { bytesOf, decode, encode } from "./docs/assets/tab/wire.js";
import { AdamW } from "./docs/assets/volunteer/adamw.js";
import { open, seal } from "./docs/assets/volunteer/envelope.js";
import { exactSum } from "./docs/assets/volunteer/sum.js";
import { newKey, peerIdOf, textOf } from "./docs/assets/volunteer/identity.js";
import { RefusedError } from "./docs/assets/volunteer/host.js";
import { RoundsVolunteer } from "./docs/assets/volunteer/rounds.js";
import { sha256, SharedState } from "./docs/assets/volunteer/shared.js";
import * as sparse from "./docs/assets/volunteer/sparse.js";

// So many members, who know each other; and all weights once one more has the first one's state.
function membersOf(file, count) {
  const { buffer } = new Uint8Array(readFileSync(file));
  const start = (number, seed) => new Member({ file: buffer, number, seed }, () => {});
  const members = Array.from({ length: count }, (_, index) => start(index + 1, 5));
  const known = (one, other) => {
    one.meet(other.number, { postMessage: (message) => other.hear(structuredClone(message)) });
  };
  for (const one of members) for (const other of members) if (one !== other) known(one, other);
  const welcome = async () => {
    const newcomer = start(9, 6);
    known(members[0], newcomer);
    await members[0].obey({ kind: "give", to: 9 });
    const weights = [...members, newcomer].map(({ learner }) => learner.weights);
    return { weights, step: newcomer.step };
  };
  return { members, welcome };
}

const answers = {
  tensors: ({ shape }) => tensorsOf(shape),
  gradients({ shape, weights, batches, plain }) {
    const learner = new Learner(shape, batches[0].text.length / shape.text_length, plain);
    learner.learn(batches[0]); // with other weights, of which nothing may stay
    learner.gradients.fill(0);
    learner.weights.set(weights);
    const losses = batches.map((batch) => learner.learn(batch));
    return { losses, gradients: learner.gradients };
  },
  moved({ kind, shape, weights, gradients, settings, rates }) {
    const optimizer = new { AdamW, Lamb }[kind](tensorsOf(shape), settings);
    gradients.forEach((gradient, step) => optimizer.step(weights, gradient, rates[step]));
    return weights;
  },
  parts: ({ count, members }) => partsOf(count, members),
  aggregated: ({ vectors, weights, aggregation }) => aggregate(vectors, weights, aggregation),
  sent: ({ gradient, behavior }) => sent(gradient, behavior, Math.random),
  // When each message of so many bytes is through, all posted at once.
  carried({ bytes, bitsPerSecond }) {
    const arrivals = bytes.map(() => 0);
    let index = 0;
    const link = new Link(() => 0, (deliver, wait) => (arrivals[index] = wait / 1000));
    if (bitsPerSecond) link.bitsPerSecond = bitsPerSecond;
    for (; index < bytes.length; index += 1) link.carry(bytes[index], () => {});
    return arrivals;
  },
  guessed({ losses, guess }) {
    const figure = new Guess(losses.length);
    figure.begin("B sends noise");
    return losses.map((loss) => figure.take(loss, guess)).at(-1);
  },
  wired({ vector, part, tensors, format }) {
    const pieces = encode(vector, part, tensors, format);
    const values = new Float32Array(part.end - part.start);
    decode(pieces, values);
    return { values, bytes: bytesOf(pieces) };
  },
  // A step of members that computed so many batches; then one comes who gets the first one's state.
  async trained({ file, batches, bits }) {
    const { members, welcome } = membersOf(file, batches.length);
    const gradients = members.map((member, index) => {
      for (let done = 0; done < batches[index]; done += 1) {
        member.learner.learn(member.lesson.batch(member.learner.batch, member.chance));
        member.batches += 1;
      }
      return member.learner.gradients.slice();
    });
    const before = members[0].learner.weights.slice();
    const numbers = members.map(({ number }) => number);
    const rules = { bits, aggregation: "mean" };
    const order = { kind: "average", round: 1, members: numbers, rules };
    await Promise.all(members.map((member) => member.obey(order)));
    const bytes = members.map(({ round }) => round.bytes);
    const average = members[0].round.average;
    for (const member of members) await member.obey({ kind: "apply", steps: 1 });
    return { before, gradients, bytes, average, ...(await welcome()) };
  },
  // Rounds of local steps: what each member sent, what it still has to send, and all weights.
  async localSteps({ file, batches, rounds, behaviors = {} }) {
    const { members, welcome } = membersOf(file, batches.length);
    for (const member of members) member.behavior = behaviors[member.number] ?? "honest";
    const before = members[0].learner.weights.slice();
    const sent = [];
    for (let round = 1; round <= rounds; round += 1) {
      sent.push(await localRound(members, batches, round));
    }
    const residuals = members.map(({ local }) => local.residual);
    return { before, sent, residuals, ...(await welcome()) };
  },
};

async function localRound(members, batches, round) {
  const numbers = members.map(({ number }) => number);
  members.forEach((member, index) => {
    member.isPaused = true; // this test computes
    void member.obey({ kind: "compute", most: Infinity, isLocal: true });
    for (let done = 0; done < batches[index]; done += 1) {
      member.local.step(member.lesson.batch(member.learner.batch, member.chance), 1);
      member.batches += 1;
    }
  });
  const order = { kind: "average", round, members: numbers, rules: { bits: "sparse" } };
  await Promise.all(members.map((member) => member.obey(order)));
  const learned = members.map(({ local }) => local.residual.slice());
  const bytes = members.map((member) => member.round.bytes);
  const contents = members.map(({ round: { updates }, number }) => updates.get(number).content);
  const steps = 4;
  for (const member of members) await member.obey({ kind: "apply", steps });
  return { learned, bytes, contents: contents.map(toText) };
}

// A host of one volunteer: it closes a round as soon as an update comes, which it takes or not.
class ScriptedHost {
  sent = 0;
  received = 0;
  number = 0;
  #files = new Map();
  #names = new Map();

  constructor(about, checkpoint, fates, key) {
    Object.assign(this, { about, fates, key, checkpoint });
  }

  checkpoints = async () => ["checkpoints/0"];
  find = async (name) => (name === "checkpoints/0" ? "first" : this.#names.get(name));
  file = async (sum) => (sum === "first" ? this.checkpoint : this.#files.get(sum));
  round = async () => ({ round: this.number, finished: false });
  data = async (first, end) => new Uint8Array(end - first);

  async put(where, content) {
    if (where === "reports") return;
    const fate = this.fates[this.number];
    const { fields: { samples, ...of }, signer, body } = await open("payload", content);
    const { layout, state: { weights, round, samples: before } } = this.volunteer;
    const state = new SharedState(weights.slice(), round, before);
    const isTaken = fate === "taken";
    const update = sparse.decode(body, layout);
    state.step(isTaken ? [{ samples, update }] : [], this.about.outer);
    const taken = isTaken ? [[await sha256(content), signer, samples]] : [];
    const list = new TextEncoder().encode(JSON.stringify(taken));
    const closing = await seal("closing", { ...of, end: await state.digest() }, list, this.key);
    const sum = await sha256(closing);
    this.#files.set(sum, closing);
    this.#names.set(`closings/${String(this.number).padStart(9, "0")}`, sum);
    this.number += 1;
    if (fate === "refused") throw new RefusedError("no");
  }
}

// Of the volunteer of a real run, whose files are base 64 here.
const fromText = (text) => new Uint8Array(Buffer.from(text, "base64"));
const toText = (bytes) => Buffer.from(bytes).toString("base64");
Object.assign(answers, {
  exactSum: ({ values }) => exactSum(values),
  sparse({ vector, sizes }) {
    const layout = sparse.layoutOf(sizes);
    return { content: toText(sparse.encode(vector, layout)), bytes: layout.bytes };
  },
  read({ content, sizes }) {
    const { places, values, norm } = sparse.decode(fromText(content), sparse.layoutOf(sizes));
    return { places: [...places], values, norm };
  },
  async stepped({ checkpoint, sizes, rounds, settings }) {
    const layout = sparse.layoutOf(sizes);
    const state = SharedState.read(fromText(checkpoint), layout.elements);
    const digests = [await state.digest()];
    for (const contributions of rounds) {
      const decoded = contributions.map(({ content, samples }) => ({
        samples,
        update: sparse.decode(fromText(content), layout),
      }));
      state.step(decoded, settings);
      digests.push(await state.digest());
    }
    return digests;
  },
  async sealed({ kind, fields, body }) {
    const key = await newKey();
    const content = await seal(kind, fields, fromText(body), key);
    const { signer } = await open(kind, content);
    const identity = await peerIdOf(key.publicKey);
    return { content: toText(content), identity, signer, text: await textOf(key.publicKey) };
  },
  async opened({ kind, content }) {
    const { body, ...file } = await open(kind, fromText(content));
    return { ...file, body: toText(body) };
  },
  // A volunteer's rounds, each "taken", "rejected" or "refused" by a host; what it then has.
  async followed({ about, checkpoint, fates }) {
    const [key, closer] = [await newKey(), await newKey()];
    const [memory, told] = [{ key, samples: 0, rounds: 0 }, []];
    about.closers = [await peerIdOf(closer.publicKey)];
    const host = new ScriptedHost(about, fromText(checkpoint), fates, closer);
    const tell = ({ kind, leftOut }) => {
      if (kind === "round") told.push({ leftOut, samples: memory.samples });
    };
    const volunteer = new RoundsVolunteer(host, about, "tab", memory, tell);
    host.volunteer = volunteer;
    const residuals = [];
    await volunteer.train(() => residuals.push(memory.residual.slice()));
    return { told, residuals, rounds: memory.rounds };
  },
});
"""

ask = Scripts(PROGRAM).ask
