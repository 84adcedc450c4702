// Arrays of a page: numbers that are packed into text.
"use strict";

const psdArrays = (() => {
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

  return { unpack };
})();
