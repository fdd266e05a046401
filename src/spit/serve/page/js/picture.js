/** Picture: a photo that the server has seen, with everything the page computes from it. */

import {halfTable, halfToFloat} from "./binary.js";

const KEPT_LAYERS = 4; // of attention, a few MB each

export class Picture {
  /**
   * Fetch what the views need first; tokens and attention follow when they are asked for.
   *
   * `source` has a function for each part: image, labels, parents, tokens, regions and attention(layer).
   */
  static async load(about, source, file = {name: "picture"}, options = {}) {
    const picture = new Picture();
    Object.assign(picture, {about, source, file, options, id: about.id, at: source.at});
    const [image, labels, parents] = await Promise.all([source.image(), source.labels(), source.parents()]);
    await picture._photo(image);
    picture._levels(new Uint16Array(labels), new Uint16Array(parents));
    return picture;
  }

  constructor() {
    this._attention = new Map();
    this._statistics = new Map();
  }

  async _photo(blob) {
    this.image = blob;
    const bitmap = await createImageBitmap(blob, {colorSpaceConversion: "none", premultiplyAlpha: "none"});
    const {width, height} = bitmap, canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d", {willReadFrequently: true});
    context.drawImage(bitmap, 0, 0);
    Object.assign(this, {bitmap, width, height, pixels: context.getImageData(0, 0, width, height).data});
  }

  _levels(values, parents) {
    const counts = this.about.levels.map((level) => level.regions);
    const first = this.about.label_level;
    this.counts = counts;
    this.first = first;
    this.last = counts.length - 1;
    this.tokenLevel = this.about.token_level;
    this._maps = new Map([[first, values]]);
    this._parents = new Map();
    for (let level = first, at = 0; level < this.last; at += counts[level], level++) {
      this._parents.set(level, parents.subarray(at, at + counts[level]));
    }
  }

  /** The levels that the page can show: pixels first, if there are any. */
  get shown() {
    const levels = this.first > 0 ? [0] : [];
    for (let level = this.first; level <= this.last; level++) levels.push(level);
    return levels;
  }

  get tokens() { return this.counts[this.tokenLevel]; }

  /** The region of every pixel at a level, Uint16Array; of level 0 those of the finest map. */
  labels(level = this.tokenLevel) {
    level = Math.max(level, this.first);
    if (!this._maps.has(level)) {
      const below = this.labels(level - 1), parents = this._parents.get(level - 1), map = new Uint16Array(below.length);
      for (let i = 0; i < map.length; i++) map[i] = parents[below[i]];
      this._maps.set(level, map);
    }
    return this._maps.get(level);
  }

