// Answers of a release in a page: what psd.query computes, over the arrays that the page has.
//
// The page has one number each per node for estimates, slopes, variances and unevenness. This file
// walks down the tree, clips boxes and polygons to cells, and adds up. Terms are those of
// psd/query/traversal.py, totals.py, lines.py and intervals.py, and of psd/estimation.
"use strict";

const psdEngine = (() => {
  const ROUNDING = 1e-12; // fractions this close to 0 or 1 are rounding errors
  const SNAP = 1e-6; // an edge this close to a lattice line, in cells, is that line
  const DIAGONAL = (Math.sqrt(5) - 1) / 2;
  const TINY = 1e-300;
  const PARTS = 4;
  const SETTLED = 1e-9; // shares of clipped cells this close to 0 or 1 are taken as these
  const SLIVER = 1e-9; // share of the smaller shape that two disjoint shapes may have in common
  const AROUND = [[0, 0], [1, 0], [0, 1], [1, 1]];

  // --- arrays -----------------------------------------------------------------------------------

  const KINDS = {
    f8: Float64Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array,
  };

  /** Decode base64 of compressed bytes into named arrays; bytes of numbers are in planes. */
  async function unpack(text, directory) {
    const letters = atob(text);
    const packed = new Uint8Array(letters.length);
    for (let i = 0; i < packed.length; i++) packed[i] = letters.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const arrays = {};
    let start = 0;
    for (const [name, kind, length] of directory) {
      const array = new KINDS[kind](length);
      const width = array.BYTES_PER_ELEMENT;
      const whole = new Uint8Array(array.buffer);
      for (let plane = 0; plane < width; plane++) {
        for (let i = 0, at = plane; i < length; i++, at += width) whole[at] = bytes[start++];
      }
      arrays[name] = array;
    }
    return arrays;
  }

  // --- lattice axes -----------------------------------------------------------------------------

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

  // --- polygons ---------------------------------------------------------------------------------

  /** Rings are flat arrays x, y, x, y, ...; the sum of signed areas counts holes as negative. */
  function ringArea(ring, x0, y0) {
    let twice = 0;
    const size = ring.length;
    let ax = ring[size - 2] - x0, ay = ring[size - 1] - y0;
    for (let i = 0; i < size; i += 2) {
      const bx = ring[i] - x0, by = ring[i + 1] - y0;
      twice += ax * by - ay * bx;
      ax = bx;
      ay = by;
    }
    return twice / 2;
  }

  /** Part of a ring on one side of a line along an axis; sign is 1 for what is above the line. */
  function clipSide(ring, axis, at, sign) {
    const other = 1 - axis, result = [], size = ring.length;
    let before = size - 2;
    for (let i = 0; i < size; i += 2) {
      const a = sign * (ring[before + axis] - at), b = sign * (ring[i + axis] - at);
      if (a < 0 !== b < 0) {
        const c = ring[before + other], d = ring[i + other];
        const cross = c + (d - c) * (a / (a - b));
        if (axis === 0) result.push(at, cross);
        else result.push(cross, at);
      }
      if (b >= 0) result.push(ring[i], ring[i + 1]);
      before = i;
    }
    return result;
  }

  /** Parts of rings inside a box; rings that lie inside are the same objects. */
  function clipRings(rings, [west, south, east, north]) {
    const result = [];
    for (const ring of rings) {
      let part = ring, left = false, right = false, below = false, above = false;
      for (let i = 0; i < ring.length; i += 2) {
        const x = ring[i], y = ring[i + 1];
        if (x < west) left = true;
        if (x > east) right = true;
        if (y < south) below = true;
        if (y > north) above = true;
      }
      if (left) part = clipSide(part, 0, west, 1);
      if (right) part = clipSide(part, 0, east, -1);
      if (below) part = clipSide(part, 1, south, 1);
      if (above) part = clipSide(part, 1, north, -1);
      if (part.length >= 6) result.push(part);
    }
    return result;
  }

  /** Share of a box that clipped rings cover. */
  function coveredShare(rings, [west, south, east, north]) {
    let area = 0;
    for (const ring of rings) area += ringArea(ring, west, south);
    const share = area / ((east - west) * (north - south));
    if (share < ROUNDING) return 0;
    return share > 1 - ROUNDING ? 1 : share;
  }

  /** Rings of polygons, each a list of rings of [x, y] with the outer one first, turned. */
  function turnRings(polygons) {
    return polygons.flatMap((polygon) => polygon.map((points, number) => {
      const flat = [].concat(...points);
      const last = flat.length - 2;
      if (flat[0] === flat[last] && flat[1] === flat[last + 1]) flat.length = last;
      if (ringArea(flat, flat[0], flat[1]) > 0 === (number === 0)) return flat;
      const turned = [];
      for (let i = flat.length - 2; i >= 0; i -= 2) turned.push(flat[i], flat[i + 1]);
      return turned;
    }));
  }

  /** Whether a point is inside, by the number of sides that a ray to the east crosses. */
  function contains(rings, x, y) {
    let inside = false;
    for (const ring of rings) {
      let px = ring[ring.length - 2], py = ring[ring.length - 1];
      for (let i = 0; i < ring.length; i += 2) {
        const qx = ring[i], qy = ring[i + 1];
        if (py > y !== qy > y) {
          const turn = (qx - px) * (y - py) - (x - px) * (qy - py);
          if (turn !== 0 && turn > 0 === qy > py) inside = !inside;
        }
        px = qx;
        py = qy;
      }
    }
    return inside;
  }

  /** Area that two sets of turned rings have in common: sums over pairs of fans of triangles. */
  function commonArea(first, second) {
    const [x0, y0] = first[0];
    let area = 0;
    for (const ring of first) {
      for (const [sign, triangle] of fan(ring, x0, y0)) {
        for (const other of second) {
          let part = other;
          for (let i = 0; i < 3 && part.length; i++) {
            part = clipHalf(part, triangle[i], triangle[(i + 1) % 3]);
          }
          if (part.length >= 6) area += sign * ringArea(part, x0, y0);
        }
      }
    }
    return area;
  }

  /** Triangles from a point to the sides of a ring, turned to the left, with their signs. */
  function* fan(ring, x0, y0) {
    let a = [ring[ring.length - 2], ring[ring.length - 1]];
    for (let i = 0; i < ring.length; i += 2) {
      const b = [ring[i], ring[i + 1]];
      const turn = (a[0] - x0) * (b[1] - y0) - (a[1] - y0) * (b[0] - x0);
      if (turn > 0) yield [1, [[x0, y0], a, b]];
      if (turn < 0) yield [-1, [[x0, y0], b, a]];
      a = b;
    }
  }

  /** Part of a ring to the left of the line from a to b. */
  function clipHalf(ring, a, b) {
    const dx = b[0] - a[0], dy = b[1] - a[1], result = [];
    const side = (i) => dx * (ring[i + 1] - a[1]) - dy * (ring[i] - a[0]);
    let before = ring.length - 2, s = side(before);
    for (let i = 0; i < ring.length; i += 2) {
      const t = side(i);
      if (s < 0 !== t < 0) {
        const share = s / (s - t);
        result.push(ring[before] + (ring[i] - ring[before]) * share,
          ring[before + 1] + (ring[i + 1] - ring[before + 1]) * share);
      }
      if (t >= 0) result.push(ring[i], ring[i + 1]);
      before = i;
      s = t;
    }
    return result;
  }

  // --- densities inside leaves ------------------------------------------------------------------

  class SmoothDensity {
    constructor(model) {
      this.model = model;
      this.side = model.meta.smooth.side;
      this.within = model.meta.smooth.within;
      this.least = this.within ? 0 : model.meta.smooth.rounding * Math.max(model.count[0], 0);
      this.scale = [0, 1].map((axis) => this.side / model.meta.lattice[axis]);
      this.surface = this.sums(1, (leaf, mass) => { mass[0] = this.points(leaf); });
      for (let pass = 1; pass < model.meta.smooth.passes; pass++) {
        this.surface = this.sums(PARTS, (leaf, mass) => {
          const shares = this.shares(leaf), points = this.points(leaf);
          for (let i = 0; i < mass.length; i++) mass[i] = shares[i] * points;
        });
      }
    }

    points(leaf) {
      return Math.max(this.model.count[leaf], 0);
    }

    /** Mass south and west of the raster lines; see _summed_mass in psd/estimation/density.py. */
    sums(parts, fill) {
      const { model, side } = this, row = side + 2;
      const leaves = model.leaves, size = parts * parts;
      const all = new Float64Array(leaves.length * size);
      leaves.forEach((leaf, i) => fill(leaf, all.subarray(i * size, (i + 1) * size)));
      const corners = new Float64Array(row * row), around = new Float64Array(row * row);
      const ends = [new Float64Array(2 * parts), new Float64Array(2 * parts)];
      const touched = new Int32Array(all.length);
      for (const [x, y, sign] of [[0, 0, 1], [1, 0, -1], [0, 1, -1], [1, 1, 1]]) {
        for (const [right, above] of AROUND) {
          let next = 0;
          for (let i = 0; i < leaves.length; i++) {
            this.stripEnds(leaves[i], 0, parts, ends[0]);
            this.stripEnds(leaves[i], 1, parts, ends[1]);
            for (let j = 0; j < parts; j++) {
              const south = ends[1][2 * j], north = ends[1][2 * j + 1];
              const ty = y ? north : south, lineY = Math.min(Math.floor(ty), side);
              const dy = ty - lineY, along = above ? dy : 1 - dy;
              for (let k = 0; k < parts; k++) {
                const west = ends[0][2 * k], east = ends[0][2 * k + 1];
                const slope = all[i * size + j * parts + k] / ((east - west) * (north - south));
                const tx = x ? east : west, lineX = Math.min(Math.floor(tx), side);
                const dx = tx - lineX, across = slope * (right ? dx : 1 - dx);
                const at = (lineY + above) * row + lineX + right;
                around[at] += across * along;
                touched[next++] = at;
              }
            }
          }
          for (const at of touched) {
            corners[at] += sign * around[at];
            around[at] = 0;
          }
        }
      }
      for (let turn = 0; turn < 2; turn++) {
        for (let i = row; i < corners.length; i++) corners[i] += corners[i - row];
        for (let j = 0; j < row; j++) {
          for (let i = j * row + 1; i < (j + 1) * row; i++) corners[i] += corners[i - 1];
        }
      }
      const surface = new Float64Array((side + 1) * (side + 1));
      for (let j = 0; j < side; j++) {
        surface.set(corners.subarray(j * row, j * row + side), (j + 1) * (side + 1) + 1);
      }
      return surface;
    }

    stripEnds(leaf, axis, parts, ends) {
      const low = this.model.boxes[axis][leaf] * this.scale[axis];
      const high = this.model.boxes[axis + 2][leaf] * this.scale[axis];
      for (let i = 0; i < parts; i++) {
        let a = parts === 1 ? low : low + (high - low) * (i / parts);
        let b = parts === 1 ? high : low + (high - low) * ((i + 1) / parts);
        if (b - a < 1) {
          a = Math.min(Math.floor(a), this.side - 1);
          b = a + 1;
        }
        ends[2 * i] = a;
        ends[2 * i + 1] = b;
      }
    }

    at(x, y) {
      const { surface, side } = this;
      const column = Math.min(Math.trunc(x), side - 1), row = Math.min(Math.trunc(y), side - 1);
      const dx = x - column, dy = y - row, index = row * (side + 1) + column;
      const south = surface[index] * (1 - dx) + surface[index + 1] * dx;
      const next = index + side + 1;
      const north = surface[next] * (1 - dx) + surface[next + 1] * dx;
      return south * (1 - dy) + north * dy;
    }

    /** Shares of the parts of a leaf, rows from the south, columns from the west. */
    shares(leaf) {
      const low = [[], []], high = [[], []];
      for (const axis of [0, 1]) {
        const start = this.model.boxes[axis][leaf] * this.scale[axis];
        const width = this.model.boxes[axis + 2][leaf] * this.scale[axis] - start;
        for (let i = 0; i < PARTS; i++) {
          const middle = (i + 0.5) / PARTS;
          low[axis].push(clamp(start + width * (middle - 0.5), 0, this.side));
          high[axis].push(clamp(start + width * (middle + 0.5), 0, this.side));
        }
      }
      const density = new Float64Array(PARTS * PARTS);
      for (let j = 0; j < PARTS; j++) {
        for (let i = 0; i < PARTS; i++) {
          let mass = this.at(high[0][i], high[1][j]) - this.at(low[0][i], high[1][j]);
          mass += this.at(low[0][i], low[1][j]) - this.at(high[0][i], low[1][j]);
          const area = (high[1][j] - low[1][j]) * (high[0][i] - low[0][i]);
          density[j * PARTS + i] = (mass > this.least ? mass : 0) / area;
        }
      }
      // In the order in which numpy adds sixteen numbers.
      const r = density.slice(0, 8).map((value, i) => value + density[i + 8]);
      const total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
      const even = 1 / PARTS ** 2, share = this.model.meta.smooth.even;
      const shares = density.map((value) => {
        const smooth = total > 0 ? value / total : even;
        return (1 - share) * smooth + share * even;
      });
      return this.within ? shares : this.evenInLattice(leaf, shares);
    }

    evenInLattice(leaf, shares) {
      const { boxes } = this.model;
      for (const axis of [0, 1]) {
        if (boxes[axis + 2][leaf] - boxes[axis][leaf] !== 1) continue;
        for (let line = 0; line < PARTS; line++) {
          const at = (i) => (axis === 0 ? line * PARTS + i : i * PARTS + line);
          const mean = (shares[at(0)] + shares[at(1)] + shares[at(2)] + shares[at(3)]) / PARTS;
          for (let i = 0; i < PARTS; i++) shares[at(i)] = mean;
        }
      }
      return shares;
    }

    /** Share of the count of a leaf in a box inside it; corners from 0 to 1 across the leaf. */
    part(leaf, low, high) {
      const overlap = (axis) => [0, 1, 2, 3].map((i) => Math.max(
        Math.min(high[axis] * PARTS, i + 1) - Math.max(low[axis] * PARTS, i), 0));
      const wide = overlap(0), tall = overlap(1), shares = this.shares(leaf);
      let inside = 0;
      for (let j = 0; j < PARTS; j++) {
        for (let i = 0; i < PARTS; i++) inside += shares[j * PARTS + i] * tall[j] * wide[i];
      }
      return Math.min(inside, 1);
    }

    /** Share of the count of a leaf in rings that are clipped to it. */
    polygon(leaf, rings) {
      const { model } = this, shares = this.shares(leaf);
      const line = (axis, i) => {
        const low = model.boxes[axis][leaf], high = model.boxes[axis + 2][leaf];
        return model.axes[axis].edge(low + (high - low) * (i / PARTS));
      };
      let inside = 0;
      for (let j = 0; j < PARTS; j++) {
        const row = [line(0, 0), line(1, j), line(0, PARTS), line(1, j + 1)];
        const inRow = clipRings(rings, row);
        for (let i = 0; i < PARTS && inRow.length; i++) {
          const box = [line(0, i), row[1], line(0, i + 1), row[3]];
          inside += coveredShare(clipRings(inRow, box), box) * shares[j * PARTS + i];
        }
      }
      return inside;
    }
  }

  class CovariateDensity {
    constructor(model) {
      const { raster, rows, columns } = { raster: model.arrays.raster, ...model.meta.raster };
      this.model = model;
      this.size = [columns, rows];
      this.surface = new Float64Array((rows + 1) * (columns + 1));
      for (let j = 0; j < rows; j++) {
        let sum = 0;
        for (let i = 0; i < columns; i++) {
          sum += raster[j * columns + i];
          const at = (j + 1) * (columns + 1) + i + 1;
          this.surface[at] = this.surface[at - columns - 1] + sum;
        }
      }
    }

    toRaster(box) {
      return box.map((line, i) => (line * this.size[i % 2]) / this.model.meta.lattice[i % 2]);
    }

    fromRaster(box) {
      return box.map((line, i) => this.model.axes[i % 2].edge(
        (line * this.model.meta.lattice[i % 2]) / this.size[i % 2]));
    }

    /** Mass of a box in units of raster cells, by up to 3 x 3 blocks. */
    mass(box) {
      const [columns, wide] = blocks(box[0], box[2]), [rows, tall] = blocks(box[1], box[3]);
      const at = (row, column) => this.surface[row * (this.size[0] + 1) + column];
      let mass = 0;
      for (let j = 0; j < 3; j++) {
        for (let i = 0; i < 3; i++) {
          const sum = at(rows[j + 1], columns[i + 1]) - at(rows[j + 1], columns[i])
            - (at(rows[j], columns[i + 1]) - at(rows[j], columns[i]));
          mass += sum * tall[j] * wide[i];
        }
      }
      return mass;
    }

    part(leaf, low, high) {
      const cell = this.model.cell(leaf);
      const inside = [0, 1, 2, 3].map((side) => {
        const axis = side % 2, ends = side < 2 ? low : high;
        return cell[axis] + ends[axis] * (cell[axis + 2] - cell[axis]);
      });
      const even = (high[0] - low[0]) * (high[1] - low[1]);
      return shareOf(this.mass(this.toRaster(inside)), this.mass(this.toRaster(cell)), even);
    }

    polygon(leaf, rings) {
      const box = this.toRaster(this.model.cell(leaf));
      const total = { mass: 0, covered: 0 };
      this.cover(rings, box, total);
      const area = (box[2] - box[0]) * (box[3] - box[1]);
      return shareOf(total.mass, this.mass(box), total.covered / area);
    }

    /** Add up a polygon in a box, which is divided along raster lines where an outline passes. */
    cover(rings, box, total) {
      const bounds = this.fromRaster(box);
      const clipped = clipRings(rings, bounds), share = coveredShare(clipped, bounds);
      if (share === 0) return;
      const lines = [0, 1].map((axis) => {
        const first = Math.floor(box[axis]) + 1, last = Math.ceil(box[axis + 2]) - 1;
        return first <= last ? Math.floor((first + last + 1) / 2) : box[axis];
      });
      if (share === 1 || !(lines[0] > box[0] || lines[1] > box[1])) {
        total.mass += this.mass(box) * share;
        total.covered += (box[2] - box[0]) * (box[3] - box[1]) * share;
        return;
      }
      const ends = [0, 1].map((axis) => [box[axis], lines[axis], box[axis + 2]]);
      for (let i = 0; i < 2; i++) {
        for (let j = 0; j < 2; j++) {
          const part = [ends[0][i], ends[1][j], ends[0][i + 1], ends[1][j + 1]];
          if (part[0] < part[2] && part[1] < part[3]) this.cover(clipped, part, total);
        }
      }
    }
  }

  function blocks(low, high) {
    const first = Math.floor(low), last = Math.ceil(high);
    const second = Math.min(first + 1, last), third = Math.max(last - 1, second);
    return [[first, second, third, last], [Math.min(high, second) - low, 1, high - third]];
  }

  function shareOf(mass, whole, even) {
    return clamp(whole > 0 ? mass / whole : even, 0, 1);
  }

  // --- model ------------------------------------------------------------------------------------

  class Model {
    /**
     * @param meta numbers and names of a release, from psd/web/map_arrays.py
     * @param arrays its arrays, from unpack
     * @param rings gives the rings of a lowest region, where cells are clipped to regions
     */
    constructor(meta, arrays, rings = null) {
      this.rings = rings;
      this.meta = meta;
      this.arrays = arrays;
      this.axes = meta.axes.map((axis) => (axis.first === undefined
        ? new EvenAxis(axis) : new SteppedAxis(axis)));
      this.shape();
      this.count = this.spread(arrays.count);
      this.signed = arrays.signed ? this.spread(arrays.signed) : this.count;
      this.real = arrays.real ? this.spread(arrays.real) : this.count;
      this.noise = { slope: arrays.slope, variance: finite(arrays.variance), root: meta.root };
      this.published = meta.signed ? this.noise : this.publishedNoise();
      this.stated = meta.predictsPublished ? this.published : this.noise;
    }

    get size() {
      return this.children.length;
    }

    /** Topology and boxes: nodes stand level by level, and families together. */
    shape() {
      const { children, offsets } = this.arrays, size = children.length;
      this.children = children;
      this.firstChild = new Int32Array(size);
      this.parent = new Int32Array(size).fill(-1);
      this.level = new Uint8Array(size);
      const boxes = [0, 1, 2, 3].map((side) => offsets.slice(side * size, (side + 1) * size));
      const leaves = [];
      for (let node = 0, next = 1; node < size; node++) {
        this.firstChild[node] = next;
        for (let child = next; child < next + children[node]; child++) {
          this.parent[child] = node;
          this.level[child] = this.level[node] + 1;
          for (const side of boxes) side[child] += side[node];
        }
        next += children[node];
        if (!children[node]) leaves.push(node);
      }
      this.boxes = boxes;
      this.leaves = Int32Array.from(leaves);
      this.depth = this.level[size - 1];
    }

    /** Values of all nodes from those of the leaves, unless there is one for each node. */
    spread(values) {
      if (values.length === this.size) return values;
      const all = new Float64Array(this.size);
      this.leaves.forEach((leaf, i) => { all[leaf] = values[i]; });
      for (let node = this.size - 1; node > 0; node--) all[this.parent[node]] += all[node];
      return all;
    }

    cell(node) {
      return this.boxes.map((side) => side[node]);
    }

    /** Sides of a node in the CRS of the release. */
    bounds(node) {
      return this.boxes.map((side, i) => this.axes[i % 2].edge(side[node]));
    }

    get density() {
      if (this.inside === undefined) {
        const kind = this.meta.density;
        this.inside = null;
        if (kind === "smooth") this.inside = new SmoothDensity(this);
        if (kind === "covariate") this.inside = new CovariateDensity(this);
      }
      return this.inside;
    }

    /** Covariance of the published counts; see psd/estimation/published_covariance.py. */
    publishedNoise() {
      const { slope, variance, whole } = this.arrays, { real, size } = this;
      const own = new Float64Array(size), total = new Float64Array(size);
      const unknown = new Uint8Array(size);
      for (let node = 0; node < size; node++) {
        const infinite = variance[node] === Infinity, up = Math.max(this.parent[node], 0);
        const measured = infinite ? whole[node] : variance[node];
        const part = Math.min(real[node] ** 2 / Math.max(measured, TINY), 1);
        const { empty } = this.meta;
        own[node] = infinite ? 0 : variance[node] * (empty + (1 - empty) * part);
        if (node) total[up] += own[node];
        if (node && infinite) unknown[up] = 1;
      }
      const slopes = new Float64Array(size);
      for (let node = 0; node < size; node++) {
        const sum = node ? total[this.parent[node]] : own[0];
        const kept = node ? unknown[this.parent[node]] : variance[0] === Infinity;
        const keeps = sum <= 0 || (this.meta.remainders && kept);
        slopes[node] = keeps ? slope[node] : own[node] / Math.max(sum, TINY);
      }
      return { slope: slopes, variance: own, root: this.meta.root };
    }

    /** Errors from the noise of all nodes: what the parent explains, and their own. */
    nodeErrors() {
      const { slope, variance, root } = this.stated, result = new Float64Array(this.size);
      const total = new Float64Array(this.size);
      for (let node = 1; node < this.size; node++) total[this.parent[node]] += variance[node];
      result[0] = root;
      for (let node = 1; node < this.size; node++) {
        const up = this.parent[node], beside = Math.max(total[up] - variance[node], 0);
        result[node] = variance[node] * (1 - slope[node]) ** 2
          + slope[node] ** 2 * (beside + result[up]);
      }
      return result.map(Math.sqrt);
    }

    /** Answer to one shape, or the joint answer to several disjoint ones. */
    answer(shapes, z) {
      const regions = shapes.map((shape) => this.region(shape));
      const totals = new Walk(this, regions).totals();
      return regions.length === 1 ? single(this, totals, z) : joint(this, totals, z);
    }

    region(shape) {
      if (shape.box) return new BoxRegion(this, shape.box);
      if (shape.nodes) return new NodeRegion(this, shape.nodes);
      const rings = shape.rings || turnRings(shape.polygons);
      const union = this.rings && findUnion(this, rings);
      return union ? new NodeRegion(this, union) : new PolygonRegion(this, rings);
    }

    /** Whether a leaf lies partly outside its region. */
    isClipped(node) {
      return this.rings !== null && this.arrays.clipped[node] === 1;
    }

    /** The part of a leaf that lies in its region. */
    piece(node) {
      this.pieces = this.pieces || new Map();
      if (!this.pieces.has(node)) {
        const rings = this.rings(this.arrays.region[node]);
        this.pieces.set(node, clipRings(rings, this.bounds(node)));
      }
      return this.pieces.get(node);
    }
  }

  function finite(values) {
    return values.map((value) => (value === Infinity ? 0 : value));
  }

  // --- regions ----------------------------------------------------------------------------------

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
      const { boxes, arrays, size } = this.model, low = [], high = [];
      for (const axis of [0, 1]) {
        const start = boxes[axis][node], width = boxes[axis + 2][node] - start;
        low.push(clamp((this.box[axis] - start) / width, 0, 1));
        high.push(clamp((this.box[axis + 2] - start) / width, 0, 1));
      }
      const points = Math.max(this.model.count[node], 0);
      for (let side = 0; side < 4; side++) {
        const axis = side % 2, cut = side < 2 ? low[axis] : high[axis];
        const along = high[1 - axis] - low[1 - axis];
        const deviation = arrays.lines[axis * size + node] * points;
        const value = deviation * Math.sqrt(cut * (1 - cut)) * along;
        const key = `${axis} ${this.box[side]}`;
        lines.set(key, (lines.get(key) || 0) + (side < 2 ? -value : value));
      }
    }
  }

  class PolygonRegion {
    constructor(model, rings) {
      this.model = model;
      this.rings = rings;
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

    addLines() {}
  }

  const ringsArea = (rings) => rings.reduce(
    (sum, ring) => sum + ringArea(ring, ring[0], ring[1]), 0);

  const settle = (share) => {
    if (share < SETTLED) return 0;
    return share > 1 - SETTLED ? 1 : share;
  };

  const boundsOf = (rings) => rings.reduce(([w, s, e, n], ring) => {
    const box = [w, s, e, n];
    for (let i = 0; i < ring.length; i++) {
      box[i % 2] = Math.min(box[i % 2], ring[i]);
      box[2 + (i % 2)] = Math.max(box[2 + (i % 2)], ring[i]);
    }
    return box;
  }, [Infinity, Infinity, -Infinity, -Infinity]);

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

  // --- walk -------------------------------------------------------------------------------------

  class Walk {
    constructor(model, regions) {
      this.model = model;
      this.regions = regions;
      this.estimates = new Float64Array(regions.length);
      this.signed = this.leafVariance = this.moved = this.rounding = this.beyond = 0;
      this.lines = new Map();
    }

    totals() {
      const { model } = this;
      const active = this.regions.map((region, number) => [number, null]);
      const [slope, rest, otherSlope, otherRest] = this.visit(0, active, 0);
      let lineVariance = 0;
      for (const value of this.lines.values()) lineVariance += value ** 2;
      const shift = (model.meta.shiftError * this.moved) ** 2;
      return {
        estimates: this.estimates,
        estimate: this.estimates.reduce((sum, value) => sum + value, 0),
        signed: this.signed,
        noise: slope ** 2 * model.noise.root + rest,
        published: otherSlope ** 2 * model.published.root + otherRest,
        rounding: this.rounding,
        leafVariance: this.leafVariance,
        uneven: this.leafVariance + shift + lineVariance,
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
        if (model.arrays.lines) this.regions[number].addLines(node, this.lines);
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

  // --- answers ----------------------------------------------------------------------------------

  /** Answer to one region with its interval; see psd/query/intervals.py. */
  function single(model, totals, z) {
    const { meta } = model, estimate = Math.max(totals.estimate, 0);
    const noise = totals.noise + totals.rounding, published = totals.published + totals.rounding;
    const perturbation = Math.sqrt(meta.predictsPublished ? published : noise);
    const taken = Math.max(noise - published, 0);
    const moved = (estimate - Math.max(totals.signed, 0)) ** 2 - taken;
    const bias = clamp(moved, 0, meta.maxBias * noise);
    const unknown = noise > 0 || totals.uneven > 0 || estimate > 0;
    const rounding = unknown ? meta.roundingVariance : TINY;
    const variance = published + bias + totals.uneven + rounding;
    const square = Math.max(z ** 2 - 1, 0);
    let tail = square / meta.skewDivisor, { restored } = meta;
    const skewed = meta.inference === 1 ? totals.leafVariance : totals.uneven;
    if (meta.inference > 1) {
      tail *= Math.min(square / (meta.tailSquare - 1), 1);
      restored *= square / (square + 1);
    }
    const skew = (tail * skewed ** 2) / (Math.max(estimate, 1) * variance);
    const lower = Math.max(estimate - z * Math.sqrt(variance), 0);
    let upper = unknown ? estimate + z * Math.sqrt(variance + restored * taken) + skew : 0;
    if (meta.inference > 1) {
      const ofNoise = z * Math.sqrt(published + bias + rounding + restored * taken);
      upper = Math.min(upper, estimate + totals.beyond + ofNoise);
    }
    return judged(meta, estimate, perturbation, Math.sqrt(totals.uneven), lower, upper);
  }

  /** Total of several disjoint regions; see psd/query/joint.py. */
  function joint(model, totals, z) {
    const { meta } = model;
    const estimate = totals.estimates.reduce((sum, value) => sum + Math.max(value, 0), 0);
    const perturbation = Math.sqrt(meta.predictsPublished ? totals.published : totals.noise);
    const uneven = Math.sqrt(totals.uneven), error = Math.hypot(perturbation, uneven);
    const lower = Math.max(estimate - z * error, 0);
    return judged(meta, estimate, perturbation, uneven, lower, estimate + z * error);
  }

  function judged(meta, estimate, perturbation, nonuniformity, lower, upper) {
    const error = Math.hypot(perturbation, nonuniformity);
    const quality = judge(meta, estimate, error, lower);
    return { estimate, perturbation, nonuniformity, error, lower, upper, quality };
  }

  /** Class of an estimate: 0 good, 1 use with care, 2 poor. */
  function judge(meta, estimate, error, lower) {
    const relative = estimate > 0 ? error / estimate : Infinity;
    if (!(relative <= meta.reliable && lower > 0)) return 2;
    return relative <= meta.good ? 0 : 1;
  }

  /** Rings of a region, from arrays that hold those of all regions. */
  function ringsOf({ begin, ends, x, y }, index) {
    const result = [];
    for (let ring = begin[index]; ring < begin[index + 1]; ring++) {
      const flat = [];
      for (let i = ring ? ends[ring - 1] : 0; i < ends[ring]; i++) flat.push(x[i], y[i]);
      result.push(flat);
    }
    return result;
  }

  /** Whether two shapes have area in common, up to a sliver. */
  function overlap(model, first, second) {
    const [a, b] = [first, second].map((shape) => rings(model, shape));
    const area = (each) => each.reduce((sum, ring) => sum + ringArea(ring, ring[0], ring[1]), 0);
    return commonArea(a, b) > SLIVER * Math.min(area(a), area(b));
  }

  function rings(model, shape) {
    if (shape.rings) return shape.rings;
    if (shape.polygons) return turnRings(shape.polygons);
    const lines = new BoxRegion(model, shape.box).box;
    const [west, south, east, north] = lines.map((line, i) => model.axes[i % 2].edge(line));
    return [[west, south, east, south, east, north, west, north]];
  }

  /** Whether polygons have area inside a box. */
  function meets(polygons, box) {
    return coveredShare(clipRings(turnRings(polygons), box), box) > 0;
  }

  /** Whether sides of a ring of [x, y] cross or touch each other, other than neighbours. */
  function crosses(points) {
    const size = points.length, side = (i) => [points[i], points[(i + 1) % size]];
    const turn = (a, b, c) => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
    for (let i = 0; i < size; i++) {
      for (let j = i + 2; j < size; j++) {
        if (i === 0 && j === size - 1) continue;
        const [a, b] = side(i), [c, d] = side(j);
        if (turn(a, b, c) !== turn(a, b, d) && turn(c, d, a) !== turn(c, d, b)) return true;
      }
    }
    return Math.abs(ringArea(points.flat(), ...points[0])) === 0;
  }

  return { Model, contains, crosses, judge, meets, overlap, ringsOf, turnRings, unpack };
})();

if (typeof module !== "undefined") module.exports = psdEngine;
