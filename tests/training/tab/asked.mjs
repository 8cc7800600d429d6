// Answers one question about docs/assets/tab/ on standard input: {name, given}. Vectors travel as
// {"float32": base64}, since JSON would make them long.
import { readFileSync } from "node:fs";
import { Learner } from "../../../docs/assets/tab/learner.js";
import { Lamb, rateFactor } from "../../../docs/assets/tab/lamb.js";
import { tensorsOf } from "../../../docs/assets/tab/parameters.js";

const answers = {
  tensors: ({ shape }) => tensorsOf(shape),
  gradients({ shape, weights, batches, plain }) {
    const learner = new Learner(shape, batches[0].text.length / shape.text_length, plain);
    learner.weights.set(weights);
    const losses = batches.map((batch) => learner.learn(batch));
    return { losses, gradients: learner.gradients };
  },
  curve({ shape, weights, batches, settings, schedule }) {
    const learner = new Learner(shape, batches[0].text.length / shape.text_length);
    const lamb = new Lamb(learner.tensors, settings);
    learner.weights.set(weights);
    return batches.map((batch, step) => {
      learner.gradients.fill(0);
      const loss = learner.learn(batch);
      lamb.step(learner.weights, learner.gradients, settings.learning_rate * rateFactor(schedule, step));
      return loss;
    });
  },
  optimized({ shape, weights, gradients, settings, rates }) {
    const optimizer = new Lamb(tensorsOf(shape), settings);
    gradients.forEach((gradient, step) => optimizer.step(weights, gradient, rates[step]));
    return weights;
  },
};

/** @param {string} key @param {any} value */
const revive = (key, value) => (value?.float32 === undefined ? value : new Float32Array(new Uint8Array(Buffer.from(value.float32, "base64")).buffer));
/** @param {string} key @param {any} value */
const pack = (key, value) => (value instanceof Float32Array ? { float32: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") } : value);

const { name, given } = JSON.parse(readFileSync(0, "utf8"), revive);
process.stdout.write(JSON.stringify(answers[name](given), pack));
