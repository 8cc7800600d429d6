// @ts-check
/*
 * The plane of gradients on 'Security': drags points and draws answers. Places are percentages of
 * the picture's width and height, so no formula lives here.
 */

import { grouped } from "../digits.js";
import { aggregate } from "./aggregate.js";
import { constantsOf, demonstrate, find, findAll, mountEach } from "./demonstration.js";

/** @typedef {{left: number, top: number}} Place */
/** @typedef {Place & {x: number, y: number, outside: boolean}} Point */

/** @type {Record<string, [number, number]>} Percent of the picture by arrow key. */
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1.6], ArrowDown: [0, 1.6] };
const FASTER = 5;
const NUMBERS = ["bad_count", "radius", "iterations"];

/** @param {HTMLElement} root */
function mount(root) {
  const plane = find(root, "[data-plane]");
  const controls = /** @type {HTMLFormElement} */ (find(root, "form"));
  const marks = /** @type {SVGElement[]} */ (findAll(root, "[data-bad]"));
  let attack = controls.dataset.attack ?? "";
  /** @type {(Place | Point)[]} */
  let bad = marks.map((mark) => ({ left: Number(mark.dataset.left), top: Number(mark.dataset.top) }));
  let chosen = 0;
  let dragging = false;
  let grabbed = false; // so that the click that ends a drag does not count as a click on the plane

  const field = (/** @type {string} */ name) =>
    /** @type {HTMLInputElement} */ (controls.elements.namedItem(name));
  const constants = constantsOf(root);
  const request = demonstrate(root, "aggregate", (/** @type {import("./aggregate.js").State} */ state) => aggregate(state, constants), () => ({
    attack,
    bad,
    bad_count: field("bad_count").value,
    radius: field("radius").value,
    iterations: field("iterations").value,
    start: field("start").value,
  }), draw);

  /** @param {any} value @param {boolean} newest */
  function draw(value, newest) {
    if (newest) drawBad(value);
    for (const [name, result] of Object.entries(value.results)) {
      put(find(root, `[data-result="${name}"]`), result);
      find(root, `[data-result="${name}"]`).toggleAttribute("data-outside", result.outside);
    }
    drawPath(value.results["centered-clip"].path);
    const circle = find(root, "[data-circle]");
    circle.setAttribute("r", `${value.reach}%`);
    circle.setAttribute("cx", `${value.results["centered-clip"].left}%`);
    circle.setAttribute("cy", `${value.results["centered-clip"].top}%`);
  }

  /** @param {any} value */
  function drawBad(value) {
    bad = value.bad;
    showAttack(value.attack);
    marks.forEach((mark, index) => {
      const point = value.bad[index];
      mark.toggleAttribute("data-off", !point);
      if (!point) return;
      put(mark, point);
      mark.toggleAttribute("data-outside", point.outside);
      mark.setAttribute("aria-label", `Bad volunteer ${index + 1} sends ${texts(point)}`);
    });
  }

  /** @param {Point[]} path */
  function drawPath(path) {
    findAll(root, "[data-leg]").forEach((leg, index) => {
      const [from, to] = [path[index], path[index + 1]];
      leg.toggleAttribute("data-off", !to);
      if (!to) return;
      for (const [name, value] of [["x1", from.left], ["y1", from.top], ["x2", to.left], ["y2", to.top]]) {
        leg.setAttribute(String(name), `${value}%`);
      }
    });
  }

  /** @param {string} name */
  function showAttack(name) {
    attack = name;
    for (const button of findAll(controls, "[data-attack]")) {
      button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.attack === name));
    }
  }

  /** @param {Place} place */
  function moveChosen(place) {
    if (!bad[chosen]) return;
    const kept = { left: within(place.left), top: within(place.top) };
    bad = bad.map((point, index) => (index === chosen ? kept : point));
    put(marks[chosen], kept);
    marks[chosen].removeAttribute("data-outside");
    showAttack("hand");
    request();
  }

  /** @param {MouseEvent} event */
  function placeOf(event) {
    const box = plane.getBoundingClientRect();
    return {
      left: (100 * (event.clientX - box.left)) / box.width,
      top: (100 * (event.clientY - box.top)) / box.height,
    };
  }

  plane.addEventListener("pointerdown", (event) => {
    const mark = /** @type {Element} */ (event.target).closest("[data-bad]");
    grabbed = mark !== null && event.button === 0;
    if (!grabbed) return;
    choose(marks.indexOf(/** @type {SVGElement} */ (mark)));
    event.preventDefault();
    marks[chosen].focus();
    dragging = true;
    plane.setPointerCapture(event.pointerId);
  });
  plane.addEventListener("pointermove", (event) => {
    if (dragging) moveChosen(placeOf(event));
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    plane.addEventListener(kind, () => {
      if (!dragging) return;
      dragging = false;
      request();
    });
  }
  // A tap beside the points moves the chosen one there, so no one has to drag.
  plane.addEventListener("click", (event) => {
    if (!grabbed) moveChosen(placeOf(event));
    grabbed = false;
  });

  /** @param {number} index */
  function choose(index) {
    chosen = index;
    marks.forEach((mark, number) => mark.toggleAttribute("data-chosen", number === index));
  }
  marks.forEach((mark, index) => {
    mark.setAttribute("tabindex", "0");
    mark.addEventListener("focus", () => choose(index));
    mark.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step) return;
      event.preventDefault();
      const { left, top } = bad[index];
      const times = event.shiftKey ? FASTER : 1;
      moveChosen({ left: left + times * step[0], top: top + times * step[1] });
    });
  });
  choose(0);

  controls.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("[data-attack]");
    if (!(button instanceof HTMLElement)) return;
    showAttack(button.dataset.attack ?? "");
    if (field("bad_count").value === "0") field("bad_count").value = "2";
    showValues();
    request();
  });
  controls.addEventListener("input", () => {
    showValues();
    request();
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  function showValues() {
    for (const name of NUMBERS) find(controls, `output[for="${field(name).id}"]`).textContent = field(name).value;
  }
}

/** @param {Element} mark @param {Place} place */
function put(mark, place) {
  mark.setAttribute("x", `${place.left}%`);
  mark.setAttribute("y", `${place.top}%`);
}

/** @param {number} percent */
const within = (percent) => Math.min(Math.max(percent, 1), 99);

/** @param {Point} point */
const texts = ({ x, y }) => [x, y].map((number) => grouped(number, 1)).join(", ");

mountEach("#plane", mount);
