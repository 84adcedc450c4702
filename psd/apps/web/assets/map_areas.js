// Areas that a query asks for: boxes, polygons, and whole nodes of named regions.
"use strict";

const psdAreas = (() => {
  const { clamp } = psdAxes;
  const {
    boundsOf, clipRings, commonArea, contains, coveredShare, ringsArea, turnRings,
  } = psdShapes;
  const TINY = 1e-300;
  const SETTLED = 1e-9; // shares of clipped cells this close to 0 or 1 are taken as these
  const SLIVER = 1e-9; // share of the smaller shape that two disjoint shapes may have in common

  class BoxRegion {
    constructor(model, box) {
      this.model = model;
      this.box = box.map((edge, side) => model.axes[side % 2].toLine(edge));
    }

    cover(node) {
      const { boxes } = this.model, low = [], high = [];
      for (const axis of [0, 1]) {
        const start = boxes[axis][node], size = boxes[axis + 2][node] - start;
        low.push(Math.max(this.box[axis] - start, 0) / size);
        const end = Math.min(this.box[axis + 2] - start, size) / size;
        high.push(Math.max(end, low[axis]));
      }
      return { area: (high[0] - low[0]) * (high[1] - low[1]), low, high };
    }

    share(node, part) {
      const { density } = this.model;
      if (this.model.isClipped(node)) return this.clippedShare(node, part);
      const share = density ? density.part(node, part.low, part.high) : part.area;
      return { share, area: part.area };
    }

    clippedShare(node, part) {
      const piece = this.model.piece(node), total = ringsArea(piece);
      const cell = this.model.cell(node), { axes } = this.model;
      const inside = [0, 1, 2, 3].map((side) => axes[side % 2].edge((side < 2 ? Math.max
        : Math.min)(cell[side], this.box[side])));
      const area = total > 0 ? settle(ringsArea(clipRings(piece, inside)) / total) : part.area;
      return { share: area, area };
    }

    /** Deviations of the sides, for errors of records along lines. */
    addLines(node, lines) {
      const { boxes } = this.model, low = [], high = [];
      for (const axis of [0, 1]) {
        const start = boxes[axis][node], width = boxes[axis + 2][node] - start;
        low.push(clamp((this.box[axis] - start) / width, 0, 1));
        high.push(clamp((this.box[axis + 2] - start) / width, 0, 1));
      }
      for (let side = 0; side < 4; side++) {
        const axis = side % 2, cut = side < 2 ? low[axis] : high[axis];
        const along = high[1 - axis] - low[1 - axis];
        const value = this.model.cutDeviation(axis, node, cut, true) * along;
        addLine(lines, lineKey(this.model.meta, axis, this.box[side]), side < 2 ? -value : value);
      }
    }
  }

  class PolygonRegion {
    constructor(model, rings) {
      this.model = model;
      this.rings = rings;
      this.sides = model.arrays.lines ? rings.flatMap((ring) => findSides(model, ring)) : [];
    }

    cover(node, above) {
      const bounds = this.model.bounds(node);
      const rings = clipRings(above ? above.rings : this.rings, bounds);
      return { area: coveredShare(rings, bounds), rings };
    }

    share(node, part) {
      const { meta, boxes, density } = this.model;
      if (this.model.isClipped(node)) {
        const piece = this.model.piece(node), total = Math.max(ringsArea(piece), TINY);
        const area = settle(piece.length ? commonArea(piece, part.rings) / total : 0);
        return { share: area, area };
      }
      const values = (boxes[2][node] - boxes[0][node]) * (boxes[3][node] - boxes[1][node]);
      if (meta.resolution && values <= meta.maxValues) return this.valueShare(node, values);
      const share = density ? density.polygon(node, part.rings) : part.area;
      return { share, area: part.area };
    }

    /** Share of the values of a leaf; see psd/query/polygon_values.py. */
    valueShare(node, values) {
      const [west, south, east, north] = this.model.cell(node), { axes, density } = this.model;
      const width = east - west, height = north - south;
      let inside = 0, share = 0;
      for (let row = 0; row < height; row++) {
        const y = axes[1].probe(south + row, true);
        for (let column = 0; column < width; column++) {
          if (!contains(this.rings, axes[0].probe(west + column, false), y)) continue;
          inside += 1;
          if (!density) continue;
          const low = [column / width, row / height];
          share += density.part(node, low, [(column + 1) / width, (row + 1) / height]);
        }
      }
      const area = inside / values;
      return { share: density && area > 0 && area < 1 ? Math.min(share, 1) : area, area };
    }

    /** Deviations of the sides; see psd/query/polygon_sides.py. */
    addLines(node, lines) {
      const { boxes } = this.model;
      const cell = [0, 1, 2, 3].map((side) => boxes[side][node]);
      for (const { ends, keys, weights, straight } of this.sides) {
        const part = partInside(ends, cell);
        if (!part) continue;
        for (const axis of [0, 1]) {
          const share = (part[axis] + part[2 + axis]) / 2;
          const along = Math.abs(part[3 - axis] - part[1 - axis]);
          const value = this.model.cutDeviation(axis, node, share, straight[axis]) * along;
          addLine(lines, keys[axis], weights[axis] * value);
        }
      }
    }
  }

  const lineKey = (meta, axis, at) => `${axis} ${at.toFixed(meta.linePlaces)}`;

  function addLine(lines, key, value) {
    lines.set(key, (lines.get(key) || 0) + value);
  }

  /** Ends of the part of a side inside a cell, as shares of the cell; null if there is none. */
  function partInside(ends, cell) {
    const start = [], change = [];
    let low = 0, high = 1;
    for (const axis of [0, 1]) {
      const width = cell[axis + 2] - cell[axis];
      start.push((ends[axis] - cell[axis]) / width);
      change.push((ends[axis + 2] - ends[axis]) / width);
      if (change[axis] === 0) {
        if (start[axis] < 0 || start[axis] > 1) return null;
        continue;
      }
      const first = -start[axis] / change[axis], last = (1 - start[axis]) / change[axis];
      low = Math.max(low, Math.min(first, last));
      high = Math.min(high, Math.max(first, last));
    }
    if (high <= low) return null;
    return [low, high].flatMap((at) => [0, 1].map((a) => clamp(start[a] + at * change[a], 0, 1)));
  }

  /** Sides of a turned ring in lattice units. */
  function findSides(model, ring) {
    const { axes } = model, sides = [];
    const corner = (i) => [0, 1].map((axis) => axes[axis].toLine(ring[(i + axis) % ring.length]));
    for (let i = 0; i < ring.length; i += 2) {
      sides.push({ ends: [...corner(i), ...corner(i + 2)], keys: [], weights: [], straight: [] });
    }
    for (const axis of [0, 1]) findLines(model, sides, axis);
    return sides;
  }

  /** Lines that sides of a ring err together with, for shifts along one axis. */
  function findLines(model, sides, axis) {
    const runs = [], { sideSlant, slantingShift } = model.meta;
    for (const side of sides) {
      const { ends } = side, across = Math.abs(ends[axis + 2] - ends[axis]);
      const along = ends[3 - axis] - ends[1 - axis], length = Math.abs(along);
      const straight = length > 0 && across <= sideSlant * length;
      const kind = straight ? 1 : length > sideSlant * across ? 2 : 0;
      const sign = axis ? -Math.sign(along) : Math.sign(along);
      const last = runs[runs.length - 1];
      const run = last && last.kind === kind && last.sign === sign ? last
        : { kind, sign, sides: [], length: 0, sum: 0 };
      if (run !== last) runs.push(run);
      run.sides.push(side);
      run.length += length;
      run.sum += (length * (ends[axis] + ends[axis + 2])) / 2;
    }
    const first = runs[0], last = runs[runs.length - 1];
    if (runs.length > 1 && first.kind === last.kind && first.sign === last.sign) {
      first.sides.push(...last.sides);
      first.length += last.length;
      first.sum += last.sum;
      runs.pop();
    }
    const weights = [0, 1, slantingShift];
    for (const run of runs) {
      const key = run.kind === 1 ? lineKey(model.meta, axis, run.sum / run.length) : run;
      for (const side of run.sides) {
        side.keys[axis] = key;
        side.weights[axis] = run.sign * weights[run.kind];
        side.straight[axis] = run.kind === 1;
      }
    }
  }

  const settle = (share) => {
    if (share < SETTLED) return 0;
    return share > 1 - SETTLED ? 1 : share;
  };


  /** Nodes of the regions whose union rings are; null if they cut one. See region_unions.py. */
  function findUnion(model, rings) {
    const { lowest, tolerance } = model.meta.regions, members = [];
    const box = boundsOf(rings), limit = tolerance * ringsArea(rings);
    let differs = 0;
    for (let index = 0; index < lowest.length; index++) {
      const region = model.rings(index), [w, s, e, n] = boundsOf(region);
      if (w > box[2] || e < box[0] || s > box[3] || n < box[1]) continue;
      const area = ringsArea(region), covered = commonArea(region, rings);
      const wrong = Math.min(Math.max(covered, 0), Math.max(area - covered, 0));
      if (wrong > tolerance * area) return null;
      differs += wrong;
      if (covered > area / 2) members.push(lowest[index]);
    }
    return differs <= limit ? members : null;
  }

  /** Whole nodes, none inside another. */
  class NodeRegion {
    constructor(model, nodes) {
      this.whole = new Set(nodes);
      this.opened = new Set();
      for (const node of nodes) {
        for (let up = model.parent[node]; up >= 0; up = model.parent[up]) this.opened.add(up);
      }
    }

    cover(node) {
      if (this.whole.has(node)) return { area: 1 };
      return { area: this.opened.has(node) ? 0.5 : 0 };
    }

    share() {
      return { share: 0, area: 0 };
    }

    addLines() {}
  }

  /** Whether two shapes have area in common, up to a sliver. */
  function overlap(model, first, second) {
    const [a, b] = [first, second].map((shape) => outlineOf(model, shape));
    return commonArea(a, b) > SLIVER * Math.min(ringsArea(a), ringsArea(b));
  }

  /** Turned rings of a shape. */
  function outlineOf(model, shape) {
    if (shape.rings) return shape.rings;
    if (shape.polygons) return turnRings(shape.polygons);
    const lines = new BoxRegion(model, shape.box).box;
    const [west, south, east, north] = lines.map((line, i) => model.axes[i % 2].edge(line));
    return [[west, south, east, south, east, north, west, north]];
  }

  return { BoxRegion, findUnion, NodeRegion, overlap, PolygonRegion };
})();
