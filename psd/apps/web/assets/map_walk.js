// The walk down the tree that adds up a query; see psd/query/traversal.py and totals.py.
"use strict";

const psdWalk = (() => {
  class Walk {
    constructor(model, regions) {
      this.model = model;
      this.regions = regions;
      this.estimates = new Float64Array(regions.length);
      this.signed = this.leafVariance = this.moved = this.rounding = this.beyond = 0;
      this.inward = new Float64Array(model.depth + 1);
      this.apart = 0;
      this.lines = new Map();
    }

    totals() {
      const { model } = this;
      const active = this.regions.map((region, number) => [number, null]);
      const [slope, rest, otherSlope, otherRest] = this.visit(0, active, 0);
      let lineVariance = 0;
      for (const value of this.lines.values()) lineVariance += value ** 2;
      const along = this.inward.reduce((sum, value) => sum + value ** 2, -this.apart);
      return {
        estimates: this.estimates,
        estimate: this.estimates.reduce((sum, value) => sum + value, 0),
        signed: this.signed,
        noise: slope ** 2 * model.noise.root + rest,
        published: otherSlope ** 2 * model.published.root + otherRest,
        rounding: this.rounding,
        uneven: this.leafVariance + this.moved ** 2 + lineVariance,
        edges: model.meta.edgeFactor * Math.max(along, 0),
        beyond: this.beyond,
      };
    }

    /** Slope and remainder of the variance of a node, by the noise and by published counts. */
    visit(node, active, base) {
      const { model } = this, cut = [];
      let weight = base;
      for (const [number, above] of active) {
        const part = this.regions[number].cover(node, above);
        if (part.area >= 1) {
          weight += 1;
          this.add(number, node, 1);
        } else if (part.area > 0) cut.push([number, part]);
      }
      if (!cut.length || !model.children[node]) {
        if (cut.length) weight = this.cutLeaf(node, cut, weight);
        if (model.arrays.real) this.rounding += weight ** 2 * roundingVariance(model.real[node]);
        return [weight, 0, weight, 0];
      }
      return this.open(node, cut, weight);
    }

    open(node, cut, weight) {
      const { noise, published, firstChild, children } = this.model;
      const first = firstChild[node], last = first + children[node], below = [];
      let mean = 0, other = 0, rest = 0, otherRest = 0;
      for (let child = first; child < last; child++) {
        const part = this.visit(child, cut, weight);
        below.push(part);
        mean += noise.slope[child] * part[0];
        other += published.slope[child] * part[2];
      }
      for (let child = first; child < last; child++) {
        const part = below[child - first];
        rest += part[1] + noise.variance[child] * (part[0] - mean) ** 2;
        otherRest += part[3] + published.variance[child] * (part[2] - other) ** 2;
        const square = noise.variance[child] * Math.max(part[0] - mean, 0) ** 2;
        this.inward[this.model.level[child]] += Math.sqrt(square);
        this.apart += square;
      }
      return [mean, rest, other, otherRest];
    }

    add(number, node, share) {
      this.estimates[number] += share * this.model.count[node];
      this.signed += share * this.model.signed[node];
    }

    cutLeaf(node, cut, weight) {
      const { model } = this, points = Math.max(model.count[node], 0);
      let total = weight, inside = 0;
      for (const [number, part] of cut) {
        const { share, area } = this.regions[number].share(node, part);
        this.add(number, node, share);
        total += share;
        if (!(area > 0 && area < 1)) continue;
        inside += share;
        this.moved += model.meta.shiftShare * points * (share - area);
        const ceiling = points + model.meta.ceilingErrors * Math.sqrt(model.arrays.whole[node]);
        this.beyond += ceiling * (1 - share);
        const rounding = model.meta.shareRounding;
        const divides = share > rounding && share < 1 - rounding;
        if (model.arrays.lines && divides) this.regions[number].addLines(node, this.lines);
      }
      const spread = model.meta.lump + model.arrays.spread[node] * points;
      this.leafVariance += Math.max(points * inside * (1 - inside) * spread, 0);
      return total;
    }
  }

  function roundingVariance(value) {
    const part = value - Math.floor(value);
    return part * (1 - part);
  }

  return { Walk };
})();
