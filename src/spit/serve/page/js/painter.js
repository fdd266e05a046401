/**
 * Painter: a photo, regions on it and a colour for each, on a canvas.
 *
 * `regions` are what outlines and the highlighted region follow; `fill` (by default the same) are indices into `colors`,
 * RGBA of each, whose alpha times `opacity` covers the photo. A repaint takes less than a frame.
 */

const DEFAULTS = {opacity: 0, lines: 0.5, hover: -1, fromFill: false, checks: false};
const MOST = 600_000; // pixels that are repainted in a frame

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", {alpha: false});
    this.style = {...DEFAULTS, accent: [1, 0.45, 0.2]};
    this.regions = this.fill = null;
    this.colors = new Uint8Array(4);
  }

  /** The photo: RGBA bytes. Regions and colours follow. */
  setPhoto(pixels, width, height) {
    Object.assign(this, {pixels, width, height, regions: null, fill: null, base: null});
    this.photo = new OffscreenCanvas(width, height);
    this.photo.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels), width, height), 0, 0);
  }

  /** Pixels of the canvas for a place on the page. */
  resize(width, height, ratio) {
    this.ratio = Math.min(ratio, Math.sqrt(MOST / Math.max(1, width * height)));
    this.canvas.width = Math.max(1, Math.round(width * this.ratio));
    this.canvas.height = Math.max(1, Math.round(height * this.ratio));
    this.base = null;
  }

  setRegions(labels) {
    if (this.regions !== labels) this.edges = this.boxes = null;
    this.regions = labels;
  }

  setFill(labels, changed = false) {
    if (this.fill !== labels || changed) this.fillEdges = null;
    this.fill = labels;
  }

  setStyle(style) {
    Object.assign(this.style, style);
  }

  setColors(colors) {
    this.colors = colors;
  }

  _prepare() {
    const {width, height} = this.canvas;
    if (!this.base) {
      const scaled = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
      scaled.imageSmoothingQuality = "high";
      scaled.drawImage(this.photo, 0, 0, width, height);
      this.base = scaled.getImageData(0, 0, width, height).data;
      this.result = new ImageData(width, height);
      this.source = new Int32Array(width * height);
      const columns = Int32Array.from({length: width}, (_, x) => Math.floor(((x + 0.5) * this.width) / width));
      for (let y = 0, i = 0; y < height; y++) {
        const row = Math.floor(((y + 0.5) * this.height) / height) * this.width;
        for (let x = 0; x < width; x++, i++) this.source[i] = row + columns[x];
      }
      this.edges = this.fillEdges = this.boxes = null;
    }
    if (this.style.fromFill) this.fillEdges ??= this._edges(this.fill);
    else this.edges ??= this._edges(this.regions);
  }

  /** Pixels of the canvas whose right or lower neighbour is in another region. */
  _edges(labels) {
    const {width, height} = this.canvas, {source} = this, edges = new Uint8Array(width * height);
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        const own = labels[source[i]];
        edges[i] = (x + 1 < width && labels[source[i + 1]] !== own) || (y + 1 < height && labels[source[i + width]] !== own)
          ? 1 : 0;
      }
    }
    return edges;
  }

  draw() {
    if (!this.regions || !this.fill) return;
    this._prepare();
    const {width, height} = this.canvas, {base, source, regions, fill, style, colors} = this;
    const edges = style.fromFill ? this.fillEdges : this.edges, lines = Math.round(256 * style.lines);
    const count = colors.length >> 2, cover = new Int32Array(count), red = new Int32Array(count);
    const green = new Int32Array(count), blue = new Int32Array(count), opacity = Math.round(256 * style.opacity);
    for (let n = 0; n < count; n++) {
      const alpha = (colors[4 * n + 3] * opacity) >> 8;
      const share = Math.round((alpha * 256) / 255);
      cover[n] = 256 - share;
      red[n] = colors[4 * n] * share;
      green[n] = colors[4 * n + 1] * share;
      blue[n] = colors[4 * n + 2] * share;
    }
    const out = new Uint32Array(this.result.data.buffer), total = width * height;
    const {checks} = style;
    for (let i = 0, j = 0; i < total; i++, j += 4) {
      const index = fill[source[i]], left = cover[index];
      let r = (base[j] * left + red[index]) >> 8, g = (base[j + 1] * left + green[index]) >> 8;
      let b = (base[j + 2] * left + blue[index]) >> 8;
      if (checks && index === 0) r = g = b = (((i % width) / 10) ^ (i / width / 10)) & 1 ? 237 : 209;
      if (edges[i]) {
        const ink = 77 * r + 150 * g + 29 * b > 47000 ? 20 : 255;
        r += ((ink - r) * lines) >> 8;
        g += ((ink - g) * lines) >> 8;
        b += ((ink - b) * lines) >> 8;
      }
      out[i] = 0xff000000 | (b << 16) | (g << 8) | r;
    }
    if (style.hover >= 0) this._outline(out, regions, style.hover, style.accent);
    this.context.putImageData(this.result, 0, 0);
  }

  /** Where each region is on the canvas: left, top, right and bottom. */
  _boxes(regions) {
    const {width, height} = this.canvas, {source} = this, boxes = new Int32Array(4 * 65536);
    for (let n = 0; n < boxes.length; n += 4) { boxes[n] = width; boxes[n + 1] = height; boxes[n + 2] = boxes[n + 3] = -1; }
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        const n = 4 * regions[source[i]];
        if (x < boxes[n]) boxes[n] = x;
        if (y < boxes[n + 1]) boxes[n + 1] = y;
        if (x > boxes[n + 2]) boxes[n + 2] = x;
        boxes[n + 3] = y;
      }
    }
    return boxes;
  }

  /** White inside the region's rim, the accent outside. */
  _outline(out, regions, label, ink) {
    const {width, height} = this.canvas, {source} = this, by = Math.max(1, Math.round(1.9 * this.ratio));
    const color = 0xff000000 | (Math.round(255 * ink[2]) << 16) | (Math.round(255 * ink[1]) << 8) | Math.round(255 * ink[0]);
    this.boxes ??= this._boxes(regions);
    const [x0, y0, x1, y1] = this.boxes.subarray(4 * label, 4 * label + 4);
    for (let y = Math.max(0, y0 - by); y <= Math.min(height - 1, y1 + by); y++) {
      for (let x = Math.max(0, x0 - by); x <= Math.min(width - 1, x1 + by); x++) {
        const i = y * width + x;
        const inside = regions[source[i]] === label;
        if ((x >= by && (regions[source[i - by]] === label) !== inside)
          || (x + by < width && (regions[source[i + by]] === label) !== inside)
          || (y >= by && (regions[source[i - by * width]] === label) !== inside)
          || (y + by < height && (regions[source[i + by * width]] === label) !== inside)) {
          out[i] = inside ? 0xffffffff : color;
        }
      }
    }
  }
}
