// Densities inside leaves, as in psd/estimation/density.py: smooth, or of a covariate.
"use strict";

const psdDensities = (() => {
  const { clamp } = psdAxes;
  const { clipRings, coveredShare } = psdShapes;
  const PARTS = 4;

  /** Lines of the raster between which a surface bends nowhere, as in psd/estimation/density.py. */
  class RasterMesh {
    /** From which lines are used along each axis. */
    constructor(used) {
      this.lines = used.map((each) => Float64Array.from(each.keys()).filter((line) => each[line]));
      this.before = this.lines.map((lines) => {
        const before = new Int32Array(lines[lines.length - 1] + 1);
        for (let i = 1; i < lines.length - 1; i++) before.fill(i, lines[i]);
        return before;
      });
    }

    /** Index of the line before a position, and its share of the way to the next one. */
    place(axis, position) {
      const lines = this.lines[axis], line = this.before[axis][Math.trunc(position)];
      return { line, share: (position - lines[line]) / (lines[line + 1] - lines[line]) };
    }
  }

  // All sums are in the order of psd/estimation/density.py, and so the same to the last bit.
  class SmoothDensity {
    constructor(model) {
      this.model = model;
      this.side = model.meta.smooth.side;
      this.least = model.meta.smooth.rounding * Math.max(model.count[0], 0);
      this.scale = [0, 1].map((axis) => this.side / model.meta.lattice[axis]);
      this.leaves = model.leaves.filter((leaf) => model.count[leaf] > 0);
      this.sum(1, () => [1]);
      for (let pass = 1; pass < model.meta.smooth.passes; pass++) {
        this.sum(PARTS, (leaf) => this.shares(leaf));
      }
    }

    /** Mass south and west of the lines of a mesh; see _summed_mass in psd/estimation/density.py. */
    sum(parts, sharesOf) {
      const mesh = this.meshOf(parts), [x, y] = mesh.lines;
      const columns = x.length, corners = new Float64Array(columns * y.length);
      for (const leaf of this.leaves) {
        const shares = sharesOf(leaf), points = this.model.count[leaf];
        const across = this.ramps(mesh, leaf, 0, parts), along = this.ramps(mesh, leaf, 1, parts);
        for (let j = 0; j < parts; j++) {
          for (const tall of along[j]) {
            for (let i = 0; i < parts; i++) {
              const weight = shares[j * parts + i] * points * tall.slope;
              for (const wide of across[i]) {
                corners[tall.line * columns + wide.line] += weight * wide.slope;
              }
            }
          }
        }
      }
      addUp(corners, columns);
      const surface = new Float64Array(corners.length);
      for (let j = 1; j < y.length; j++) {
        for (let i = 1; i < columns; i++) {
          const slope = corners[(j - 1) * columns + i - 1];
          surface[j * columns + i] = slope * (x[i] - x[i - 1]) * (y[j] - y[j - 1]);
        }
      }
      addUp(surface, columns);
      this.mesh = mesh;
      this.surface = surface;
    }

    /** Lines beside which strips of the leaves begin and end. */
    meshOf(parts) {
      return new RasterMesh([0, 1].map((axis) => {
        const used = new Uint8Array(this.side + 1);
        used[0] = used[this.side] = 1;
        for (const leaf of this.leaves) {
          for (const ends of this.stripEnds(leaf, axis, parts)) {
            for (const end of ends) used[Math.floor(end)] = used[Math.ceil(end)] = 1;
          }
        }
        return used;
      }));
    }

    /** Lines where the ramps of each strip of a leaf begin, and their slopes; see _ramps. */
    ramps(mesh, leaf, axis, parts) {
      return this.stripEnds(leaf, axis, parts).map(([low, high]) => {
        const slope = 1 / (high - low), first = [], second = [];
        for (const [end, rise] of [[low, slope], [high, -slope]]) {
          if (end >= this.side) continue; // a ramp that begins on the last line rises nowhere
          const { line, share } = mesh.place(axis, end);
          first.push({ line, slope: rise * (1 - share) });
          if (share > 0) second.push({ line: line + 1, slope: rise * share });
        }
        return [...first, ...second];
      });
    }

    /** Low and high ends of the strips of a leaf; strips thinner than a raster cell are widened. */
    stripEnds(leaf, axis, parts) {
      const low = this.model.boxes[axis][leaf] * this.scale[axis];
      const high = this.model.boxes[axis + 2][leaf] * this.scale[axis];
      const strips = [];
      for (let i = 0; i < parts; i++) {
        let a = parts === 1 ? low : low + (high - low) * (i / parts);
        let b = parts === 1 ? high : low + (high - low) * ((i + 1) / parts);
        if (b - a < 1) {
          a = Math.min(Math.floor(a), this.side - 1);
          b = a + 1;
        }
        strips.push([a, b]);
      }
      return strips;
    }

    /** Mass south and west of a place in the mesh. */
    at(x, y) {
      const { surface } = this, columns = this.mesh.lines[0].length;
      const index = y.line * columns + x.line, next = index + columns;
      const south = surface[index] * (1 - x.share) + surface[index + 1] * x.share;
      const north = surface[next] * (1 - x.share) + surface[next + 1] * x.share;
      return south * (1 - y.share) + north * y.share;
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
      const place = (ends) => ends.map(
        (of, axis) => of.map((position) => this.mesh.place(axis, position)));
      const [west, south] = place(low), [east, north] = place(high);
      const density = new Float64Array(PARTS * PARTS);
      for (let j = 0; j < PARTS; j++) {
        for (let i = 0; i < PARTS; i++) {
          let mass = this.at(east[i], north[j]) - this.at(west[i], north[j]);
          mass += this.at(west[i], south[j]) - this.at(east[i], south[j]);
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
      return this.evenInLattice(leaf, shares);
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

  /** Add up rows of numbers from the south, and then each row from the west. */
  function addUp(values, columns) {
    for (let i = columns; i < values.length; i++) values[i] += values[i - columns];
    for (let i = 1; i < values.length; i++) {
      if (i % columns) values[i] += values[i - 1];
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

  return { CovariateDensity, SmoothDensity };
})();
