// The map of a release: cells or regions in classes, answers to drawn and chosen areas.
"use strict";

(async () => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("psd-data").textContent);
  const z = data.z;
  const SIZE = 0.25; // longer side of the release in units of the world of the map
  const LIGHT = data.colours;
  const DARK = ["#2a1a4a", "#3b3a7d", "#2f6690", "#26918c", "#44bb70", "#a9d94a", "#fde725"];
  const QUALITY = ["#2c7bb6", "#fdae61", "#bdbdbd", "#e3e6ea"];
  const ALPHA = [1, 0.66, 0.3, 1]; // by quality
  const UNKNOWN = 3; // quality of a cell whose errors are not computed yet
  const state = {
    // A link may name the language, as in map.html#ko.
    language: (location.hash.slice(1) || navigator.language).startsWith("ko") ? "ko" : "en",
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    show: "density", layer: data.groups.length ? 0 : -1, level: 0, slice: 0,
    span: null, category: -1, // of a cube: first and last slice, and number of the label
    mode: null, vertices: [], shapes: [], chosen: new Set(), hover: null,
  };

  // --- words and numbers --------------------------------------------------------------------------

  const word = (key, ...values) => values.reduce(
    (text, value, i) => text.replaceAll(`{${i}}`, value), psdWords[state.language][key]);
  const number = (value, digits = 3) => new Intl.NumberFormat(state.language,
    Math.abs(value) >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits },
  ).format(value);
  const percent = (share) => new Intl.NumberFormat(state.language,
    { style: "percent", maximumSignificantDigits: 3 }).format(share);
  const between = (low, high) => `${number(low)} – ${number(high)}`;
  /** A mean, with digits by the width of its bounds. */
  const meanText = ({ lower, upper }, value) => new Intl.NumberFormat(state.language, {
    maximumFractionDigits: Math.min(Math.max(4 - Math.ceil(Math.log10(upper - lower)), 0), 12),
  }).format(value);
  const counted = () => word(data.counted);

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // --- models -----------------------------------------------------------------------------------

  const outlines = await (data.shapes.directory
    ? psdEngine.unpack(byId("psd-shapes").textContent, data.shapes.directory) : {});

  /** Rings of a region in the CRS of the release, outer ones turned left; of a group, or exact. */
  function regionRings(group, index) {
    const [begin, ends, x, y] = ["begin", "ends", "x", "y"].map((name) => outlines[name + group]);
    return psdEngine.ringsOf({ begin, ends, x, y }, index);
  }

  const lowest = new Map();

  /** Exact rings of a lowest region, to which cells are clipped. */
  function lowestRings(index) {
    if (!lowest.has(index)) lowest.set(index, regionRings("", index));
    return lowest.get(index);
  }

  const models = [];

  async function model(slice = state.slice) {
    if (!models[slice]) {
      const text = byId(`psd-slice-${slice}`).textContent;
      const { directory, meta } = data.slices[slice];
      const made = new psdEngine.Model(meta, await psdEngine.unpack(text, directory),
        outlines.begin ? lowestRings : null);
      made.errors = made.nodeErrors();
      models[slice] = made;
    }
    return models[slice];
  }

  let current = await model(0);

  const regionShapes = new Map();

  function regionShape(group, index) {
    const { nodes } = data.groups[group], key = `${group} ${index}`;
    if (!regionShapes.has(key)) {
      regionShapes.set(key, nodes ? { nodes: [nodes[index]] }
        : { rings: regionRings(group, index) });
    }
    return regionShapes.get(key);
  }

  // --- windows of a cube ------------------------------------------------------------------------

  const { cube } = data, names = cube && cube.names;
  const steps = !cube ? data.slices : cube.steps.length ? cube.steps
    : [{ all: true }, ...(names || []).map((name, slice) => ({ name, cells: [[slice]] }))];
  const sizes = cube && current.meta.cube.sizes;
  const hasFixed = Boolean(cube) && cube.isView; // a view has its own time and categories

  /** Name of slices from a first to a last one, as `--when` reads it. */
  function spanName(first, last) {
    if (first === 0 && last === names.length - 1) return word("allTime");
    if (first === last) return names[first];
    return `${names[first]}..${cube.ends ? cube.ends[last] : names[last]}`;
  }

  /** Name of the time that is shown; empty without time. */
  function timeName() {
    if (!cube) return data.slices[state.slice].name;
    if (state.span) return spanName(...state.span);
    return steps[state.slice].all ? (names ? word("allTime") : "") : steps[state.slice].name;
  }

  function labelName({ name }, number) {
    const isOther = cube.hasOther && number === cube.labels.length - 1;
    return isOther ? word("otherCategory", name) : name;
  }

  const categoryName = () => (state.category < 0 ? word("allCategories")
    : labelName(cube.labels[state.category], state.category));

  const mask = (size, cells) => {
    const inside = new Uint8Array(size);
    for (const cell of cells) inside[cell] = 1;
    return inside;
  };
  const range = (first, stop) => Array.from({ length: stop - first }, (_, i) => first + i);

  const windows = new Map();

  /** Window of some slices, or of all, and of the chosen category. */
  function windowOf(slices, categories = null) {
    const label = state.category < 0 ? null : cube.labels[state.category];
    const chosen = label ? range(label.first, label.stop) : categories;
    const key = `${slices || ""}|${chosen || ""}`;
    if (!windows.has(key)) {
      const of = names ? [slices, chosen] : [chosen];
      const made = current.cube.window(sizes.map((size, axis) => (
        of[axis] ? mask(size, of[axis]) : new Uint8Array(size).fill(1))));
      // Samples of classes, and the windows looked at last.
      if (windows.size > 20) windows.delete(windows.keys().next().value);
      windows.set(key, Object.assign(made, { key, ratings: null }));
    }
    return windows.get(key);
  }

  /** Window that is shown; null for what is no cube. */
  function shownWindow() {
    if (!cube) return null;
    if (state.span) return windowOf(range(state.span[0], state.span[1] + 1));
    const { all, cells } = steps[state.slice];
    if (all) return windowOf(null);
    return names ? windowOf(...cells) : windowOf(null, cells[0]);
  }

  /** Windows whose values make the classes: those of the steps, or spans of nearly this length. */
  function sampleWindows() {
    if (!names || hasFixed) return [shownWindow()];
    if (!state.span && cube.steps.length) return cube.steps.map(({ cells }) => windowOf(...cells));
    const { all } = steps[state.slice], most = names.length;
    const length = state.span ? state.span[1] - state.span[0] + 1 : all ? most : 1;
    const width = length === most ? most : Math.min(2 ** Math.round(Math.log2(length)), most - 1);
    const number = Math.min(8, most - width + 1), firsts = new Set();
    for (let i = 0; i < number; i++) {
      firsts.add(number > 1 ? Math.round(((most - width) * i) / (number - 1)) : 0);
    }
    return [...firsts].map((first) => (
      width === most ? windowOf(null) : windowOf(range(first, first + width))));
  }

  /** Estimates of all cells in a window, at once; those of answers, which come with errors. */
  function windowCounts(window) {
    window.counts = window.counts || current.cube.counts(window);
    return window.counts;
  }

  // --- plane ------------------------------------------------------------------------------------

  // The map shows the plane of the CRS: boxes and straight sides on it are those of the answers.
  const [west, south, east, north] = data.bounds;
  const centre = [(west + east) / 2, (south + north) / 2];
  const unit = SIZE / Math.max((east - west) * data.stretch, north - south);
  const toWorld = (x, y) => [
    0.5 + (x - centre[0]) * data.stretch * unit, 0.5 - (y - centre[1]) * unit];
  const toMap = (x, y) => {
    const [u, v] = toWorld(x, y);
    const latitude = (Math.atan(Math.sinh(Math.PI * (1 - 2 * v))) * 180) / Math.PI;
    return [u * 360 - 180, latitude];
  };
  const fromMap = ({ lng, lat }) => {
    const v = 0.5 - Math.asinh(Math.tan((lat * Math.PI) / 180)) / (2 * Math.PI);
    return [centre[0] + (lng / 360) / (data.stretch * unit), centre[1] + (0.5 - v) / unit];
  };
  const line = (coordinates) => coordinates.map(([x, y]) => toMap(x, y));

  // --- what is shown ----------------------------------------------------------------------------

  /** Area of a node on the ground; see psd/space/ground_areas.py. */
  function groundArea(tree, node) {
    const [w, s, e, n] = tree.cell(node);
    return (e - w) * (n - s) * tree.arrays.ground[node] * tree.meta.ground;
  }

  /** Nodes that tile the area at a level: its nodes, and the leaves above it. */
  function nodesAt(tree, level) {
    const nodes = [];
    for (let node = 0; node < tree.size; node++) {
      const at = tree.level[node];
      if (at === level || (at < level && !tree.children[node])) nodes.push(node);
    }
    return nodes;
  }

  function cellItems(tree, level) {
    if (cube) {
      const window = shownWindow(), counts = windowCounts(window), { ratings } = window;
      return nodesAt(tree, level).map((node) => ({
        node, bounds: tree.bounds(node), estimate: Math.max(counts[node], 0),
        quality: ratings ? ratings[node] : UNKNOWN, area: groundArea(tree, node) }));
    }
    return nodesAt(tree, level).map((node) => {
      const bounds = tree.bounds(node), estimate = Math.max(tree.count[node], 0);
      const error = tree.errors[node], lower = estimate - z * error;
      const quality = psdEngine.judge(tree.meta, estimate, error, lower);
      const item = { node, bounds, estimate, quality, area: groundArea(tree, node) };
      return state.show.startsWith("mean")
        ? ofMean(item, tree.valueAt(meanNumber(), node, z).mean) : item;
    });
  }

  /** Number of the value whose mean is shown. */
  const meanNumber = () => Number(state.show.slice(4));

  /** An item that is shown by its mean and the quality of this. */
  const ofMean = (item, mean) => ({ ...item, mean: mean.estimate, quality: mean.quality });

  const answers = new Map();

  /** Answer of a region of a group in a slice. */
  function regionAnswer(tree, slice, group, index) {
    const window = shownWindow(), key = `${cube ? window.key : slice} ${group} ${index}`;
    if (!answers.has(key)) {
      const given = tree.arrays[`answers${group}`], size = data.groups[group].ids.length;
      answers.set(key, given ? statedAnswer(tree, given, size, index)
        : tree.answer([regionShape(group, index)], z, window));
    }
    const answer = answers.get(key);
    if (!answer.values) withValues(answer, tree, [regionShape(group, index)]);
    return answer;
  }

  /** An answer to shapes with the means and sums of the values in them. */
  function withValues(answer, tree, shapes) {
    answer.values = tree.valuesIn(shapes, answer, z);
    return answer;
  }

  /** Answer of a given region: columns of its count, and of each value its mean and its sum. */
  function statedAnswer(tree, given, size, index) {
    const columns = [];
    for (let at = index; at < given.length; at += size) columns.push(given[at]);
    const [estimate, perturbation, nonuniformity, lower, upper] = columns;
    const error = Math.hypot(perturbation, nonuniformity);
    const quality = psdEngine.judge(tree.meta, estimate, error, lower);
    const part = (first) => {
      const [own, noise, uneven, both, low, high, rank] = columns.slice(first);
      return { estimate: own, perturbation: noise, nonuniformity: uneven, error: both, lower: low,
        upper: high, quality: rank };
    };
    const values = data.values.map((value, i) => {
      const mean = part(5 + 13 * i), sum = part(12 + 13 * i);
      mean.hasInterval = mean.lower > value.lower || mean.upper < value.upper;
      return { name: value.name, mean, sum };
    });
    return { estimate, perturbation, nonuniformity, error, lower, upper, quality, values };
  }

  function regionItems(tree, slice, group) {
    return data.groups[group].ids.map((id, index) => {
      const { estimate, quality, values } = regionAnswer(tree, slice, group, index);
      const item = { index, estimate, quality, area: data.groups[group].areas[index] };
      return state.show.startsWith("mean") ? ofMean(item, values[meanNumber()].mean) : item;
    });
  }

  // What has no ground has no density.
  const valueOf = (item) => (item.mean !== undefined ? item.mean
    : state.show === "count" ? item.estimate
    : item.area > 0 ? item.estimate / item.area : 0);

  /** Round numbers between the classes, the same for all slices. */
  function classBreaks() {
    if (cube) return cubeBreaks();
    const { cells, groups } = data.classes;
    return (state.layer < 0 ? cells[state.level] : groups[state.layer])[state.show];
  }

  const breaks = new Map();

  /** Classes of a cube, the same for spans of about the same length. */
  function cubeBreaks() {
    const samples = sampleWindows(), { layer, level, show } = state;
    const key = [layer, level, show, ...samples.map((window) => window.key)].join(" ");
    if (breaks.has(key)) return breaks.get(key);
    const values = [], weights = [], group = layer < 0 ? null : data.groups[layer];
    if (group && !group.nodes) {
      // Of given regions the window that is shown: each answer takes a while.
      for (const item of shownItems) {
        values.push(valueOf(item));
        weights.push(item.area);
      }
      return psdClasses.breaks(values, weights);
    }
    (group ? group.nodes : nodesAt(current, level)).forEach((node, index) => {
      if (group && group.rest === index) return;
      const [w, s, e, n] = current.cell(node);
      const area = group ? group.areas[index] : groundArea(current, node);
      for (const window of samples) {
        values.push(valueOf({ estimate: Math.max(windowCounts(window)[node], 0), area }));
        weights.push(group ? area : (e - w) * (n - s));
      }
    });
    breaks.set(key, psdClasses.breaks(values, weights));
    return breaks.get(key);
  }

  const colours = () => (state.dark ? DARK : LIGHT);
  const classOf = (breaks, value) => {
    let at = 0;
    while (at < breaks.length && value >= breaks[at]) at += 1;
    return at;
  };
  /** Colours of the classes, spread over the scale. */
  const scaleOf = (breaks) => data.scales[breaks.length].map((at) => colours()[at]);
  /** What lies in no region has no class, and its area would hide the others. */
  const isRest = (item) => state.layer >= 0 && data.groups[state.layer].rest === item.index;

  // --- map --------------------------------------------------------------------------------------

  const side = byId("map-side");
  let map = null;

  class CellLayer {
    constructor() {
      this.id = "cells";
      this.type = "custom";
      this.count = 0;
    }

    onAdd(_, gl) {
      this.gl = gl;
      const program = gl.createProgram();
      const vertex = `#version 300 es
        uniform mat4 matrix; in vec2 corner; in vec4 box; in vec4 colour;
        out vec4 fill;
        void main() {
          fill = colour;
          gl_Position = matrix * vec4(mix(box.xy, box.zw, corner), 0.0, 1.0);
        }`;
      const fragment = `#version 300 es
        precision mediump float; in vec4 fill; out vec4 result; uniform float ratio;
        uniform vec3 ink;
        void main() {
          float opacity = fill.a;
          vec3 shade = fill.rgb;
          if (opacity < 0.5) {
            float at = mod((gl_FragCoord.x + gl_FragCoord.y) / ratio, 9.0);
            if (at < 1.1) { shade = ink; opacity = 0.45; }
          }
          result = vec4(shade * opacity, opacity);
        }`;
      for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
        const shader = gl.createShader(kind);
        gl.shaderSource(shader, text);
        gl.compileShader(shader);
        gl.attachShader(program, shader);
      }
      gl.linkProgram(program);
      this.program = program;
      this.array = gl.createVertexArray();
      gl.bindVertexArray(this.array);
      const attribute = (name, size, kind, scaled, divisor) => {
        const buffer = gl.createBuffer(), at = gl.getAttribLocation(program, name);
        gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
        gl.enableVertexAttribArray(at);
        gl.vertexAttribPointer(at, size, kind, scaled, 0, 0);
        gl.vertexAttribDivisor(at, divisor);
        return buffer;
      };
      const corners = attribute("corner", 2, gl.FLOAT, false, 0);
      gl.bindBuffer(gl.ARRAY_BUFFER, corners);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.STATIC_DRAW);
      this.boxes = attribute("box", 4, gl.FLOAT, false, 1);
      this.fills = attribute("colour", 4, gl.UNSIGNED_BYTE, true, 1);
      gl.bindVertexArray(null);
      this.upload();
    }

    set(boxes, fills) {
      Object.assign(this, { pending: [boxes, fills] });
      if (this.gl) this.upload();
    }

    upload() {
      if (!this.pending) return;
      const { gl } = this, [boxes, fills] = this.pending;
      gl.bindVertexArray(null);
      for (const [buffer, values] of [[this.boxes, boxes], [this.fills, fills]]) {
        gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
        gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
      }
      this.count = boxes.length / 4;
    }

    render(gl, input) {
      if (!this.count) return;
      // Boxes are relative to the middle of the world, for the digits of single precision.
      const matrix = Float64Array.from(input.defaultProjectionData.mainMatrix);
      for (let i = 0; i < 4; i++) matrix[12 + i] += 0.5 * (matrix[i] + matrix[4 + i]);
      gl.useProgram(this.program);
      gl.uniformMatrix4fv(gl.getUniformLocation(this.program, "matrix"), false,
        Float32Array.from(matrix));
      gl.uniform1f(gl.getUniformLocation(this.program, "ratio"), devicePixelRatio);
      const ink = state.dark ? [0.75, 0.75, 0.75] : [0.35, 0.35, 0.35];
      gl.uniform3fv(gl.getUniformLocation(this.program, "ink"), ink);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      gl.disable(gl.DEPTH_TEST);
      gl.disable(gl.CULL_FACE);
      gl.bindVertexArray(this.array);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.count);
      gl.bindVertexArray(null);
      if (!this.painted) {
        this.painted = true;
        performance.mark("psd-cells");
      }
    }
  }

  const cellLayer = new CellLayer();
  const empty = { type: "FeatureCollection", features: [] };
  const feature = (type, coordinates, properties = {}) => ({
    type: "Feature", geometry: { type, coordinates }, properties });

  // Around the area; on a narrow page the hint lies over the map.
  const room = innerWidth > 800 ? 24 : { top: 24, left: 24, right: 24, bottom: 84 };

  function makeMap() {
    const [viewWest, viewSouth, viewEast, viewNorth] = data.view;
    const corner = [[viewWest, viewSouth], [viewEast, viewNorth]].map(([x, y]) => toMap(x, y));
    const outlines = data.outlines.map((part) => line(part));
    const frame = line([[west, south], [east, south], [east, north], [west, north], [west, south]]);
    const source = (features) => ({
      type: "geojson", tolerance: 0, data: { type: "FeatureCollection", features } });
    const made = new maplibregl.Map({
      container: "map",
      style: {
        version: 8,
        sources: {
          outlines: source([feature("MultiLineString", outlines)]),
          frame: source([feature("LineString", frame)]),
          regions: source([]), shapes: source([]),
        },
        layers: [{ id: "back", type: "background", paint: {} }],
      },
      bounds: corner, fitBoundsOptions: { padding: room }, renderWorldCopies: false,
      attributionControl: false, dragRotate: false, pitchWithRotate: false, maxPitch: 0,
      canvasContextAttributes: { preserveDrawingBuffer: true, antialias: true },
      fadeDuration: 0, trackResize: false,
    });
    made.touchZoomRotate.disableRotation();
    made.keyboard.disableRotation();
    return made;
  }

  /** Stripes over regions of poor estimates, as those of cells. */
  function hatch() {
    const size = 16, stripes = new Uint8Array(size * size * 4);
    for (let i = 0; i < size * size; i++) {
      const at = (i % size + Math.floor(i / size)) % size;
      if (at < 2) stripes.set([90, 90, 90, 170], i * 4);
    }
    return { width: size, height: size, data: stripes };
  }

  function addLayers() {
    map.addImage("hatch", hatch(), { pixelRatio: 2 });
    map.addLayer(cellLayer);
    for (const [id, source, type, paint] of [
      ["regions-fill", "regions", "fill", { "fill-color": ["get", "colour"],
        "fill-opacity": ["get", "opacity"], "fill-antialias": false }],
      ["regions-hatch", "regions", "fill", { "fill-pattern": "hatch" }],
      ["regions-line", "regions", "line", { "line-width": ["get", "width"],
        "line-color": ["get", "line"] }],
      ["outlines-back", "outlines", "line", { "line-width": 3.2, "line-opacity": 0.55 }],
      ["outlines", "outlines", "line", { "line-width": 1.2 }],
      ["frame", "frame", "line", { "line-width": 1, "line-dasharray": [3, 2] }],
      ["shapes-line", "shapes", "line", { "line-color": "#d6006c", "line-width": 2.5 }],
      ["shapes-point", "shapes", "circle", { "circle-color": "#d6006c", "circle-radius": 4 }],
    ]) {
      const filter = { "shapes-point": ["==", ["geometry-type"], "Point"],
        "regions-hatch": ["all", ["<", ["get", "opacity"], 0.5], [">", ["get", "opacity"], 0]],
      }[id];
      map.addLayer({ id, source, type, paint, ...(filter ? { filter } : {}) });
    }
  }

  function paintBack() {
    if (!map || !map.getLayer("outlines")) return;
    const style = getComputedStyle(document.documentElement);
    map.setPaintProperty("back", "background-color", style.getPropertyValue("--map").trim());
    map.setPaintProperty("outlines-back", "line-color", style.getPropertyValue("--back").trim());
    for (const id of ["outlines", "frame"]) {
      map.setPaintProperty(id, "line-color", style.getPropertyValue("--soft").trim());
    }
  }

  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

  let shownItems = [], shownBreaks = [];

  /** Colour of an item, by its class and its quality. */
  function fillOf(item) {
    if (isRest(item)) return ["#808080", 0];
    if (state.show === "reliability") return [QUALITY[item.quality], 1];
    const colour = scaleOf(shownBreaks)[classOf(shownBreaks, valueOf(item))];
    return [colour, ALPHA[item.quality]];
  }

  function paintItems() {
    const cells = state.layer < 0;
    shownItems = cells ? cellItems(current, state.level)
      : regionItems(current, state.slice, state.layer);
    shownBreaks = state.show === "reliability" ? [] : classBreaks();
    const palette = scaleOf(shownBreaks).map(rgb), quality = QUALITY.map(rgb);
    if (cells) {
      const boxes = new Float32Array(shownItems.length * 4);
      const fills = new Uint8Array(shownItems.length * 4);
      shownItems.forEach((item, i) => {
        const low = toWorld(item.bounds[0], item.bounds[1]);
        const high = toWorld(item.bounds[2], item.bounds[3]);
        boxes.set([low[0] - 0.5, low[1] - 0.5, high[0] - 0.5, high[1] - 0.5], i * 4);
        const byQuality = state.show === "reliability";
        const colour = byQuality ? quality[item.quality] : palette[classOf(shownBreaks,
          valueOf(item))];
        fills.set([...colour, byQuality ? 255 : 255 * ALPHA[item.quality]], i * 4);
      });
      cellLayer.set(boxes, fills);
    } else cellLayer.set(new Float32Array(0), new Uint8Array(0));
    if (map) paintRegions();
    paintLegend();
    if (cube && cells) rateCells();
  }

  let rating = 0, rated = null; // runs, and the window of the last one that ended

  /** Compute the errors of the cells of a cube, while the page stays responsive, and paint again. */
  async function rateCells() {
    const window = shownWindow(), mine = ++rating, items = shownItems;
    window.ratings = window.ratings || new Uint8Array(current.size).fill(UNKNOWN);
    const left = items.filter(({ node }) => window.ratings[node] === UNKNOWN);
    let begun = performance.now();
    for (const { node } of left) {
      const { estimate, quality } = current.answer([{ nodes: [node] }], z, window);
      window.ratings[node] = quality;
      window.counts[node] = estimate;
      if (performance.now() - begun > 40) {
        byId("rating").hidden = false;
        await new Promise((resume) => { setTimeout(resume, 0); });
        if (mine !== rating) return;
        begun = performance.now();
      }
    }
    byId("rating").hidden = true;
    if (left.length) paintItems();
    rated = window;
  }

  function paintRegions() {
    if (!map.getSource("regions")) return;
    const group = state.layer, ink = state.dark ? "#e8edf3" : "#333333";
    const features = group < 0 ? [] : shownItems.map((item) => {
      const [colour, opacity] = fillOf(item), chosen = state.chosen.has(item.index);
      const coordinates = polygonsOf(regionRings(group, item.index));
      return feature("MultiPolygon", coordinates, { colour, opacity,
        line: chosen ? "#d6006c" : ink, width: chosen ? 3.5 : 0.7 });
    });
    map.getSource("regions").setData({ type: "FeatureCollection", features });
    if (map.triggerRepaint) map.triggerRepaint();
  }

  /** Polygons of GeoJSON from turned rings: each outer ring is followed by its holes. */
  function polygonsOf(flat) {
    const result = [];
    for (const ring of flat) {
      const points = [];
      let twice = 0;
      for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
        points.push(toMap(ring[i], ring[i + 1]));
        twice += (ring[j] - ring[0]) * (ring[i + 1] - ring[1])
          - (ring[i] - ring[0]) * (ring[j + 1] - ring[1]);
      }
      points.push(points[0]);
      if (twice > 0 || !result.length) result.push([points]);
      else result[result.length - 1].push(points);
    }
    return result;
  }

  // --- legend -----------------------------------------------------------------------------------

  function paintLegend() {
    const list = byId("key"), reliability = state.show === "reliability";
    list.replaceChildren();
    const unitText = state.show === "density"
      ? `${counted()} ${word("per")} ${data.areaUnit}` : counted();
    const value = state.show.startsWith("mean") ? data.values[meanNumber()] : null;
    byId("legend-title").textContent = reliability ? word("reliability")
      : value ? word("meanOf", value.name) : `${word(state.show)} (${unitText})`;
    const entry = (colour, opacity, text, hatched = false) => {
      const item = element("li"), swatch = element("span", undefined, { class: "swatch" });
      if (colour) {
        const [r, g, b] = rgb(colour);
        swatch.style.backgroundColor = `rgba(${r},${g},${b},${opacity})`;
      }
      if (hatched) swatch.classList.add("hatched");
      item.append(swatch, element("span", text));
      list.append(item);
    };
    const { good, reliable } = data, time = timeName();
    const parts = time ? [hasFixed ? time : word("inWindow", time)] : [];
    if (cube && cube.column && !hasFixed) {
      parts.push(word("inCategory", cube.column, categoryName()));
    }
    byId("shown").textContent = parts.join(", ");
    if (reliability) {
      QUALITY.slice(0, 3).forEach((colour, i) => entry(colour, 1, [word("goodText", percent(good)),
        word("careText", percent(reliable)), word("poorText")][i]));
    } else {
      scaleOf(shownBreaks).forEach((colour, i) => {
        const low = i ? shownBreaks[i - 1] : value ? value.lower : 0;
        const high = i < shownBreaks.length || !value ? shownBreaks[i] : value.upper;
        const text = value ? (end) => meanText({ lower: 0, upper: high - low }, end) : number;
        entry(colour, 1, high === undefined ? `≥ ${text(low)}` : `${text(low)} – ${text(high)}`);
      });
      entry(null, 1, word(value ? "poorMean" : "unreliable"), true);
      entry(colours()[3], ALPHA[1], word("faint"));
    }
    if (shownItems.length > 1 && shownItems.every(({ quality }) => quality === 2)) {
      list.append(element("li", word(state.layer < 0 && state.level ? "allPoorCells" : "allPoor"),
        { class: "warn" }));
    }
    const hasRest = state.layer >= 0 && data.groups[state.layer].rest !== null;
    if (hasRest) list.append(element("li", word("rest"), { class: "soft" }));
    if (data.gaps) list.append(element("li", word("gaps"), { class: "soft" }));
    if (data.outlines.length) list.append(element("li", word("offset"), { class: "soft" }));
  }

  // --- answers ----------------------------------------------------------------------------------

  const qualityWord = (quality) => word(["good", "care", "poor"][quality]);

  function answerBlock(title, answer) {
    const block = element("div", undefined, { class: "answer" }), list = element("dl");
    block.append(element("h3", title));
    block.append(element("div", `${number(answer.estimate)} ${counted()}`, { class: "big" }));
    for (const [key, text] of [
      ["interval", between(answer.lower, answer.upper)],
      ["noise", `± ${number(answer.perturbation)}`],
      ["uneven", `± ${number(answer.nonuniformity)}`],
      ["both", `± ${number(answer.error)}`],
      ["quality", qualityWord(answer.quality)],
    ]) list.append(element("dt", word(key)), element("dd", text));
    block.append(list);
    answer.values.forEach(({ name, mean, sum }, i) => {
      const ofValue = element("dl"), text = (value) => meanText(data.values[i], value);
      for (const [key, shown] of [
        [word("meanOf", name), text(mean.estimate)],
        [word("interval"), intervalText(mean, text)],
        [word("errorsOf"), `± ${text(mean.perturbation)}, ± ${text(mean.nonuniformity)}`],
        [word("quality"), qualityWord(mean.quality)],
        [word("sumOf", name), number(sum.estimate)],
        [word("interval"), between(sum.lower, sum.upper)],
        [word("errorsOf"), `± ${number(sum.perturbation)}, ± ${number(sum.nonuniformity)}`],
      ]) ofValue.append(element("dt", key), element("dd", shown));
      block.append(ofValue);
    });
    return block;
  }

  const intervalText = (mean, text) => (mean.hasInterval
    ? `${text(mean.lower)} – ${text(mean.upper)}` : word("noInterval"));

  const nameOf = (group, index) => {
    const { ids, names } = data.groups[group];
    return names[index] === ids[index] ? ids[index] : `${names[index]} (${ids[index]})`;
  };

  /** What is drawn or chosen, with its names. */
  function asked() {
    if (state.shapes.length) {
      return state.shapes.map((shape, i) => [`${word("shape")} ${i + 1}`, shape]);
    }
    return [...state.chosen].sort((a, b) => a - b).map((index) => [
      nameOf(state.layer, index), regionShape(state.layer, index), index]);
  }

  function overlapping(list) {
    if (!state.shapes.length) {
      const pairs = data.groups[state.layer].overlaps;
      return pairs.some(([a, b]) => state.chosen.has(a) && state.chosen.has(b));
    }
    return list.some(([, a], i) => list.slice(i + 1).some(([, b]) => (
      psdEngine.overlap(current, a, b))));
  }

  const answerTo = (shapes) => withValues(
    current.answer(shapes, z, shownWindow()), current, shapes);

  let turn = 0;

  async function paintAnswers() {
    const place = byId("answers"), list = asked(), mine = ++turn;
    if (!list.length) {
      place.replaceChildren(element("p", word("none"), { class: "soft" }));
      byId("answers").dataset.ready = "none";
      return;
    }
    place.dataset.ready = "";
    place.replaceChildren(element("p", word("working"), { class: "soft" }));
    await new Promise((resume) => { setTimeout(resume, 0); });
    if (mine !== turn) return;
    const blocks = [];
    if (list.length > 1 && !current.meta.window && !cube) {
      if (overlapping(list)) blocks.push(element("p", word("overlap"), { class: "warn" }));
      else blocks.push(answerBlock(word("joint"), answerTo(list.map(([, shape]) => shape))));
    }
    for (const [title, shape, index] of list.slice(0, 12)) {
      const block = answerBlock(title, index === undefined ? answerTo([shape])
        : regionAnswer(current, state.slice, state.layer, index));
      if (index === undefined && data.gaps && uncounted(shape) > data.gaps) {
        block.append(element("p", word("gap"), { class: "warn" }));
      }
      blocks.push(block);
    }
    if (list.length > 12) {
      blocks.push(element("p", word("regionsAnd", list.length - 12), { class: "soft" }));
    }
    place.replaceChildren(...blocks);
    place.dataset.ready = String(list.length);
  }

  function paintHover() {
    const box = byId("hover");
    const show = (title, answer) => {
      box.textContent = `${title}: ${number(answer.estimate)} ${counted()}, ${word("interval")} `
        + `${between(answer.lower, answer.upper)}, ${qualityWord(answer.quality)}`;
      if (!state.show.startsWith("mean")) return;
      const { name, mean } = answer.values[meanNumber()];
      const text = (value) => meanText(data.values[meanNumber()], value);
      const interval = mean.hasInterval ? `${word("interval")} ` : "";
      box.prepend(`${word("meanOf", name)}: ${text(mean.estimate)}, ${interval}`
        + `${intervalText(mean, text)}, ${qualityWord(mean.quality)}. `);
    };
    if (state.hover === null) box.textContent = word("hoverHelp");
    else if (state.layer < 0) {
      show(`${word("cell")} ${state.hover}`, answerTo([{ nodes: [state.hover] }]));
    } else {
      show(nameOf(state.layer, state.hover),
        regionAnswer(current, state.slice, state.layer, state.hover));
    }
  }

  // --- finding what is under a point --------------------------------------------------------------

  function cellAt(x, y) {
    if (!(x >= west && x <= east && y >= south && y <= north)) return null;
    let node = 0;
    const inside = (child) => {
      const [w, s, e, n] = current.bounds(child);
      return x >= w && x <= e && y >= s && y <= n;
    };
    while (current.level[node] < state.level && current.children[node]) {
      const first = current.firstChild[node];
      let next = -1;
      for (let child = first; child < first + current.children[node]; child++) {
        if (inside(child)) next = child;
      }
      if (next < 0) break;
      node = next;
    }
    return node;
  }

  function regionAt(x, y) {
    const { ids } = data.groups[state.layer];
    for (let index = 0; index < ids.length; index++) {
      if (psdEngine.contains(regionRings(state.layer, index), x, y)) return index;
    }
    return null;
  }

  const itemAt = (point) => (state.layer < 0 ? cellAt(...point) : regionAt(...point));

  // --- drawing ----------------------------------------------------------------------------------

  function paintShapes() {
    if (!map || !map.getSource("shapes")) return;
    const features = state.shapes.map((shape) => {
      const ring = shape.box ? boxRing(shape.box) : shape.polygons[0][0];
      return feature("Polygon", [line(closed(ring))]);
    });
    if (state.vertices.length) {
      if (state.vertices.length > 1) features.push(feature("LineString", line(state.vertices)));
      for (const vertex of state.vertices) features.push(feature("Point", toMap(...vertex)));
    }
    map.getSource("shapes").setData({ type: "FeatureCollection", features });
  }

  const boxRing = ([w, s, e, n]) => [[w, s], [e, s], [e, n], [w, n]];
  const closed = (ring) => [...ring, ring[0]];

  function setMode(mode) {
    state.mode = mode;
    state.vertices = [];
    for (const kind of ["box", "polygon"]) {
      byId(`draw-${kind}`).setAttribute("aria-pressed", String(mode === kind));
    }
    side.classList.toggle("drawing", mode !== null);
    byId("finish").disabled = mode !== "polygon";
    paintHelp();
    paintShapes();
    if (map) map.doubleClickZoom[mode ? "disable" : "enable"]();
  }

  function paintHelp(key) {
    const help = { box: "drawHelpBox", polygon: "drawHelpPolygon" }[state.mode];
    byId("help").textContent = key ? word(key) : help ? word(help)
      : state.layer >= 0 ? word("clickHelp") : "";
    byId("help").className = key ? "warn" : "soft";
  }

  function addShape(shape) {
    const fault = faultOf(shape);
    if (fault) {
      setMode(state.mode);
      paintHelp(fault);
      return;
    }
    state.chosen.clear();
    state.shapes.push(shape);
    setMode(null);
    paintChoices();
    if (map) paintRegions();
    paintAnswers();
  }

  /** Why a shape has no answer; null if it has one. */
  function faultOf(shape) {
    if (shape.box) {
      const [w, s, e, n] = shape.box;
      if (!(w < e && s < n)) return "badBox";
      return w >= east || e <= west || s >= north || n <= south ? "outside" : null;
    }
    if (psdEngine.crosses(shape.polygons[0][0])) return "crossing";
    return psdEngine.meets(shape.polygons, data.bounds) ? null : "outside";
  }

  function addVertex(point) {
    const { vertices, mode } = state;
    if (mode === "polygon" && vertices.length > 2 && isNear(point, vertices[0])) {
      finish();
      return;
    }
    vertices.push(point);
    paintShapes();
    if (mode === "box" && vertices.length === 2) {
      const [[ax, ay], [bx, by]] = vertices;
      addShape({ box: [Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by)] });
    }
  }

  function isNear(point, other) {
    const [a, b] = [point, other].map(([x, y]) => map.project(toMap(x, y)));
    return Math.hypot(a.x - b.x, a.y - b.y) < 10;
  }

  function finish() {
    if (state.mode === "polygon" && state.vertices.length > 2) {
      addShape({ polygons: [[state.vertices]] });
    }
  }

  function toggle(index) {
    state.shapes = [];
    if (state.chosen.has(index)) state.chosen.delete(index);
    else state.chosen.add(index);
    paintShapes();
    paintRegions();
    paintChoices();
    paintAnswers();
  }

  // --- controls ---------------------------------------------------------------------------------

  const choices = byId("choices");

  /** Boxes to tick for the regions of the layer, those that the search finds. */
  function listChoices() {
    choices.replaceChildren();
    if (state.layer < 0) return;
    const { ids, names } = data.groups[state.layer];
    const text = byId("filter").value.trim().toLocaleLowerCase();
    ids.forEach((id, index) => {
      if (text && !`${id} ${names[index]}`.toLocaleLowerCase().includes(text)) return;
      const label = element("label"), tick = element("input", undefined, { type: "checkbox" });
      tick.dataset.index = index;
      tick.checked = state.chosen.has(index);
      tick.addEventListener("change", () => toggle(index));
      label.append(tick, element("span", nameOf(state.layer, index)));
      choices.append(label);
    });
  }

  function paintChoices() {
    for (const tick of choices.querySelectorAll("input")) {
      tick.checked = state.chosen.has(Number(tick.dataset.index));
    }
    const size = state.layer < 0 ? 0 : data.groups[state.layer].ids.length;
    byId("chosen").textContent = size ? word("selected", state.chosen.size, size) : "";
  }

  function paintWords() {
    document.documentElement.lang = state.language;
    for (const part of document.querySelectorAll("[data-word]")) {
      part.textContent = word(part.dataset.word);
    }
    for (const part of document.querySelectorAll("[data-label]")) {
      part.setAttribute("aria-label", word(part.dataset.label));
    }
    byId("filter").placeholder = word("filter");
    byId("about-text").textContent = word("aboutText", word(data.unit))
      + (data.zone ? ` ${word("zone", data.zone)}` : "");
    byId("made").textContent = word("made", data.version);
    const limits = !data.drawing && word(...(data.cut !== null ? ["levelOnly", data.cut]
      : data.most ? ["tooLarge", number(data.most)] : ["noDrawing"]));
    byId("limits").textContent = limits || "";
    const options = byId("layer").options;
    for (const option of options) if (option.value === "-1") option.textContent = word("cells");
    for (const option of byId("show").options) {
      if (option.dataset.value) option.textContent = word("meanOf", option.dataset.value);
    }
    byId("draw-title").textContent = word(cube ? "drawApart" : "draw");
    paintTime();
    paintHelp();
    paintLegend();
    paintHover();
    paintChoices();
    paintAnswers();
  }

  /** Texts of the sliders of time, and the labels of the categories. */
  function paintTime() {
    byId("slice-text").textContent = timeName();
    byId("slice").setAttribute("aria-valuetext", timeName());
    if (!cube) return;
    if (names) {
      const { all, cells } = steps[state.slice];
      const shown = all || !cells ? range(0, names.length) : cells[0];
      const [first, last] = state.span || [shown[0], shown[shown.length - 1]];
      // Hours are named by when they begin, and a span of them ends when its last one does.
      const texts = { first: names[first], last: (cube.ends || names)[last] };
      for (const [end, at] of [["first", first], ["last", last]]) {
        byId(`span-${end}`).value = at;
        byId(`span-${end}`).setAttribute("aria-valuetext", texts[end]);
        byId(`span-${end}-text`).textContent = texts[end];
      }
      // The slider follows a span that is one of its steps, and else says nothing.
      const isAll = first === 0 && last === names.length - 1, isStep = isAll || first === last;
      if (state.span && !cube.steps.length && isStep) {
        state.slice = isAll ? 0 : first + 1;
        byId("slice").value = state.slice;
      }
      byId("slice").classList.toggle("aside", Boolean(state.span) && !(isStep
        && !cube.steps.length));
    }
    if (!cube.column) return;
    byId("category-name").textContent = word("category", cube.column);
    const options = [...byId("category").options];
    options[0].textContent = word("allCategories");
    cube.labels.forEach((label, i) => {
      options[i + 1].textContent = "\u00a0\u00a0".repeat(label.depth) + labelName(label, i);
    });
  }

  const deepest = cube ? current.depth : data.classes.cells.length - 1;

  function paintLevels() {
    const level = byId("level");
    level.max = deepest;
    level.value = state.level;
    byId("level-text").textContent = `${state.level} / ${deepest}`;
    byId("level-row").hidden = state.layer >= 0;
    byId("list").hidden = state.layer < 0;
  }

  function setTheme(dark) {
    state.dark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    paintBack();
  }

  /** Paint what depends on the time and the category. */
  function paintWindow() {
    state.hover = null;
    paintLevels();
    paintItems();
    paintHover();
    paintAnswers();
  }

  const on = (id, event, action) => byId(id).addEventListener(event, action);

  function connect() {
    on("show", "change", (event) => {
      state.show = event.target.value;
      paintItems();
      paintHover();
    });
    on("layer", "change", (event) => {
      state.layer = Number(event.target.value);
      state.chosen.clear();
      state.hover = null;
      paintLevels();
      listChoices();
      paintItems();
      paintWords();
    });
    on("level", "input", (event) => {
      state.level = Number(event.target.value);
      state.hover = null;
      paintLevels();
      paintItems();
      paintHover();
    });
    on("slice", "input", async (event) => {
      const slice = Number(event.target.value);
      Object.assign(state, { slice, span: null });
      paintTime();
      byId("busy").hidden = false;
      const loaded = cube ? current : await model(slice);
      if (state.slice !== slice) return;
      current = loaded;
      paintWindow();
      byId("slice").dataset.shown = slice;
      byId("busy").hidden = true;
    });
    for (const end of ["first", "last"]) {
      on(`span-${end}`, "input", () => {
        let [first, last] = ["first", "last"].map((each) => Number(byId(`span-${each}`).value));
        // The end that is moved takes the other one along.
        if (first > last) [first, last] = end === "first" ? [first, first] : [last, last];
        state.span = [first, last];
        paintTime();
        paintWindow();
      });
    }
    on("category", "change", (event) => {
      state.category = Number(event.target.value);
      paintWindow();
    });
    on("theme", "click", () => { setTheme(!state.dark); paintItems(); });
    on("language", "click", () => {
      state.language = state.language === "en" ? "ko" : "en";
      paintWords();
    });
    on("fit", "click", () => map && map.fitBounds(
      [toMap(west, south), toMap(east, north)], { padding: room, duration: 0 }));
    on("print", "click", () => print());
    on("draw-box", "click", () => setMode(state.mode === "box" ? null : "box"));
    on("draw-polygon", "click", () => setMode(state.mode === "polygon" ? null : "polygon"));
    on("finish", "click", finish);
    on("undo", "click", () => {
      if (state.vertices.length) state.vertices.pop();
      else state.shapes.pop();
      paintShapes();
      paintAnswers();
    });
    on("clear", "click", () => {
      state.shapes = [];
      state.chosen.clear();
      setMode(null);
      paintShapes();
      if (map) paintRegions();
      paintChoices();
      paintAnswers();
    });
    on("numbers", "submit", (event) => {
      event.preventDefault();
      addShape({ box: ["west", "south", "east", "north"].map((name) => (
        Number(byId(`box-${name}`).value))) });
      paintShapes();
    });
    on("filter", "input", listChoices);
  }

  /** A picture of the map for paper: the map itself would be drawn again in another size. */
  function keepPicture() {
    byId("picture").src = map.getCanvas().toDataURL("image/png");
  }

  function connectMap() {
    const paper = matchMedia("print");
    addEventListener("beforeprint", keepPicture);
    paper.addEventListener("change", () => { if (paper.matches) keepPicture(); });
    new ResizeObserver(() => { if (!paper.matches) map.resize(); }).observe(byId("map"));
    const canvas = map.getCanvas();
    canvas.setAttribute("aria-label", data.title);
    const point = (event) => fromMap(event.lngLat);
    map.on("click", (event) => {
      if (state.mode) addVertex(point(event));
      else if (state.layer >= 0) {
        const index = regionAt(...point(event));
        if (index !== null) toggle(index);
      }
    });
    const look = (where) => {
      const item = itemAt(where);
      if (item === state.hover) return;
      state.hover = item;
      paintHover();
    };
    map.on("mousemove", (event) => {
      side.classList.remove("keys");
      look(point(event));
    });
    map.on("move", () => {
      if (document.activeElement === canvas) look(fromMap(map.getCenter()));
    });
    canvas.addEventListener("keydown", (event) => {
      side.classList.add("keys");
      if (event.key === "Enter") {
        const where = fromMap(map.getCenter());
        if (state.mode) addVertex(where);
        else if (state.layer >= 0) {
          const index = regionAt(...where);
          if (index !== null) toggle(index);
        } else look(where);
      }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && state.mode) setMode(null);
    });
  }

  // --- start ------------------------------------------------------------------------------------

  state.level = deepest;
  setTheme(state.dark);
  byId("slice-row").hidden = !timeName();
  if (hasFixed) byId("slice-name").dataset.word = "view";
  byId("slice").hidden = steps.length < 2;
  byId("slice").max = steps.length - 1;
  byId("span-row").hidden = !names || hasFixed;
  byId("category-row").hidden = !cube || !cube.column || hasFixed;
  if (cube) {
    state.category = cube.labels.findIndex(({ name }) => name === cube.chosen);
    for (const end of ["first", "last"]) byId(`span-${end}`).max = (names || [0]).length - 1;
    byId("category").append(...range(-1, cube.labels.length).map((value) => (
      element("option", "", { value }))));
    byId("category").value = state.category;
  }
  byId("layer-row").hidden = !data.groups.length;
  data.groups.forEach((group, i) => byId("layer").append(element("option", group.name,
    group.name ? { value: i } : { value: i, "data-word": "regions" })));
  data.values.forEach(({ name }, i) => byId("show").lastElementChild.before(
    element("option", "", { value: `mean${i}`, "data-value": name })));
  if (data.hasCells) byId("layer").append(element("option", "", { value: -1 }));
  byId("layer").value = state.layer;
  byId("tools").hidden = !data.drawing && !data.groups.length;
  byId("drawing").hidden = !data.drawing;
  byId("boxes").hidden = !data.drawing;
  connect();
  paintLevels();
  listChoices();
  paintItems();
  paintWords();
  try {
    map = makeMap();
  } catch (error) {
    byId("hover").textContent = word("noMap");
    byId("busy").hidden = true;
    document.documentElement.dataset.ready = "text";
    return;
  }
  connectMap();
  map.on("load", () => {
    map.setMaxZoom(map.getZoom() + 13);
    addLayers();
    paintBack();
    paintRegions();
    paintShapes();
    map.once("idle", () => {
      byId("busy").hidden = true;
      document.documentElement.dataset.ready = "map";
    });
  });
  const uncounted = (shape) => current.uncounted(shape, data.bounds);
  window.psdMap = {
    data, state, map, toMap, uncounted,
    isRated: () => rated === shownWindow(),
    qualities: () => shownItems.map(({ quality }) => quality),
    answer: (shapes) => current.answer(shapes, z, shownWindow()),
  };
})();
