// Answers of a release in a page: what psd.query computes, over the arrays that the page has.
//
// The page has one number each per node for estimates, slopes, variances and unevenness. A model
// holds them; the files beside this one walk down the tree, clip boxes and polygons to cells, and
// add up. Terms are those of psd/query and of psd/estimation.
"use strict";

const psdEngine = (() => {
  const { unpack } = psdArrays;
  const { EvenAxis, SteppedAxis } = psdAxes;
  const {
    boundsOf, clipRings, commonArea, contains, crosses, meets, ringsArea, ringsOf, turnRings,
  } = psdShapes;
  const { CovariateDensity, SmoothDensity } = psdDensities;
  const { BoxRegion, findUnion, NodeRegion, overlap, PolygonRegion } = psdAreas;
  const { Walk } = psdWalk;
  const { joint, judge, single } = psdIntervals;
  const { answer: valueAnswer } = psdValues;
  const {
    finite, fromLeaves, fromParents, nodeVariances, publishedNoise, topology,
  } = psdTrees;
  const { Cube, CubeOfLabels } = psdCubes;

  /** Arrays whose names have a prefix, without it. */
  function arraysOf(arrays, prefix) {
    const names = Object.keys(arrays).filter((name) => name.startsWith(prefix));
    return Object.fromEntries(names.map((name) => [name.slice(prefix.length), arrays[name]]));
  }

  class Model {
    /**
     * @param meta numbers and names of a release, from psd/apps/web/map_arrays.py
     * @param arrays its arrays, from unpack
     * @param rings gives the rings of a lowest region, where cells are clipped to regions
     */
    constructor(meta, arrays, rings = null) {
      this.rings = rings;
      this.meta = meta;
      this.arrays = arrays;
      this.axes = meta.axes.map((axis) => (axis.first === undefined
        ? new EvenAxis(axis) : new SteppedAxis(axis)));
      Object.assign(this, topology(arrays.children));
      const { size } = this, side = (at) => arrays.offsets.slice(at * size, (at + 1) * size);
      this.boxes = [0, 1, 2, 3].map((at) => fromParents(this, side(at)));
      this.count = fromLeaves(this, arrays.count);
      this.signed = arrays.signed ? fromLeaves(this, arrays.signed) : this.count;
      this.real = arrays.real ? fromLeaves(this, arrays.real) : this.count;
      // A window of a cube: its nodes have answers, and say nothing of what cuts them.
      if (meta.window) return;
      const { slope, variance, whole } = arrays, { root } = meta;
      this.noise = { slope, variance: finite(variance), root };
      this.published = meta.signed ? this.noise
        : publishedNoise(this, { slope, variance, whole, root }, this.real, meta.empty);
      this.stated = meta.predictsPublished ? this.published : this.noise;
      if (!meta.cube) return;
      const { parts, own } = meta.cube, part = (prefix) => arraysOf(arrays, prefix);
      const ownPlane = own ? new Model(own, part("own.")) : this;
      this.cube = !parts ? new Cube(this, ownPlane)
        : new CubeOfLabels(this, ownPlane, parts.map((each, label) => (
          new Model(each, part(`part${label}.`)))));
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

    /** Weights of each value towards its upper and its lower bound, as models of their own. */
    get values() {
      this.pairs = this.pairs || (this.meta.values || []).map((value, number) => {
        let above = this.arrays;
        const parts = value.parts.map((meta, side) => {
          const own = {};
          for (const name of meta.arrays) {
            own[name] = this.arrays[`${number}${"ab"[side]}.${name}`] || above[name];
          }
          above = { ...above, ...own };
          return new Model(meta, own, this.rings);
        });
        return { ...value, parts };
      });
      return this.pairs;
    }

    /** Means and sums of all values in shapes whose records were answered. */
    valuesIn(shapes, counts, z) {
      return this.values.map((value) => valueAnswer(this.meta, this.meta.noise, value,
        value.parts.map((part) => part.totals(shapes)), counts, z));
    }

    /** Mean and sum of a value in a node. */
    valueAt(number, node, z) {
      const counts = single(this, this.nodeTotals(node), z), value = this.values[number];
      return valueAnswer(this.meta, this.meta.noise, value,
        value.parts.map((part) => part.nodeTotals(node)), counts, z);
    }

    /** Totals of a node, which is whole. */
    nodeTotals(node) {
      if (this.meta.window) {
        const { noise, published = noise, uneven, beyond } = this.arrays;
        return { estimate: this.count[node], signed: this.signed[node], noise: noise[node],
          published: published[node], rounding: 0, uneven: uneven[node],
          beyond: beyond ? beyond[node] : 0 };
      }
      this.ofNodes = this.ofNodes || [this.noise, this.published].map((each) => (
        this.nodeErrors(each)));
      const [noise, published] = this.ofNodes.map((errors) => errors[node] ** 2);
      return { estimate: this.count[node], signed: this.signed[node], noise, published,
        rounding: 0, uneven: 0, edges: 0, beyond: 0 };
    }

    /** Errors from the noise of all nodes: what the parent explains, and their own. */
    nodeErrors(covariance = this.stated) {
      if (this.meta.window) {
        const { noise, published = noise, uneven } = this.arrays;
        const stated = this.meta.predictsPublished ? published : noise;
        return uneven.map((variance, node) => Math.sqrt(stated[node] + variance));
      }
      return nodeVariances(this, covariance).map(Math.sqrt);
    }

    /**
     * Answer to one shape, or the joint answer to several disjoint ones.
     * @param window of a cube, from its `window`; a cube answers one shape
     */
    answer(shapes, z, window = null) {
      if (this.cube) return single(this, this.cube.totals(shapes[0], window), z);
      if (this.meta.window) return single(this, this.nodeTotals(shapes[0].nodes[0]), z);
      const totals = this.totals(shapes);
      return shapes.length === 1 ? single(this, totals, z) : joint(this, totals, z);
    }

    totals(shapes) {
      return new Walk(this, shapes.map((shape) => this.region(shape))).totals();
    }

    /** Region of a shape that is asked again in other windows. */
    known(shape) {
      this.regions = this.regions || new WeakMap();
      if (!this.regions.has(shape)) this.regions.set(shape, this.region(shape));
      return this.regions.get(shape);
    }

    region(shape) {
      if (shape.box) return new BoxRegion(this, shape.box);
      if (shape.nodes) return new NodeRegion(this, shape.nodes);
      const rings = shape.rings || turnRings(shape.polygons);
      const union = this.rings && findUnion(this, rings);
      return union ? new NodeRegion(this, union) : new PolygonRegion(this, rings);
    }

    /** Share of a shape inside the bounds that lies in no region. */
    uncounted(shape, bounds) {
      const [w, s, e, n] = shape.box || [];
      const whole = shape.box ? [[w, s, e, s, e, n, w, n]] : turnRings(shape.polygons);
      const rings = clipRings(whole, bounds), area = ringsArea(rings);
      if (!(area > 0)) return 0;
      const box = boundsOf(rings);
      let counted = 0;
      this.meta.regions.lowest.forEach((_, index) => {
        const region = this.rings(index), [west, south, east, north] = boundsOf(region);
        if (west < box[2] && east > box[0] && south < box[3] && north > box[1]) {
          counted += commonArea(rings, region);
        }
      });
      return 1 - counted / area;
    }

    /** Whether a leaf lies partly outside its region. */
    isClipped(node) {
      return this.rings !== null && this.arrays.clipped[node] === 1;
    }

    /** Deviation of the records beside a line across a leaf; see psd/query/lines.py. */
    cutDeviation(axis, node, share, cutsColumns) {
      const points = Math.max(this.count[node], 0), { arrays, meta, size } = this;
      const deviation = arrays.lines[axis * size + node] * (points > 0 ? points : 1);
      const result = deviation * Math.sqrt(share * (1 - share));
      if (!meta.hasColumns || !cutsColumns) return result;
      const width = this.boxes[axis + 2][node] - this.boxes[axis][node], place = (share * width) % 1;
      return Math.hypot(result, (points / width) * Math.min(place, 1 - place));
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

  return { Model, contains, crosses, judge, meets, overlap, ringsOf, turnRings, unpack };
})();

if (typeof module !== "undefined") module.exports = psdEngine;