  /** Sizes, mean colours, centres and boxes of the regions of a level. */
  statistics(level = this.tokenLevel) {
    level = Math.max(level, this.first);
    if (this._statistics.has(level)) return this._statistics.get(level);
    const labels = this.labels(level), count = this.counts[level], {width, height, pixels} = this;
    const sizes = new Uint32Array(count), sums = new Float64Array(3 * count), xs = new Float64Array(count);
    const ys = new Float64Array(count), boxes = new Int32Array(4 * count);
    for (let n = 0; n < count; n++) boxes.set([width, height, -1, -1], 4 * n);
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        const n = labels[i], j = 4 * i, k = 4 * n;
        sizes[n]++;
        sums[3 * n] += pixels[j];
        sums[3 * n + 1] += pixels[j + 1];
        sums[3 * n + 2] += pixels[j + 2];
        xs[n] += x;
        ys[n] += y;
        if (x < boxes[k]) boxes[k] = x;
        if (y < boxes[k + 1]) boxes[k + 1] = y;
        if (x > boxes[k + 2]) boxes[k + 2] = x;
        if (y > boxes[k + 3]) boxes[k + 3] = y;
      }
    }
    const colors = new Uint8Array(4 * count);
    for (let n = 0; n < count; n++) {
      const size = sizes[n] || 1;
      for (let c = 0; c < 3; c++) colors[4 * n + c] = Math.round(sums[3 * n + c] / size);
      colors[4 * n + 3] = 255;
      xs[n] = xs[n] / size + 0.5;
      ys[n] = ys[n] / size + 0.5;
    }
    const found = {sizes, colors, xs, ys, boxes};
    this._statistics.set(level, found);
    return found;
  }

  /** The commonest colours of a region, `[{rgb, share}]`. */
  palette(region, level = this.tokenLevel, most = 5) {
    const labels = this.labels(level), {boxes, sizes} = this.statistics(level), {pixels, width} = this, bins = new Map();
    const [x0, y0, x1, y1] = boxes.subarray(4 * region, 4 * region + 4);
    const step = Math.max(1, Math.floor(Math.sqrt(((x1 - x0) * (y1 - y0)) / 4000))); // a sample of a large region will do
    let seen = 0;
    for (let y = y0; y <= y1; y += step) {
      for (let x = x0; x <= x1; x += step) {
        const i = y * width + x;
        if (labels[i] !== region) continue;
        seen++;
        const key = ((pixels[4 * i] >> 5) << 6) | ((pixels[4 * i + 1] >> 5) << 3) | (pixels[4 * i + 2] >> 5);
        const bin = bins.get(key) ?? bins.set(key, [0, 0, 0, 0]).get(key);
        bin[0] += pixels[4 * i];
        bin[1] += pixels[4 * i + 1];
        bin[2] += pixels[4 * i + 2];
        bin[3]++;
      }
    }
    return [...bins.values()].sort((a, b) => b[3] - a[3]).slice(0, most)
      .map(([r, g, b, n]) => ({rgb: [r / n, g / n, b / n], share: n / Math.max(1, seen), size: sizes[region]}));
  }

  _units(values) {
    const count = this.tokens, width = values.length / count;
    for (let n = 0; n < count; n++) {
      let sum = 0;
      for (let d = n * width; d < (n + 1) * width; d++) sum += values[d] * values[d];
      const length = Math.sqrt(sum) || 1;
      for (let d = n * width; d < (n + 1) * width; d++) values[d] /= length;
    }
    return {values, width, count};
  }

  /** The final tokens, each of unit length: `{values, width, count}`. */
  units() {
    this._tokens ??= this.source.tokens().then((buffer) => this._units(halfToFloat(buffer)));
    return this._tokens;
  }

  /** Size, colour, gradient, centre and perimeter of each token, (N, 8). */
  regions() {
    this._regions ??= this.source.regions().then((buffer) => new Float32Array(buffer));
    return this._regions;
  }

  /** The attention of a layer, half floats (heads, N + 1, N + 1). */
  attention(layer) {
    if (!this._attention.has(layer)) {
      if (this._attention.size >= KEPT_LAYERS) this._attention.delete(this._attention.keys().next().value);
      const found = this.source.attention(layer).then((buffer) => new Uint16Array(buffer));
      found.catch(() => this._attention.delete(layer));
      this._attention.set(layer, found);
    }
    return this._attention.get(layer);
  }

  /** One row of attention without the class token: what `token` (-1: the class token) attends to, by head or the mean. */
  attentionRow(bits, token, head) {
    const side = this.tokens + 1, heads = bits.length / (side * side), known = halfTable(), row = new Float32Array(side - 1);
    const chosen = head < 0 ? [...Array(heads).keys()] : [head];
    for (const one of chosen) {
      const from = (one * side + token + 1) * side + 1;
      for (let n = 0; n < row.length; n++) row[n] += known[bits[from + n]] / chosen.length;
    }
    return row;
  }
}

/** Cosines of one token (of unit length) with all tokens of a picture. */
export function cosines(units, vector, out = new Float32Array(units.count)) {
  const {values, width, count} = units;
  for (let n = 0, at = 0; n < count; n++, at += width) {
    let sum = 0;
    for (let d = 0; d < width; d++) sum += values[at + d] * vector[d];
    out[n] = sum;
  }
  return out;
}

export const row = (units, n) => units.values.subarray(n * units.width, (n + 1) * units.width);

/** The indices of the largest values. */
export function largest(values, count, skip = -1) {
  const best = [];
  for (let n = 0; n < values.length; n++) {
    if (n === skip || (best.length === count && values[n] <= values[best[count - 1]])) continue;
    let at = best.length;
    while (at && values[best[at - 1]] < values[n]) at--;
    best.splice(at, 0, n);
    if (best.length > count) best.pop();
  }
  return best;
}
