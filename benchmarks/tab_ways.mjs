/* Processor time of the tab's matrix products in three ways, and of a whole gradient in two: see tab_ways.py. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { Learner } from "#assets/tab/learner.js";
import { Lesson } from "#assets/tab/lesson.js";
import { Arithmetic, matrix } from "#assets/tab/matrix.js";
import { chances } from "#assets/drawing/chance.js";
import { newWeights } from "#assets/tab/parameters.js";

const [lessonPath, library, rounds] = process.argv.slice(2);
const lesson = new Lesson(new Uint8Array(readFileSync(lessonPath)).buffer);
const { model, micro_batch: batch, layer_scale: scale } = lesson.about;
const rows = batch * (model.text_length + model.image_side ** 2);
const [width, inner] = [model.hidden_size, model.heads * model.head_size];
const expanded = model.feed_forward_multiplier * width;
const shapes = [[width, 3 * inner], [inner, width], [width, 2 * expanded], [expanded, width]]; // a layer's

/**
 * Milliseconds of processor time, which others' work does not lengthen: the median of the rounds.
 * @param {() => void} work
 */
function milliseconds(work) {
  const times = Array.from({ length: Number(rounds) }, () => {
    const began = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1000;
  });
  return times.sort((a, b) => a - b)[times.length >> 1];
}

/** A layer's products in ours. @param {boolean} plain */
function products(plain) {
  const numbers = shapes.reduce((sum, [from, to]) => sum + rows * (from + to) + from * to, 0);
  const arithmetic = new Arithmetic(2 * numbers, plain);
  const given = shapes.map(([from, to]) => [
    matrix(arithmetic.array(rows * to), rows, to),
    matrix(arithmetic.array(rows * from).fill(0.5), rows, from),
    matrix(arithmetic.array(from * to).fill(0.1), from, to),
  ]);
  return milliseconds(() => given.forEach(([c, a, b]) => arithmetic.add(c, a, b)));
}

/** A layer's products in TensorFlow.js, on its WebAssembly backend. */
async function libraryProducts() {
  const fetched = createRequire(path.join(library, "package.json"));
  const [core, backend] = ["@tensorflow/tfjs-core", "@tensorflow/tfjs-backend-wasm"]; // no dependency of ours
  const tf = fetched(core);
  const wasm = fetched(backend);
  wasm.setWasmPaths(path.join(path.dirname(fetched.resolve(backend)), "/"));
  await tf.setBackend("wasm");
  await tf.ready();
  const given = shapes.map(([from, to]) => [tf.fill([rows, from], 0.5), tf.fill([from, to], 0.1)]);
  return milliseconds(() => given.forEach(([a, b]) => tf.tidy(() => void tf.matMul(a, b).dataSync())));
}

/** Forward and backward of a micro-batch. @param {boolean} plain */
function gradient(plain) {
  const learner = new Learner(model, batch, plain);
  learner.weights.set(newWeights(learner.tensors, scale, chances(1, 0)));
  const examples = lesson.batch(batch, chances(1, 1));
  return milliseconds(() => learner.learn(examples));
}

process.stdout.write(JSON.stringify({
  "a layer's products, typed arrays": products(true),
  "a layer's products, WebAssembly SIMD": products(false),
  "a layer's products, TensorFlow.js on WebAssembly": await libraryProducts(),
  "a gradient, typed arrays": gradient(true),
  "a gradient, WebAssembly SIMD": gradient(false),
}));
