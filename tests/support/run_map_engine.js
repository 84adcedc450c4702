/* Answers of the engine of the map page for tests: a file of packed releases and queries, and one of answers. */
"use strict";
const fs = require("fs");
const [, , path, input, output] = process.argv;
const engine = require(path);

(async () => {
  const { text, directory, meta, outlines, queries, z, pairs, windows } = JSON.parse(fs.readFileSync(input));
  const rings = outlines.begin ? (index) => engine.ringsOf(outlines, index) : null;
  const model = new engine.Model(meta, await engine.unpack(text, directory), rings);
  const inWindows = windows.map((axes) => model.cube.window(axes.map((cells, axis) => {
    const inside = new Uint8Array(meta.cube.sizes[axis]);
    for (const cell of cells) inside[cell] = 1;
    return inside;
  })));
  const answers = queries.map((shapes, i) => model.answer(shapes, z, inWindows[i]));
  const counts = inWindows.map((window) => Array.from(model.cube.counts(window)));
  const values = queries.map((shapes, i) => model.valuesIn(shapes, answers[i], z));
  const nodes = model.values.map((_, number) => Array.from(model.children, (_, node) => (
    model.valueAt(number, node, z))));
  const overlaps = pairs.map(([a, b]) => engine.overlap(model, a, b));
  const smooth = meta.density === "smooth" ? model.density : null;
  const shares = smooth && Array.from(model.leaves, (leaf) => Array.from(smooth.shares(leaf)));
  const result = { answers, errors: Array.from(model.nodeErrors()), overlaps, shares,
    values, nodes, counts };
  fs.writeFileSync(output, JSON.stringify(result));
})();
