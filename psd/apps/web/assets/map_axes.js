// Axes of the lattice: from lines to edges in the CRS of the release, and back.
"use strict";

const psdAxes = (() => {
  const SNAP = 1e-6; // an edge this close to a lattice line, in cells, is that line
  const DIAGONAL = (Math.sqrt(5) - 1) / 2;

  /** Round half to even, as numpy does. */
  function rint(value) {
    const below = Math.floor(value), part = value - below;
    if (part !== 0.5) return Math.round(value);
    return below % 2 === 0 ? below : below + 1;
  }

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  class EvenAxis {
    constructor(axis) {
      Object.assign(this, axis);
      this.step = (this.high - this.low) / this.cells;
    }

    edge(line) {
      if (line === this.cells) return this.high;
      return line === 0 ? this.low : this.low + line * this.step;
    }

    toLine(edge) {
      const inside = clamp(edge, this.low, this.high) - this.low;
      const line = inside * (this.cells / (this.high - this.low));
      const nearest = rint(line);
      const onLine = Math.abs(line - nearest) < SNAP || this.edge(nearest) === edge;
      return clamp(onLine ? nearest : line, 0, this.cells);
    }
  }

  class SteppedAxis {
    constructor(axis) {
      Object.assign(this, axis);
      const reach = Math.max(Math.abs(this.low), Math.abs(this.high));
      const ulp = 2 ** (Math.floor(Math.log2(reach)) - 52);
      this.aside = Math.max(SNAP * (this.numerator / this.denominator), 2 * ulp);
    }

    line(line) {
      if (line === this.cells) return this.high;
      if (line === 0) return this.low;
      const halves = line * 2 + (2 * this.first - 1);
      return (halves * this.numerator) / (2 * this.denominator);
    }

    edge(line) {
      const below = Math.floor(line), edge = this.line(below);
      if (below === line) return edge;
      return edge + (line - below) * (this.line(Math.min(below + 1, this.cells)) - edge);
    }

    value(step) {
      return (step * this.numerator) / this.denominator;
    }

    toLine(edge) {
      if (edge >= this.high) return this.cells;
      const inside = clamp(edge, this.low, this.high);
      const steps = (inside * this.denominator) / this.numerator;
      const nearest = rint(steps);
      let above = Math.ceil(steps);
      if (this.value(above - 1) >= inside) above -= 1;
      if (this.value(above) < inside) above += 1;
      const onValue = Math.abs(steps - nearest) < SNAP || this.value(nearest) === inside;
      return clamp((onValue ? nearest : above) - this.first, 0, this.cells);
    }

    probe(cell, vertical) {
      const value = this.value(cell + this.first);
      const aside = this.aside * (vertical ? DIAGONAL : 1);
      return value + aside > this.high ? value - aside : value + aside;
    }
  }

  return { clamp, EvenAxis, SteppedAxis };
})();
