// @ts-check
/* The three volunteers on 'How it works': sets their speeds and draws the segments from Python. */

import { pace } from "./pace.js";
import { constantsOf, demonstrate, find, findAll, mountEach } from "./demonstration.js";

const SVG = "http://www.w3.org/2000/svg";

/** @param {HTMLElement} root */
function mount(root) {
  const controls = /** @type {HTMLFormElement} */ (find(root, "form"));
  const speeds = /** @type {HTMLInputElement[]} */ (findAll(controls, "input[type=range]"));
  const constants = constantsOf(root);
  const request = demonstrate(root, "pace", (/** @type {{speeds: string[]}} */ state) => pace(state, constants), () => ({ speeds: speeds.map((speed) => speed.value) }), draw);

  /** @param {any} value */
  function draw(value) {
    for (const [name, timeline] of Object.entries(value.timelines)) {
      const picture = find(root, `[data-timeline="${name}"]`);
      findAll(picture, "[data-lane]").forEach((lane, index) =>
        lane.replaceChildren(...timeline.lanes[index].map(segment)));
      find(picture, "[data-steps]").replaceChildren(...timeline.steps.map(mark));
    }
    speeds.forEach((speed, index) =>
      speed.setAttribute("aria-valuetext", value.figures[`speed.${index}`]));
  }

  controls.addEventListener("input", request);
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("[data-speeds]");
    if (!(button instanceof HTMLElement)) return;
    const chosen = (button.dataset.speeds ?? "").split(" ");
    speeds.forEach((speed, index) => (speed.value = chosen[index]));
    request();
  });
}

/** @param {{activity: string, left: number, width: number}} part */
function segment({ activity, left, width }) {
  const rectangle = document.createElementNS(SVG, "rect");
  rectangle.setAttribute("class", `race__${activity}`);
  rectangle.setAttribute("x", `${left}%`);
  rectangle.setAttribute("width", `${width}%`);
  rectangle.setAttribute("height", "100%");
  return rectangle;
}

/** @param {number} percent */
function mark(percent) {
  const line = document.createElementNS(SVG, "line");
  for (const name of ["x1", "x2"]) line.setAttribute(name, `${percent}%`);
  line.setAttribute("y2", "100%");
  return line;
}

mountEach("#race", mount);
