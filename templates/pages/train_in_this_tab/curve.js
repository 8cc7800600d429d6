// @ts-check
/* The curve of the loss, drawn into the page's own plot. */

const LIMITS = { highest: 5, width: 400, height: 200 }; // as templates/pieces/tab.html.j2 draws it
const MOST = 400; // points

export class Curve {
  /** @type {number[]} */
  #losses = [];

  /** @param {SVGElement} plot @param {number} steps */
  constructor(plot, steps) {
    this.line = /** @type {SVGPolylineElement} */ (plot.querySelector("[data-line]"));
    this.steps = steps;
    this.line.setAttribute("points", "");
  }

  /** @param {number} loss */
  add(loss) {
    this.#losses.push(loss);
  }

  /** A mean of each few steps, so that chance in single batches does not hide the fall. */
  draw() {
    const each = Math.max(1, Math.ceil(this.steps / MOST));
    const points = [];
    for (let start = 0; start < this.#losses.length; start += each) {
      const some = this.#losses.slice(start, start + each);
      const mean = some.reduce((sum, loss) => sum + loss, 0) / some.length;
      const x = (LIMITS.width * (start + some.length / 2)) / this.steps;
      points.push(`${x.toFixed(1)},${(LIMITS.height * (1 - Math.min(1, mean / LIMITS.highest))).toFixed(1)}`);
    }
    this.line.setAttribute("points", points.join(" "));
  }
}
