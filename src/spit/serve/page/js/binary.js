/** Half floats, bits and COCO's run lengths. */

let table = null;

/** float16 bits to a number, by a table of all 65,536. */
export function halfTable() {
  if (table) return table;
  table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
    table[bits] = sign * (exponent === 0 ? fraction * 2 ** -24
      : exponent === 31 ? (fraction ? NaN : Infinity) : (1 + fraction / 1024) * 2 ** (exponent - 15));
  }
  return table;
}

export function halfToFloat(buffer) {
  const bits = buffer instanceof Uint16Array ? buffer : new Uint16Array(buffer), known = halfTable();
  const values = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) values[i] = known[bits[i]];
  return values;
}

export function base64Bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** Numbers 0 and 1 that travel eight in a byte. */
export function unpackBits(bytes, count) {
  return Uint8Array.from({length: count}, (_, i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1);
}

/** A mask, row by row, as COCO's run lengths: columns first, starting with a run of 0. */
export function maskToRuns(mask, width, height) {
  const runs = [];
  let value = 0, length = 0;
  for (let x = 0; x < width; x++) {
    for (let y = 0; y < height; y++) {
      const here = mask[y * width + x] ? 1 : 0;
      if (here !== value) { runs.push(length); length = 0; value = here; }
      length++;
    }
  }
  runs.push(length);
  return runs;
}
