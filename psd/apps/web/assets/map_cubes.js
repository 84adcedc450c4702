// Answers of a cube: areas in windows of time and categories; see psd/query/cubes.py.
"use strict";

const psdCubes = (() => {
  const { finite, fromLeaves, fromParents, nodeVariances, publishedNoise, topology } = psdTrees;
  const { leastSquares } = psdSquares;
  const TINY = 1e-300;

  /** The joint layer, over the boxes of a model of the plane; records are uneven in leaves of it. */
  class Cube {
    constructor(plane, ownPlane) {
      const { arrays, meta } = plane, own = (name) => arrays[`joint.${name}`];
      this.ownPlane = ownPlane;
      this.plane = plane;
      this.meta = meta.cube;
      Object.assign(this, topology(own("children")));
      const noise = leastSquares(this, own("noisy"), own("measured"), this.meta.peers);
      this.signed = noise.signed;
      this.count = own("count") ? fromLeaves(this, own("count")) : this.signed;
      this.node = own("node"); // of the plane, with the box of each node
      this.spans = this.meta.sizes.map((_, axis) => (
        ["first", "stop"].map((end) => fromParents(this, own(`${end}${axis}`)))));
      this.noise = { ...noise, variance: finite(noise.variance) };
      this.whole = nodeVariances(this, this.noise);
      this.published = this.meta.signed ? this.noise
        : publishedNoise(this, { ...noise, whole: this.whole }, this.count, meta.empty);
      this.times = own("times"); // counts of slices of all places, if there is a layer of them
      this.profiles = this.meta.sizes.map((_, axis) => own(`profile${axis}`));
      this.phi = own("phi");
      this.mass = plane.count.map((value) => Math.max(value, 0));
      this.massVariance = nodeVariances(plane, plane.stated);
      this.ground = own("ground") ? fromLeaves(plane, own("ground"))
        : groundOf(plane, own("outside"));
      this.pairOf = new Int32Array(plane.size).fill(-1);
      this.depths = Array.from({ length: this.depth + 1 }, () => new Float64Array(8));
    }

    /** A window from which cells of each axis are in it, arrays of 0 and 1. */
    window(inside) {
      const { sizes, labels } = this.meta, before = [], widths = [];
      let part = 1, row = 0;
      inside.forEach((cells, axis) => {
        const sums = new Float64Array(sizes[axis] + 1);
        let records = 0, total = 0;
        for (let cell = 0; cell < sizes[axis]; cell++) {
          sums[cell + 1] = sums[cell] + cells[cell];
          records += cells[cell] * this.profiles[axis][cell];
          total += this.profiles[axis][cell];
        }
        before.push(sums);
        widths.push(sums[sizes[axis]]);
        part *= records / Math.max(total, 1);
        // Overdispersions are of widths that are powers of two, and of each category.
        if (axis === sizes.length - 1 && labels) return;
        row = row * (Math.round(Math.log2(sizes[axis])) + 1) + Math.round(Math.log2(widths[axis]));
      });
      const levels = (this.plane.depth + 1) * (labels || 1);
      const share = new Float64Array(this.size).fill(1);
      this.spans.forEach(([first, stop], axis) => {
        const sums = before[axis];
        for (let node = 0; node < this.size; node++) {
          share[node] *= (sums[stop[node]] - sums[first[node]]) / (stop[node] - first[node]);
        }
      });
      const window = { isOne: widths.every((width) => width === 1), share, part,
        isWhole: labels !== null && widths.every((width, axis) => width === sizes[axis]),
        phi: this.phi.subarray(row * levels, (row + 1) * levels) };
      const isOfTime = widths.every((width, axis) => axis === 0 || width === sizes[axis]);
      return { ...window, told: this.told(window, isOfTime ? inside[0] : null) };
    }

    /** What the layer of times tells of a window with some slices of all categories. */
    told(window, inside) {
      if (!this.times || !inside) {
        return { weight: 0, gap: 0, signedGap: 0, noise: 0, uneven: 0, left: 1 };
      }
      const walk = this.walk(window, { node: [] }), slope = this.visit(walk, 0);
      let records = 0, slices = 0;
      inside.forEach((isInside, slice) => {
        records += isInside * this.times[slice];
        slices += isInside;
      });
      const noise = slope ** 2 * this.noise.root + walk.rest + this.meta.times * slices;
      const weight = walk.common / Math.max(noise + walk.inTime + walk.common ** 2, TINY);
      return { weight, gap: records - (window.isOne ? walk.count : walk.signed),
        signedGap: records - walk.signed, noise, uneven: walk.inTime,
        left: 1 - weight * walk.common };
    }

    /** Sums of a walk over the joint nodes, all 0; pairs: of nodes of the plane, see `meet`. */
    walk(window, pairs) {
      return { window, pairs, count: 0, signed: 0, beyond: 0, inTime: 0, common: 0, rest: 0,
        slope: 0, otherRest: 0, inCut: new Float64Array(pairs.node.length), ofLabels: new Map() };
    }

    /** Totals of a shape in a window. */
    totals(shape, window) {
      const region = this.plane.known(shape);
      // What a region meets of the plane is the same in all windows.
      region.met = region.met || this.meet(region);
      region.ofPlane = region.ofPlane || totalsOfPlane(this, shape);
      const { met: pairs, ofPlane } = region;
      if (window.isWhole) return ofPlane; // records of all categories in all time
      const walk = this.walk(window, pairs);
      pairs.node.forEach((node, pair) => { this.pairOf[node] = pair; });
      const slope = this.visit(walk, 0);
      for (const node of pairs.node) this.pairOf[node] = -1;

      let moved = 0;
      this.placeSpread(walk).forEach((spread, pair) => {
        moved += spread * pairs.share[pair] * (1 - pairs.share[pair]);
      });
      // What all places have in common in time is corrected by the layer of times.
      const { told } = window, byTimes = walk.common * told.weight;
      walk.count += byTimes * told.gap;
      walk.signed += byTimes * told.signedGap;
      const inTime = walk.inTime + (walk.common * told.left) ** 2 + byTimes ** 2 * told.uneven;
      const more = this.placeVariance(walk) + byTimes ** 2 * told.noise;
      const noise = slope ** 2 * this.noise.root + walk.rest + more;
      const other = walk.slope ** 2 * this.published.root + walk.otherRest + more;

      // In the leaves of the plane, in proportion to its own answer.
      const scale = Math.max(walk.signed, 0) / Math.max(ofPlane.estimate, 1);
      return {
        estimate: window.isOne ? walk.count : walk.signed, signed: walk.signed, noise,
        published: window.isOne ? other : noise, rounding: 0,
        uneven: inTime + moved + scale ** 2 * ofPlane.uneven,
        edges: 0, beyond: walk.beyond, common: walk.common * told.left,
      };
    }

    /** Nodes of the plane that a region meets or cuts, with their parts in it. */
    meet(region) {
      const { plane } = this, { children, firstChild, level } = plane;
      const node = [0], up = [-1], first = [], share = [], area = [], covers = [];
      for (let pair = 0; pair < node.length; pair++) {
        const at = node[pair], part = region.cover(at, pair ? covers[up[pair]] : null);
        covers.push(part);
        first.push(-1);
        share.push(Math.min(part.area, 1));
        area.push(Math.min(part.area, 1));
        if (!(part.area > 0 && part.area < 1)) continue;
        if (!children[at]) {
          const cut = region.share(at, part);
          share[pair] = cut.share;
          area[pair] = cut.area;
          continue;
        }
        first[pair] = node.length;
        for (let child = firstChild[at]; child < firstChild[at] + children[at]; child++) {
          node.push(child);
          up.push(pair);
        }
      }
      const { mass, massVariance, ground } = this;
      for (let pair = node.length - 1; pair >= 0; pair--) {
        if (first[pair] >= 0) {
          const at = node[pair];
          let inside = 0, open = 0;
          for (let child = first[pair]; child < first[pair] + children[at]; child++) {
            inside += mass[node[child]] * share[child];
            open += ground[node[child]] * area[child];
          }
          area[pair] = open / Math.max(ground[at], 1);
          // As far as the plane says nothing, records are taken to lie evenly.
          const known = mass[at] > 0 ? inside / mass[at] : area[pair];
          const weight = mass[at] ** 2 / Math.max(mass[at] ** 2 + massVariance[at], TINY);
          share[pair] = weight * known + (1 - weight) * area[pair];
        }
        share[pair] = Math.min(Math.max(share[pair], 0), 1);
      }
      return { node, up, first, share, area, level: node.map((at) => level[at]) };
    }

    /** Slope of the variance of a joint node; what else it has is added to the walk. */
    visit(walk, node) {
      const { window, pairs } = walk, { children, firstChild } = this;
      const pair = this.pairOf[this.node[node]], time = window.share[node];
      const share = pair < 0 ? time : pairs.share[pair] * time;
      const area = pair < 0 ? time : pairs.area[pair] * time;
      if (!(area > 0 && area < 1 && children[node])) {
        walk.slope = share;
        walk.rest = walk.otherRest = 0;
        if (area > 0) {
          walk.count += share * this.count[node];
          walk.signed += share * this.signed[node];
          if (area < 1) this.cutLeaf(walk, node, pair, share, time);
        }
        return share;
      }
      const first = firstChild[node], size = children[node], { noise, published } = this;
      const slopes = this.depths[this.level[node]];
      let mean = 0, other = 0, rest = 0, otherRest = 0;
      for (let i = 0; i < size; i++) {
        slopes[i] = this.visit(walk, first + i);
        slopes[4 + i] = walk.slope;
        rest += walk.rest;
        otherRest += walk.otherRest;
        mean += noise.slope[first + i] * slopes[i];
        other += published.slope[first + i] * slopes[4 + i];
      }
      for (let i = 0; i < size; i++) {
        rest += noise.variance[first + i] * (slopes[i] - mean) ** 2;
        otherRest += published.variance[first + i] * (slopes[4 + i] - other) ** 2;
      }
      walk.slope = other;
      walk.rest = rest;
      walk.otherRest = otherRest;
      return mean;
    }

    /** A joint leaf that is cut, in space or in time. */
    cutLeaf(walk, node, pair, share, time) {
      const { meta } = this.plane, records = Math.max(this.count[node], 0);
      walk.beyond += (records + meta.ceilingErrors * Math.sqrt(this.whole[node])) * (1 - share);
      const isOne = this.spans.every(([first, stop]) => stop[node] - first[node] === 1);
      const [phi, common] = isOne ? [0, 0]
        : [this.meta.spread[this.level[node]], this.meta.common[this.level[node]]];
      const ofSpace = share / (time > 0 ? time : 1);
      const variance = records * (this.meta.lump + phi * records);
      walk.inTime += variance * time * (1 - time) * ofSpace ** 2;
      walk.common += Math.sqrt(common * time * (1 - time)) * records * ofSpace;
      if (pair < 0) return;
      walk.inCut[pair] += records * time;
      const { labels } = this.meta;
      if (labels === null) return;
      // Records of each category, the middle one of a node that has several.
      const [first, stop] = this.spans[this.spans.length - 1];
      const key = pair * labels + Math.floor((first[node] + stop[node]) / 2);
      walk.ofLabels.set(key, (walk.ofLabels.get(key) || 0) + records * time);
    }

    /** Variance of the places of records in boxes, over s (1 - s) of a part s. */
    placeSpread({ pairs, window, inCut, ofLabels }) {
      const { share, up, level, node } = pairs, size = inCut.length, { labels } = this.meta;
      const alone = new Float64Array(size), below = new Float64Array(size);
      let total = 0, inner = 0;
      for (const [key, records] of ofLabels) {
        const pair = Math.floor(key / labels);
        const part = Math.min(window.part, inCut[pair] / Math.max(this.mass[node[pair]], TINY));
        const phi = window.phi[level[pair] * labels + (key % labels)] * (1 - part) ** 2;
        alone[pair] += phi * records ** 2;
      }
      for (let pair = size - 1; pair >= 0; pair--) {
        if (labels === null) {
          alone[pair] = window.phi[level[pair]] * (1 - window.part) ** 2 * inCut[pair] ** 2;
        }
        const variance = alone[pair] * (share[pair] * (1 - share[pair]));
        total += variance;
        inner = Math.sqrt(variance) + Math.sqrt(below[pair]);
        if (pair) below[up[pair]] += inner ** 2;
      }
      const factor = total > 0 ? inner ** 2 / Math.max(total, TINY) : 1;
      return inCut.map((records, pair) => this.meta.lump * records + alone[pair] * factor);
    }

    /** Variance by the noise of the plane of where records lie in the leaves that are cut. */
    placeVariance({ pairs, inCut }) {
      const { node, up, first, share } = pairs, { mass, massVariance } = this;
      const size = node.length, { slope, variance, root } = this.plane.stated;
      const inside = new Float64Array(size), outside = new Float64Array(size);
      const slopes = new Float64Array(size), rest = new Float64Array(size);
      for (let pair = 0; pair < size; pair++) {
        const above = up[pair], at = node[pair];
        const near = pair ? inside[above] : 0, far = pair ? outside[above] : 0;
        slopes[pair] = first[pair] >= 0 ? 0 : share[pair] * near - far;
        const density = (inCut[pair] * mass[at])
          / Math.max(mass[at] ** 2 + massVariance[at], TINY);
        inside[pair] = near + density;
        outside[pair] = far + density * share[pair];
      }
      for (let pair = size - 1; pair >= 0; pair--) {
        if (first[pair] < 0) continue;
        const last = first[pair] + this.plane.children[node[pair]];
        let mean = 0;
        for (let child = first[pair]; child < last; child++) {
          mean += slope[node[child]] * slopes[child];
        }
        for (let child = first[pair]; child < last; child++) {
          rest[pair] += variance[node[child]] * (slopes[child] - mean) ** 2 + rest[child];
        }
        slopes[pair] += mean;
      }
      return slopes[0] ** 2 * root + rest[0];
    }

    /**
     * Answers to the boxes of all nodes of the plane, without errors; see psd/estimation/cube.py.
     * Of counts that may be negative nearly the answers.
     */
    counts(window) {
      if (window.isWhole) return this.plane.count;
      const { share, told, isOne } = window, values = isOne ? this.count : this.signed;
      const gap = told.weight * (isOne ? told.gap : told.signedGap);
      return this.ofCells((leaf) => {
        const common = this.meta.common[this.level[leaf]] * share[leaf] * (1 - share[leaf]);
        return values[leaf] * share[leaf]
          + gap * Math.sqrt(common) * Math.max(this.count[leaf], 0);
      });
    }

    /** Records of the joint leaves by node of the plane. */
    ofCells(records) {
      const { plane, mass, massVariance, ground } = this, { size, parent } = plane;
      const byMass = new Float64Array(size), byArea = new Float64Array(size);
      for (const leaf of this.leaves) byMass[this.node[leaf]] += records(leaf);
      for (let node = 1; node < size; node++) {
        const up = parent[node];
        const weight = mass[up] ** 2 / Math.max(mass[up] ** 2 + massVariance[up], TINY);
        byMass[node] += (byMass[up] * weight * mass[node]) / Math.max(mass[up], TINY);
        byArea[node] = byArea[up] + (byMass[up] * (1 - weight)) / Math.max(ground[up], 1);
      }
      return fromLeaves(plane, Float64Array.from(plane.leaves, (leaf) => (
        byMass[leaf] + byArea[leaf] * ground[leaf])));
    }
  }

  /** A cube of each category, over one plane: its answers are summed. */
  class CubeOfLabels {
    constructor(plane, ownPlane, parts) {
      this.plane = plane;
      this.ownPlane = ownPlane;
      this.parts = parts;
    }

    /** A window from which slices and categories are in it, arrays of 0 and 1. */
    window(inside) {
      const [times, labels] = inside, chosen = [];
      const isWhole = inside.every((cells) => cells.every(Boolean));
      labels.forEach((isChosen, label) => { if (isChosen) chosen.push(label); });
      const ofLabels = isWhole ? [] : chosen.map((label) => {
        const model = this.parts[label], window = model.cube.window([times]);
        window.isOne = window.isOne && chosen.length === 1;
        return { model, window };
      });
      return { isWhole, ofLabels };
    }

    totals(shape, { isWhole, ofLabels }) {
      if (isWhole) return totalsOfPlane(this, shape);
      const found = ofLabels.map(({ model, window }) => model.cube.totals(shape, window));
      const sums = Object.fromEntries(Object.keys(found[0]).map((name) => (
        [name, found.reduce((sum, totals) => sum + totals[name], 0)])));
      // What places have in common in time categories have too: these deviations add up.
      const alone = found.reduce((sum, { common }) => sum + common ** 2, 0);
      return { ...sums, uneven: sums.uneven + sums.common ** 2 - alone };
    }

    counts({ isWhole, ofLabels }) {
      if (isWhole) return this.plane.count;
      const counts = new Float64Array(this.plane.size);
      for (const { model, window } of ofLabels) {
        model.cube.counts(window).forEach((count, node) => { counts[node] += count; });
      }
      return counts;
    }
  }

  /** Totals of a shape in the plane alone, to which a node of another tree is a box. */
  function totalsOfPlane({ plane, ownPlane }, shape) {
    const isOther = plane !== ownPlane && shape.nodes;
    return ownPlane.totals([isOther ? { box: plane.bounds(shape.nodes[0]) } : shape]);
  }

  /** Area of the nodes of the plane where records can lie. */
  function groundOf(plane, outside) {
    const [west, south, east, north] = plane.boxes;
    const areas = Float64Array.from(plane.leaves, (leaf) => (outside && outside[leaf] ? 0
      : (east[leaf] - west[leaf]) * (north[leaf] - south[leaf])));
    return fromLeaves(plane, areas);
  }

  return { Cube, CubeOfLabels };
})();
