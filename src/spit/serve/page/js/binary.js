/** Half floats, 16-bit PNG and COCO's run lengths, read and written by hand so that no colour management comes between. */

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

async function pump(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

/** A grey PNG of 8 or 16 bits, not interlaced: `{width, height, values: Uint16Array}`. */
export async function readGreyPng(buffer) {
  const bytes = new Uint8Array(buffer), view = new DataView(buffer);
  if (bytes.length < 33 || view.getUint32(0) !== 0x89504e47) throw new Error("the labels are not a PNG file");
  let at = 8, header = null;
  const parts = [];
  while (at + 8 <= bytes.length) {
    const length = view.getUint32(at), kind = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    if (kind === "IHDR") {
      header = {width: view.getUint32(at + 8), height: view.getUint32(at + 12), depth: bytes[at + 16],
        color: bytes[at + 17], interlace: bytes[at + 20]};
    } else if (kind === "IDAT") parts.push(bytes.subarray(at + 8, at + 8 + length));
    else if (kind === "IEND") break;
    at += 12 + length;
  }
  if (!header || header.color !== 0 || header.interlace || ![8, 16].includes(header.depth)) {
    throw new Error("expected labels as a grey PNG of 8 or 16 bits");
  }
  const {width, height, depth} = header, step = depth / 8, stride = width * step;
  const raw = await pump(new Blob(parts), new DecompressionStream("deflate"));
  unfilter(raw, stride, step, height);
  const values = new Uint16Array(width * height);
  for (let y = 0, i = 0; y < height; y++) {
    let from = y * (stride + 1) + 1;
    for (let x = 0; x < width; x++, i++, from += step) {
      values[i] = step === 2 ? (raw[from] << 8) | raw[from + 1] : raw[from];
    }
  }
  return {width, height, values};
}

/** Undo the row filters of PNG in place. */
function unfilter(raw, stride, step, height) {
  for (let y = 0; y < height; y++) {
    const row = y * (stride + 1) + 1, above = row - stride - 1, filter = raw[row - 1];
    for (let x = 0; x < stride; x++) {
      const left = x >= step ? raw[row + x - step] : 0, up = y ? raw[above + x] : 0;
      const corner = x >= step && y ? raw[above + x - step] : 0;
      let guess = 0;
      if (filter === 1) guess = left;
      else if (filter === 2) guess = up;
      else if (filter === 3) guess = (left + up) >> 1;
      else if (filter === 4) {
        const p = left + up - corner, a = Math.abs(p - left), b = Math.abs(p - up), c = Math.abs(p - corner);
        guess = a <= b && a <= c ? left : b <= c ? up : corner;
      } else if (filter === 0) break;
      raw[row + x] += guess;
    }
  }
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

export function runsToMask(runs, width, height) {
  const mask = new Uint8Array(width * height);
  let at = 0, value = 0;
  for (const run of runs) {
    if (value) for (let i = at; i < at + run; i++) mask[(i % height) * width + Math.floor(i / height)] = 1;
    at += run;
    value = 1 - value;
  }
  return mask;
}

/** COCO's compressed string of run lengths (pycocotools' LEB128 in printable characters). */
export function packRuns(runs) {
  let text = "";
  for (let i = 0; i < runs.length; i++) {
    let value = i > 2 ? runs[i] - runs[i - 2] : runs[i], more = true;
    while (more) {
      let digit = value & 31;
      value >>= 5;
      more = digit & 16 ? value !== -1 : value !== 0;
      if (more) digit |= 32;
      text += String.fromCharCode(digit + 48);
    }
  }
  return text;
}

export function unpackRuns(text) {
  const runs = [];
  for (let at = 0; at < text.length;) {
    let value = 0, shift = 0, more = true;
    while (more) {
      const digit = text.charCodeAt(at++) - 48;
      value |= (digit & 31) << shift;
      more = Boolean(digit & 32);
      shift += 5;
      if (!more && digit & 16) value |= -1 << shift;
    }
    if (runs.length > 2) value += runs[runs.length - 2];
    runs.push(value);
  }
  return runs;
}

/** An NPZ file (a ZIP without compression) of `{name: {data, shape}}`, data a typed array. */
export function makeNpz(arrays) {
  const kinds = {Uint8Array: "|u1", Uint16Array: "<u2", Int32Array: "<i4", Float32Array: "<f4", Uint32Array: "<u4"};
  const parts = [], index = [];
  let offset = 0;
  for (const [name, {data, shape}] of Object.entries(arrays)) {
    const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
    let head = `{'descr': '${kinds[data.constructor.name]}', 'fortran_order': False, 'shape': ${tuple}, }`;
    head = head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11) + "\n";
    const bytes = new Uint8Array(10 + head.length + data.byteLength);
    bytes.set([0x93, 78, 85, 77, 80, 89, 1, 0, head.length & 255, head.length >> 8]);
    bytes.set(new TextEncoder().encode(head), 10);
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), 10 + head.length);
    const file = new TextEncoder().encode(`${name}.npy`), crc = crc32(bytes);
    const common = [20, 0, 0, 0, 0x5c21, crc, bytes.length, bytes.length, file.length, 0]; // 2026-01-01
    parts.push(record(0x04034b50, common, [2, 2, 2, 2, 2, 4, 4, 4, 2, 2]), file, bytes);
    index.push(record(0x02014b50, [20, ...common, 0, 0, 0, 0, offset], [2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 2, 2, 2, 2, 4, 4]),
      file);
    offset += 30 + file.length + bytes.length;
  }
  const size = index.reduce((sum, part) => sum + part.length, 0), count = index.length / 2;
  const end = record(0x06054b50, [0, 0, count, count, size, offset, 0], [2, 2, 2, 2, 4, 4, 2]);
  return new Blob([...parts, ...index, end], {type: "application/zip"});
}

function record(signature, values, widths) {
  const bytes = new Uint8Array(4 + widths.reduce((sum, width) => sum + width, 0)), view = new DataView(bytes.buffer);
  view.setUint32(0, signature, true);
  let at = 4;
  widths.forEach((width, i) => {
    if (width === 2) view.setUint16(at, values[i], true);
    else view.setUint32(at, values[i], true);
    at += width;
  });
  return bytes;
}

let crcs = null;

function crc32(bytes) {
  crcs ||= Uint32Array.from({length: 256}, (_, n) => {
    let c = n;
    for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    return c;
  });
  let crc = -1;
  for (let i = 0; i < bytes.length; i++) crc = crcs[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return (crc ^ -1) >>> 0;
}
